package bootstrap

import (
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	// lazyDelay is how long a gathered line waits at most for company.
	lazyDelay = 50 * time.Millisecond
	// lazyBytes bounds the lines that wait: half a second of the fastest sale
	// seen. What does not fit is dropped and counted.
	lazyBytes = 4 << 20
)

// lazyWriter gathers writes and passes them on together, from a goroutine of
// its own. Write never waits for the writer behind it.
type lazyWriter struct {
	to   io.Writer
	tell *slog.Logger // writes to the same

	mu      sync.Mutex
	lines   []byte // not written yet
	dropped int64
	due     bool // a flush is on its way

	writing sync.Mutex // held while to is written, before mu
	spare   []byte     // the buffer that is not lines
}

// Write takes one line; it never fails.
func (w *lazyWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lines)+len(line) > lazyBytes {
		w.dropped++
		return len(line), nil
	}
	w.lines = append(w.lines, line...)
	if !w.due {
		w.due = true
		time.AfterFunc(lazyDelay, w.flush)
	}
	return len(line), nil
}

// flush writes what waits, and says how many lines did not fit.
func (w *lazyWriter) flush() {
	w.writing.Lock()
	defer w.writing.Unlock()
	w.pass()
}

// pass is flush for whoever holds writing. A log that cannot be written has
// nobody to tell.
func (w *lazyWriter) pass() {
	w.mu.Lock()
	lines, dropped := w.lines, w.dropped
	w.lines, w.dropped, w.due = w.spare[:0], 0, false
	w.mu.Unlock()
	if len(lines) > 0 {
		_, _ = w.to.Write(lines)
	}
	w.spare = lines
	if dropped > 0 {
		w.tell.Error("the log could not keep up: lines about grabs were dropped", "lines", dropped)
	}
}

// direct is a writer that waits for what was gathered before, and writes at once.
func (w *lazyWriter) direct() io.Writer { return directWriter{w} }

type directWriter struct{ lazy *lazyWriter }

func (d directWriter) Write(line []byte) (int, error) {
	d.lazy.writing.Lock()
	defer d.lazy.writing.Unlock()
	d.lazy.pass()
	return d.lazy.to.Write(line)
}
