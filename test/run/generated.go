package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// checkGenerated writes the generated code anew and compares: what is
// committed must be what the generators make of the sources.
func checkGenerated(ctx context.Context, root string) error {
	before, err := generatedFiles(ctx, root)
	if err != nil {
		return err
	}
	command := []string{"go", "generate", "./ent", "./test/mock"}
	if err := execute(ctx, 15*time.Minute, root, nil, command); err != nil {
		return err
	}
	var bad []string
	for file, want := range before {
		now, err := os.ReadFile(filepath.Join(root, file))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if !bytes.Equal(now, want) {
			bad = append(bad, file)
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("these were not up to date and are now; commit them:\n%s", strings.Join(bad, "\n"))
	}
	fmt.Println(len(before), "files")
	return nil
}

// generatedFiles reads the generated files that git knows.
func generatedFiles(ctx context.Context, root string) (map[string][]byte, error) {
	files, err := tracked(ctx, root)
	if err != nil {
		return nil, err
	}
	texts := map[string][]byte{}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		if generated.Match(text) {
			texts[file] = text
		}
	}
	return texts, nil
}
