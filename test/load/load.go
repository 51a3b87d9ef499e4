package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// generateFor runs a plan in a process of its own. At "ready" and at "end" it
// calls what is to be looked at just then.
func generateFor(ctx context.Context, plan plan, ready, end func() error) (result, error) {
	self, err := os.Executable()
	if err != nil {
		return result{}, err
	}
	text, err := json.Marshal(plan)
	if err != nil {
		return result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, plan.For+3*answerTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "generate", "--plan", string(text))
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return result{}, err
	}
	if err := cmd.Start(); err != nil {
		return result{}, err
	}
	r, err := follow(bufio.NewReader(pipe), ready, end)
	if err := errors.Join(err, cmd.Wait()); err != nil {
		return result{}, fmt.Errorf("generator: %w", err)
	}
	if r.Wrong > 0 {
		return r, fmt.Errorf("%d of %d answers are not %q, for example %s", r.Wrong, r.Requests, plan.Want, r.Example)
	}
	return r, nil
}

func follow(output *bufio.Reader, ready, end func() error) (r result, err error) {
	for _, step := range []struct {
		word string
		call func() error
	}{{"ready", ready}, {"end", end}} {
		line, err := output.ReadString('\n')
		if err != nil {
			return r, err
		}
		if strings.TrimSpace(line) != step.word {
			return r, fmt.Errorf("said %q, not %q", line, step.word)
		}
		if err := step.call(); err != nil {
			return r, err
		}
	}
	data, err := io.ReadAll(io.LimitReader(output, 1<<20))
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(data, &r)
}
