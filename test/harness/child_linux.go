package harness

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
)

// startTied starts a program that the system kills when the test process ends.
// The tie is to the thread that started it, not to the process, so all starts
// happen on one thread that never ends.
func startTied(cmd *exec.Cmd) error {
	starterOnce.Do(func() {
		go func() {
			runtime.LockOSThread()
			for start := range starts {
				start()
			}
		}()
	})
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	result := make(chan error, 1)
	starts <- func() { result <- cmd.Start() }
	return <-result
}

var (
	starterOnce sync.Once
	starts      = make(chan func())
)

// descendants lists the processes below pid.
func descendants(pid int) []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		if err != nil {
			continue
		}
		if _, parent, ok := readStat(id); ok {
			children[parent] = append(children[parent], id)
		}
	}
	return below(children, pid)
}

// alive reports whether a process still runs; one that has ended and only
// waits to be collected does not.
func alive(pid int) bool {
	state, _, ok := readStat(pid)
	return ok && state != 'Z' && state != 'X'
}

// readStat reads a process' state and parent. The fields come after its name,
// which stands in brackets and may itself hold any character.
func readStat(pid int) (state byte, parent int, ok bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, false
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(string(fields[1]))
	return fields[0][0], parent, err == nil
}
