package main

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// step is one thing to do, with the name it is announced by.
type step struct {
	name string
	do   func(ctx context.Context) error
}

// testEnv turns the race detector on, which needs C, and makes a missing
// server a failure instead of a skipped test.
var testEnv = []string{"CGO_ENABLED=1", "SECKILL_TEST_SERVICES=required"}

// plan lists the steps for the project in root. Vet has the tests' build flags,
// so that both use the same compiled packages.
func plan(root string, extra []string) ([]step, error) {
	modules, err := nestedModules(root)
	if err != nil {
		return nil, err
	}
	steps := []step{
		{"install what is missing", prepare},
		{"gofmt", func(ctx context.Context) error { return checkFormat(ctx, root) }},
		{"generated code", func(ctx context.Context) error { return checkGenerated(ctx, root) }},
	}
	for _, dir := range append([]string{"."}, modules...) {
		for _, args := range [][]string{{"vet", "-race", "./..."}, testArgs(extra)} {
			name := "go " + strings.Join(args, " ")
			if dir != "." {
				name += " in " + dir
			}
			steps = append(steps, step{name, func(ctx context.Context) error {
				return execute(ctx, 2*time.Hour, filepath.Join(root, dir), testEnv, append([]string{"go"}, args...))
			}})
		}
	}
	return steps, nil
}

// testArgs are the arguments to go; extra ones are for go test.
func testArgs(extra []string) []string {
	args := append([]string{"test", "-race", "-count=1", "-timeout", "20m"}, extra...)
	return append(args, "./...")
}

// nestedModules lists the folders below test that are modules of their own and
// so are not part of the project's ./... . The tools are no tests.
func nestedModules(root string) ([]string, error) {
	var dirs []string
	err := filepath.WalkDir(filepath.Join(root, "test"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		if entry.Name() == "go.mod" && dir != filepath.Join("test", "tools") {
			dirs = append(dirs, dir)
		}
		return nil
	})
	return dirs, err
}

// execute runs a command in a folder, showing its output.
func execute(ctx context.Context, timeout time.Duration, dir string, env, command []string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	// go test passes an interrupt on to the tests.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	return cmd.Run()
}
