//go:build !linux

package harness

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"syscall"
)

// startTied starts a program. This system has no way to tie its life to the
// test process; the tests' cleanup has to do.
func startTied(cmd *exec.Cmd) error { return cmd.Start() }

// descendants lists the processes below pid.
func descendants(pid int) []int {
	output, err := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output()
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	lines := bufio.NewScanner(bytes.NewReader(output))
	for lines.Scan() {
		var id, parent int
		if n, _ := fmt.Sscan(lines.Text(), &id, &parent); n == 2 {
			children[parent] = append(children[parent], id)
		}
	}
	return below(children, pid)
}

// alive reports whether a process still runs.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }
