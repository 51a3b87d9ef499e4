package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"seckill/test/harness"
)

const demoActivity = 1001

// startDemo starts the demo and waits until it can grab.
func startDemo(t *testing.T, args, env []string) *cell {
	t.Helper()
	n := &node{addr: harness.FreeAddr(t), admin: harness.FreeAddr(t)}
	c := &cell{owner: t, program: harness.Seckill(t), client: newClient(), token: token, nodes: []*node{n}}
	t.Cleanup(c.client.CloseIdleConnections)
	args = append([]string{"demo", "--addr", n.addr, "--admin-addr", n.admin}, args...)
	n.process = harness.Start(t, c.program, args, append([]string{"SECKILL_ADMIN_TOKEN=" + token}, env...))
	n.process.WaitFor(t, "http://"+n.addr+"/readyz", startBound)
	return c
}

// TestDemoLoadLine runs the public load line, unchanged but for the address.
// covers O1 O4
func TestDemoLoadLine(t *testing.T) {
	for _, program := range []string{"curl", "xargs", "seq"} {
		harness.Need(t, program)
	}
	c := startDemo(t, nil, nil)
	line := `seq 1 2000 | xargs -P 200 -I{} curl -s -o /dev/null -w "%{http_code}\n" -X POST http://127.0.0.1:8080/api/seckill/order -H 'Content-Type: application/json' -d '{"activityId":1001,"skuId":2001,"userId":{}}' | sort | uniq -c`
	shell := harness.Start(t, "/bin/sh", []string{"-c", strings.Replace(line, "127.0.0.1:8080", c.here().addr, 1)}, nil)
	if code := shell.Wait(t, loadBound); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	said := strings.Fields(shell.Stdout.String())
	if strings.Join(said, " ") != "100 202 1900 409" {
		t.Fatalf("the line says:\n%s", shell.Stdout)
	}
	c.becomes(t, demoActivity, account{Total: 100, Held: 100, Ledger: ledger{Pending: 100}})
}

// TestDemoKeepsData: --stock and --limit make the sale, and --data keeps it over
// an orderly end and over a crash.
// covers O1 Q9
func TestDemoKeepsData(t *testing.T) {
	args := []string{"--stock", "5", "--limit", "2", "--payment-window", "1h", "--data", filepath.Join(t.TempDir(), "not", "there", "yet")}
	c := startDemo(t, args, nil)
	first := c.take(t, c.here(), demoActivity, "7")
	if window := first.ExpiresAt.Sub(*first.CreatedAt); window.Hours() != 1 {
		t.Errorf("payment window %s", window)
	}
	c.pay(c.here(), "7", first.OrderID, "p-1").want(t, http.StatusOK)
	second := c.take(t, c.here(), demoActivity, "7")
	over := func(c *cell) {
		t.Helper()
		c.grab(c.here(), grab{ActivityID: demoActivity, UserID: 7}).refused(t, http.StatusConflict, -2, "limit_reached")
		c.becomes(t, demoActivity, account{Total: 5, Available: 3, Held: 1, Sold: 1, Ledger: ledger{Pending: 1, Paid: 1}})
	}
	over(c)
	for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGINT} {
		c.here().process.Signal(end)
		if code := c.here().process.Wait(t, startBound); code != 0 && end != syscall.SIGKILL {
			t.Fatalf("exit code %d after %s", code, end)
		}
		c = startDemo(t, args, nil)
		for id, status := range map[string]string{first.OrderID: "paid", second.OrderID: "pending_payment"} {
			if a := c.find(c.here(), "7", id, "").want(t, http.StatusOK); a.order.Status != status {
				t.Fatalf("order after %s: %s", end, a.body)
			}
		}
		over(c)
	}
	list := attempts("b", 4)
	for i := range list {
		c.try(t, c.here(), demoActivity, &list[i])
	}
	if list[2].id == "" || !list[3].out {
		t.Fatalf("three units are left: %+v", list)
	}
}

// TestDemoLeavesNothing: the token is printed, the hints work as they stand, and
// without --data the files are gone at the end.
// covers O1
func TestDemoLeavesNothing(t *testing.T) {
	harness.Need(t, "curl")
	temporary := t.TempDir()
	c := startDemo(t, nil, []string{"SECKILL_ADMIN_TOKEN=", "TMPDIR=" + temporary})
	var said string
	var found []string
	eventually(t, 10*time.Second, func() error {
		said = c.here().process.Stdout.String()
		found = regexp.MustCompile(`(?m)^Operator token: (\S{20,})$`).FindStringSubmatch(said)
		if found == nil {
			return fmt.Errorf("no operator token:\n%s", said)
		}
		return nil
	})
	c.operate(c.here(), http.MethodGet, "dead-letters", nil).want(t, http.StatusUnauthorized)
	c.token = found[1]
	c.becomes(t, demoActivity, account{Total: 100, Available: 100})

	hint := regexp.MustCompile(`(?m)^ *(curl -i -X POST .*)$`).FindStringSubmatch(said)
	if hint == nil {
		t.Fatalf("no hint how to grab:\n%s", said)
	}
	output, err := exec.Command("/bin/sh", "-c", hint[1]).CombinedOutput()
	if err != nil || !strings.Contains(string(output), "HTTP/1.1 202 ") {
		t.Fatalf("%s: %v\n%s", hint[1], err, output)
	}
	c.terminate()
	c.drained(t)
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Fatalf("left behind: %v %v", left, err)
	}
}

// TestHelp: every command says what it does.
func TestHelp(t *testing.T) {
	for _, command := range []string{"", "demo", "serve", "migrate", "reconcile", "drill", "bench"} {
		p := harness.Start(t, harness.Seckill(t), append(strings.Fields(command), "--help"), nil)
		if code := p.Wait(t, startBound); code != 0 || !strings.Contains(p.Stdout.String(), "Usage:") {
			t.Errorf("seckill %s --help: exit code %d\n%s", command, code, p.Stdout)
		}
	}
}
