package bootstrap

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
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

// The short way writes what slog writes, or leaves a record alone.
//
// covers A6
func TestPlainLinesAreSlogs(t *testing.T) {
	var want, got bytes.Buffer
	slow := slog.NewJSONHandler(&want, nil)
	fast := &plainLines{slog.NewJSONHandler(&got, nil), &got}
	at := time.Date(2026, 5, 4, 3, 2, 1, 120_000, time.FixedZone("", 3600))
	attrs := map[string][]slog.Attr{
		"plain":     {slog.String("a", "x y<&>'"), slog.String("empty", ""), slog.Int64("n", -7), slog.Int("m", 1<<40), slog.Bool("b", true), slog.Bool("c", false)},
		"none":      nil,
		"quote":     {slog.String("a", `"`)},
		"backslash": {slog.String("a", `\n`)},
		"a line":    {slog.String("a", "x\n{\"level\":\"ERROR\"}")},
		"a control": {slog.String("a", "\x00\x7f")},
		"not ASCII": {slog.String("a", "é\u2028\xff")},
		"bad key":   {slog.String(`k"`, "v")},
		"no key":    {slog.String("", "v"), slog.Attr{}},
		"error":     {slog.Any("error", errors.New("e"))},
		"group":     {slog.Group("g", slog.Int("n", 1))},
		"others":    {slog.Duration("d", time.Second), slog.Float64("f", 1.5), slog.Uint64("u", 1), slog.Time("t", at)},
		"late":      {slog.Int("n", 1), slog.Int("n", 1), slog.Int("n", 1), slog.Int("n", 1), slog.Int("n", 1), slog.Int("n", 1), slog.Any("x", nil)},
	}
	for name, attrs := range attrs {
		for _, when := range []time.Time{at, at.Truncate(time.Second).UTC(), time.Now(), {}} {
			for _, level := range []slog.Level{slog.LevelInfo, slog.LevelError, 5} {
				for _, message := range []string{"grab", "", "a \"b\""} {
					want.Reset()
					got.Reset()
					record := slog.NewRecord(when, level, message, 0)
					record.AddAttrs(attrs...)
					if err := errors.Join(slow.Handle(t.Context(), record), fast.Handle(t.Context(), record)); err != nil {
						t.Fatal(err)
					}
					if got.String() != want.String() {
						t.Errorf("%s: %s is not %s", name, got.String(), want.String())
					}
				}
			}
		}
	}
}

func BenchmarkGrabLine(b *testing.B) {
	log := NewLogger(Default(), io.Discard)
	for _, handler := range []struct {
		name string
		slog.Handler
	}{{"plain", log.Handler()}, {"slog", slog.NewJSONHandler(io.Discard, nil)}} {
		b.Run(handler.name, func(b *testing.B) {
			b.ReportAllocs()
			now := time.Now()
			for b.Loop() {
				record := slog.NewRecord(now, slog.LevelInfo, application.GrabLine, 0)
				record.AddAttrs(slog.String("biz_id", "r-1"), slog.String("order_id", "SK1001-2001-034pe8k13trjh4l1ut15r2n3oc"),
					slog.String("buyer", "1000000007"), slog.Int64("quantity", 1), slog.String("outcome", "accepted"),
					slog.Bool("replayed", false), slog.Int64("stock_before", 1000), slog.Int64("stock_after", 999))
				if err := handler.Handle(b.Context(), record); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestFlushOfAnotherLog(t *testing.T) {
	flushLog(slog.New(slog.DiscardHandler)) // gathers nothing, and does no harm
}
