package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress shows how far a command is: as a bar on a terminal, elsewhere as a
// line now and then.
type progress struct {
	to       *os.File
	terminal bool

	mu    sync.Mutex
	name  string
	steps int64
	bar   *progressbar.ProgressBar
	last  time.Time // of the last line
}

// lineEvery is how often a line is written where there is no terminal.
const lineEvery = 5 * time.Second

func newProgress(to *os.File) *progress {
	info, err := to.Stat()
	return &progress{to: to, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

// Stage begins a stage of so many steps; 0: nobody knows.
func (p *progress) Stage(name string, steps int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finish()
	p.name, p.steps, p.last = name, steps, time.Now()
	if !p.terminal {
		p.line(0)
		return
	}
	if steps == 0 {
		steps = -1 // a spinner
	}
	p.bar = progressbar.NewOptions64(steps,
		progressbar.OptionSetWriter(p.to), progressbar.OptionSetDescription(fmt.Sprintf("%-14s", name)),
		progressbar.OptionSetWidth(30), progressbar.OptionShowCount(), progressbar.OptionShowIts(),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	_ = p.bar.RenderBlank()
}

// Step tells how many steps of the stage are done. What is not shown is not lost:
// the tables at the end have every figure.
func (p *progress) Step(done int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Set64(done)
		return
	}
	if time.Since(p.last) >= lineEvery {
		p.last = time.Now()
		p.line(done)
	}
}

func (p *progress) line(done int64) {
	text := p.name
	if p.steps > 0 {
		text = fmt.Sprintf("%s: %d of %d", p.name, done, p.steps)
	}
	_, _ = fmt.Fprintln(p.to, text)
}

// end takes the bar away.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finish()
}

func (p *progress) finish() {
	if p.bar != nil {
		_ = p.bar.Finish()
		_ = p.bar.Clear()
		p.bar = nil
	}
}
