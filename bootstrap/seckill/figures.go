package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// output is where a command's words and its figures go.
type output struct {
	text io.Writer
	json io.Writer // nil: nowhere
}

func figuresFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "json", "", "write the figures to this file; - is the standard output, and tables go to the standard error then")
}

// openFigures opens the file first, so that a long run does not end in vain.
func openFigures(cmd *cobra.Command, path string) (output, func(), error) {
	switch path {
	case "":
		return output{text: cmd.OutOrStdout()}, func() {}, nil
	case "-":
		return output{text: cmd.ErrOrStderr(), json: cmd.OutOrStdout()}, func() {}, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return output{}, nil, fmt.Errorf("--json: %w", err)
	}
	return output{text: cmd.OutOrStdout(), json: file}, func() { _ = file.Close() }, nil
}

// figures writes them, if they are wanted.
func (o output) figures(figures any) error {
	if o.json == nil {
		return nil
	}
	encoder := json.NewEncoder(o.json)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(figures); err != nil {
		return fmt.Errorf("--json: %w", err)
	}
	return nil
}
