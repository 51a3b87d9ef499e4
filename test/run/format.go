package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// generated is the line that marks a file no person writes.
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.\r?$`)

// checkFormat checks the project's own Go files as gofmt -l would.
func checkFormat(ctx context.Context, root string) error {
	files, err := tracked(ctx, root)
	if err != nil {
		return err
	}
	var bad []string
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, file))
		if errors.Is(err, os.ErrNotExist) {
			continue // removed and not yet committed
		}
		if err != nil {
			return err
		}
		if !formatted(text) {
			bad = append(bad, file)
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("run gofmt -w on:\n%s", strings.Join(bad, "\n"))
	}
	fmt.Println(len(files), "files")
	return nil
}

func formatted(text []byte) bool {
	if generated.Match(text) {
		return true
	}
	want, err := format.Source(text)
	return err == nil && bytes.Equal(text, want)
}

// tracked lists the Go files that git knows. The checkout may belong to another
// user, as it does in many containers.
func tracked(ctx context.Context, root string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "git", "-c", "safe.directory=*", "ls-files", "-z", "--", "*.go")
	cmd.Dir = root
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	return strings.FieldsFunc(string(output), func(r rune) bool { return r == 0 }), nil
}
