package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill/test/harness"
)

// reconcile runs the command and returns its exit code and what it prints.
func (c *cell) reconcile(t *testing.T, args ...string) (int, string) {
	t.Helper()
	p := harness.Start(t, c.program, append([]string{"reconcile"}, args...), c.env)
	code := p.Wait(t, startBound)
	return code, p.Stdout.String()
}

// TestReconcile damages Redis by hand while the service runs; the command tells,
// and repairs when it is told to.
// covers N1 N3
func TestReconcile(t *testing.T) {
	c := serving(t, pairing{"lua", "mariadb"})
	activity := c.sell(t, sale{total: 10})
	other := c.sell(t, sale{total: 7})
	orders := map[string]order{}
	for _, buyer := range []string{"ann", "bob", "cyd", "dan"} {
		orders[buyer] = c.take(t, c.any(), activity, buyer)
	}
	c.pay(c.any(), "dan", orders["dan"].OrderID, "p-1").want(t, http.StatusOK)
	whole := account{Total: 10, Available: 6, Held: 3, Sold: 1, Ledger: ledger{Pending: 3, Paid: 1}}
	c.becomes(t, activity, whole)

	client := c.redis.Client(t)
	key, partition := c.saleKey(t, client, activity)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	name := fmt.Sprintf("%d:%d", activity, sku)
	one := fmt.Sprintf("--activity=%d", activity)

	code, table := c.reconcile(t)
	if code != 0 || row(table, name) != "10 6 3 1 0 3 1 0 true 0" || row(table, fmt.Sprintf("%d:%d", other, sku)) != "7 7 0 0 0 0 0 0 true 0" {
		t.Fatalf("when all is well: exit code %d\n%s", code, table)
	}
	for _, damage := range []struct {
		name string
		do   func() error
	}{
		{"three units from nowhere", func() error { return client.HIncrBy(ctx, key, "available", 3).Err() }},
		{"two units lost", func() error { return client.HIncrBy(ctx, key, "available", -2).Err() }},
		{"a hold is counted twice", func() error { return client.HIncrBy(ctx, key, "held", 1).Err() }},
		{"a lost hold", func() error { return client.HDel(ctx, partition+"holds:"+name, orders["ann"].OrderID).Err() }},
		{"a buyer's units", func() error { return client.HSet(ctx, partition+"buyers:"+name, "bob", "7").Err() }},
	} {
		t.Run(damage.name, func(t *testing.T) {
			if err := damage.do(); err != nil {
				t.Fatal(err)
			}
			for range 2 { // to look is not to touch
				if code, table := c.reconcile(t, one); code != 1 || !strings.Contains(row(table, name), " false ") {
					t.Fatalf("after the damage: exit code %d\n%s", code, table)
				}
			}
			if code, table := c.reconcile(t, one, "--repair"); code != 0 || !strings.Contains(row(table, name), " true ") {
				t.Fatalf("repair: exit code %d\n%s", code, table)
			}
			if code, table := c.reconcile(t); code != 0 || row(table, name) != "10 6 3 1 0 3 1 0 true 0" {
				t.Fatalf("after the repair: exit code %d\n%s", code, table)
			}
			c.becomes(t, activity, whole)
		})
	}

	t.Run("by the operators' route", func(t *testing.T) {
		if err := client.HIncrBy(ctx, key, "available", 3).Err(); err != nil {
			t.Fatal(err)
		}
		path := fmt.Sprintf("activities/%d/reconcile", activity)
		for _, repair := range []bool{false, true} {
			a := c.operate(c.any(), http.MethodPost, path, map[string]bool{"repair": repair}).want(t, http.StatusOK)
			if got, err := readReport(a.body, activity); err != nil || got.Balanced != repair {
				t.Fatalf("repair %t: %v %s", repair, err, a.body)
			}
		}
		c.becomes(t, activity, whole)
	})

	// Buyers are still held to their limit, and the stock still sells out.
	c.grab(c.any(), grab{ActivityID: activity, UserID: "ann"}).refused(t, http.StatusConflict, -2, "limit_reached")
	if rest := c.buyOut(t, activity, 10); len(rest) != 6 {
		t.Fatalf("%d units were left", len(rest))
	}

	if code, _ := c.reconcile(t, "--activity=777777"); code == 0 {
		t.Error("an unknown activity is balanced")
	}
	embedded := newCell(t, pairing{"memory", "sqlite"})
	embedded.refuses(t, []string{"reconcile"}, nil, "stock", "memory", "/api/admin/activities/")
}

// row is the line of a sale in a table, without its name and its spaces.
func row(table, name string) string {
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == name {
			return strings.Join(fields[1:], " ")
		}
	}
	return ""
}
