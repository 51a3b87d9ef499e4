package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"seckill/test/harness"
)

// machine is what matters of the computer the tests run on.
type machine struct {
	compiler bool                      // a C compiler works
	has      func(program string) bool // a server's program is installed
	apt      bool
	brew     bool
	root     bool
	sudo     bool // usable without a password
	policy   bool // there is a policy on starting services
}

// missing names what the tests want and the machine lacks.
func (m machine) missing() []string {
	var names []string
	if !m.compiler {
		names = append(names, compiler)
	}
	for _, program := range slices.Sorted(maps.Keys(harness.Programs)) {
		if !m.has(program) {
			names = append(names, program)
		}
	}
	return names
}

const compiler = "C compiler"

// commands lists the command lines that install the named things.
func (m machine) commands(missing []string) ([][]string, error) {
	var apt, brew []string
	for _, name := range missing {
		if name == compiler {
			apt = append(apt, "gcc", "libc6-dev")
			continue
		}
		apt = append(apt, harness.Programs[name].Apt)
		brew = append(brew, harness.Programs[name].Brew)
	}
	apt, brew = unique(apt), unique(brew)
	switch {
	case len(missing) == 0:
		return nil, nil
	case m.apt && (m.root || m.sudo):
		install := append([]string{"install", "-y", "--no-install-recommends"}, apt...)
		return [][]string{m.aptGet("update"), m.aptGet(install...)}, nil
	case m.apt:
		return nil, fmt.Errorf("missing: %s\nrun as root: apt-get install %s", strings.Join(missing, ", "), strings.Join(apt, " "))
	case m.brew && slices.Contains(missing, compiler):
		return nil, errors.New("missing: a C compiler; run: xcode-select --install")
	case m.brew:
		return [][]string{append([]string{"brew", "install"}, brew...)}, nil
	default:
		return nil, fmt.Errorf("missing: %s\nneither apt-get nor brew is there to install them; on Debian they are in %s",
			strings.Join(missing, ", "), strings.Join(apt, ", "))
	}
}

// aptGet is a command line of apt-get that asks nothing. The settings go
// through env because sudo does not pass them on.
func (m machine) aptGet(args ...string) []string {
	var line []string
	if !m.root {
		line = append(line, "sudo", "-n")
	}
	line = append(line, "env", "DEBIAN_FRONTEND=noninteractive")
	if !m.policy {
		// Mildly asks the packages not to start their servers; nothing here
		// uses these, and nothing minds them.
		line = append(line, "RUNLEVEL=1")
	}
	return append(append(line, "apt-get", "-o", "DPkg::Lock::Timeout=300"), args...)
}

func unique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// prepare installs what is missing on this machine.
func prepare(ctx context.Context) error {
	m := thisMachine(ctx)
	commands, err := m.commands(m.missing())
	if err != nil {
		return err
	}
	for _, command := range commands {
		fmt.Println("+", strings.Join(command, " "))
		if err := execute(ctx, 30*time.Minute, ".", nil, command); err != nil {
			return err
		}
	}
	if missing := thisMachine(ctx).missing(); len(missing) > 0 {
		return fmt.Errorf("still missing: %s", strings.Join(missing, ", "))
	}
	return nil
}

func thisMachine(ctx context.Context) machine {
	inPath := func(program string) bool {
		_, err := exec.LookPath(program)
		return err == nil
	}
	_, policyErr := os.Stat("/usr/sbin/policy-rc.d")
	return machine{
		compiler: compiles(ctx),
		has: func(program string) bool {
			_, err := harness.Find(program)
			return err == nil
		},
		apt:    inPath("apt-get"),
		brew:   inPath("brew"),
		root:   os.Geteuid() == 0,
		sudo:   quiet(ctx, "sudo", "-n", "true") == nil,
		policy: policyErr == nil,
	}
}

// compiles tries the compiler that go would use. A compiler without the
// headers of the C library, which Debian packs apart, is no use.
func compiles(ctx context.Context) bool {
	cc, err := exec.CommandContext(ctx, "go", "env", "CC").Output()
	words := strings.Fields(string(cc))
	if err != nil || len(words) == 0 {
		return false
	}
	dir, err := os.MkdirTemp("", "seckill-cc-")
	if err != nil {
		return false
	}
	defer os.RemoveAll(dir)
	source, program := dir+"/try.c", dir+"/try"
	text := "#include <pthread.h>\n#include <stdlib.h>\nint main(void) { return EXIT_SUCCESS; }\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		return false
	}
	return quiet(ctx, words[0], append(words[1:], "-o", program, source)...) == nil
}

// quiet runs a short command without showing its output.
func quiet(ctx context.Context, program string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return exec.CommandContext(ctx, program, args...).Run()
}
