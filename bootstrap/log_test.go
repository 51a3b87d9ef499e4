package bootstrap

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/application"
)

// slowReader is where a log goes that somebody reads only when told to.
type slowReader struct {
	mu   sync.Mutex // held while nothing is read
	data bytes.Buffer
}

func (s *slowReader) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data.Write(p)
}

func (s *slowReader) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Split(strings.TrimSpace(s.data.String()), "\n")
}

// Lines stay in their order, whichever way they go.
//
// covers O5
func TestLogKeepsOrder(t *testing.T) {
	to := &slowReader{}
	log := NewLogger(Default(), to)
	child := log.With("part", "x").WithGroup("g")
	log.Info(application.GrabLine, "order_id", "1")
	child.Info(application.GrabLine, "order_id", "2")
	child.Warn("something else")
	log.Info(application.GrabLine, "order_id", "3")
	flushLog(log)
	want := []string{`"order_id":"1"`, `"part":"x","g":{"order_id":"2"}`, "something else", `"order_id":"3"`}
	got := to.lines()
	if len(got) != len(want) {
		t.Fatalf("%d lines: %q", len(got), got)
	}
	for i, text := range want {
		if !strings.Contains(got[i], text) || !json.Valid([]byte(got[i])) {
			t.Errorf("line %d is %s, want %s in it", i, got[i], text)
		}
	}
}

// Gathered lines are written soon, by themselves.
func TestLogWritesByItself(t *testing.T) {
	to := &slowReader{}
	log := NewLogger(Default(), to)
	for turn := 1; turn <= 3; turn++ {
		log.Info(application.GrabLine)
		deadline := time.Now().Add(10 * time.Second)
		for len(to.lines()) < turn || to.lines()[0] == "" {
			if time.Now().After(deadline) {
				t.Fatalf("line %d was not written", turn)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// A log that nobody reads holds up no grab, costs a bounded memory, and says
// how many lines are missing.
func TestLogNeverBlocksGrabs(t *testing.T) {
	to := &slowReader{}
	log := NewLogger(Default(), to)
	line := strings.Repeat("x", 1<<10)
	to.mu.Lock()
	log.Info(application.GrabLine, "first", true)
	done := make(chan struct{})
	go func() { // would hang here for ever
		for range 2 * lazyBytes / len(line) {
			log.Info(application.GrabLine, "pad", line)
		}
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Error("a grab waits for its line")
	}
	to.mu.Unlock()
	flushLog(log)
	flushLog(log) // the first may have met a flush that was on its way
	lines := to.lines()
	written, dropped := 0, 0
	for _, text := range lines {
		var entry struct {
			Msg   string
			Lines int
		}
		if err := json.Unmarshal([]byte(text), &entry); err != nil {
			t.Fatalf("%.80q: %v", text, err)
		}
		if entry.Msg == application.GrabLine {
			written++
		}
		dropped += entry.Lines
	}
	all := 1 + 2*lazyBytes/len(line)
	if dropped == 0 || written == 0 || written+dropped != all {
		t.Errorf("%d lines written and %d told to be dropped, of %d", written, dropped, all)
	}
}

func TestFlushOfAnotherLog(t *testing.T) {
	flushLog(slog.New(slog.DiscardHandler)) // gathers nothing, and does no harm
}
