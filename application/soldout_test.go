package application

import (
	"testing"
	"time"

	"seckill/domain"
)

// covers T2: the mark answers for a while, lets one grab through now and then,
// and ends although that one has no answer.
func TestSoldOutMark(t *testing.T) {
	sale := domain.SaleID{Activity: 1, SKU: 1}
	none := domain.Outcome{Verdict: domain.SoldOut}
	start := time.Unix(1_000_000_000, 0)
	var s soldOut
	passed := func(after time.Duration) (n int) {
		for range 100 {
			if !s.known(sale, start.Add(after)) {
				n++
			}
		}
		return n
	}
	if n := passed(0); n != 100 {
		t.Errorf("%d of 100 passed before anything was said", n)
	}
	s.saw(sale, none, start, start)
	if n := passed(soldOutCheck - 1); n != 0 {
		t.Errorf("%d of 100 passed at first", n)
	}
	if n := passed(soldOutCheck); n != 1 {
		t.Errorf("%d of 100 passed to check, want 1", n)
	}
	// Its answer stays away.
	if n := passed(time.Second); n != 100 {
		t.Errorf("%d of 100 passed a second later, want all", n)
	}
	// An answer counts from when its grab was sent.
	s.saw(sale, none, start.Add(-time.Second), start.Add(time.Second))
	if n := passed(time.Second); n != 100 {
		t.Errorf("%d of 100 passed after an old answer, want all", n)
	}
	s.saw(sale, none, start.Add(time.Second), start.Add(time.Second))
	if n := passed(time.Second); n > 1 {
		t.Errorf("%d of 100 passed after a new answer", n)
	}
	// An answer that was on its way for long leaves a newer one alone.
	s.saw(sale, none, start.Add(-time.Second), start.Add(time.Second))
	if n := passed(time.Second + soldOutCheck - 1); n > 1 {
		t.Errorf("%d of 100 passed after a late answer", n)
	}
	// The clock is set back by an hour: the mark ends, and begins anew.
	if n := passed(-time.Hour); n != 100 {
		t.Errorf("%d of 100 passed when the clock was set back, want all", n)
	}
	s.saw(sale, none, start.Add(-time.Hour), start.Add(-time.Hour))
	if n := passed(-time.Hour); n != 0 {
		t.Errorf("%d of 100 passed after the answer", n)
	}
	if n := passed(-time.Hour + time.Second); n != 100 {
		t.Errorf("%d of 100 passed a second later, want all", n)
	}
	s.saw(sale, domain.Outcome{Verdict: domain.SoldOut, Before: 1, After: 1}, start.Add(2*time.Second), start.Add(2*time.Second))
	if n := passed(2 * time.Second); n != 100 {
		t.Errorf("%d of 100 passed when a unit was left, want all", n)
	}
	s.saw(sale, none, start.Add(2*time.Second), start.Add(2*time.Second))
	s.saw(sale, domain.Outcome{Verdict: domain.Accepted}, start.Add(2*time.Second), start.Add(2*time.Second))
	if n := passed(2 * time.Second); n != 100 {
		t.Errorf("%d of 100 passed after one won, want all", n)
	}
}
