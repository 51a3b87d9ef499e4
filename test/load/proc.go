package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// tick is the unit of CPU times in /proc: 1/100 s on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// cpuOf is the processor time that a process has used; 0 where the system has no /proc.
func cpuOf(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The fields come after the name, which may hold any character.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(string(fields[11]), 10, 64)
	system, _ := strconv.ParseInt(string(fields[12]), 10, 64)
	return time.Duration(user+system) * tick
}

// machineCPU is the time that all processors together were busy.
func machineCPU() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	var busy int64
	for i, field := range bytes.Fields(line) {
		// user nice system idle iowait irq softirq: all but idle and waiting
		if i >= 1 && i <= 7 && i != 4 && i != 5 {
			n, _ := strconv.ParseInt(string(field), 10, 64)
			busy += n
		}
	}
	return time.Duration(busy) * tick
}

// rssOf is the memory that a process has in use, bytes; 0 where the system has no /proc.
func rssOf(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text)
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(string(fields[1]), 10, 64)
	return pages * int64(os.Getpagesize())
}

// ownCPU is the processor time of this process.
func ownCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
