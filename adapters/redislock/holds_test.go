package redislock

import (
	"testing"
	"time"
)

// covers L9
func TestWarnsOfLongHolds(t *testing.T) {
	const lease = time.Second
	now := time.Unix(0, 0)
	fill := func(h *holds, count int, hold time.Duration) (warnings int) {
		for range count {
			if _, warn := h.add(hold, lease, now); warn {
				warnings++
			}
		}
		return warnings
	}

	t.Run("too few holds", func(t *testing.T) {
		var h holds
		if n := fill(&h, holdsNeeded-1, lease); n != 0 {
			t.Errorf("%d warnings", n)
		}
	})
	t.Run("half is not more than half", func(t *testing.T) {
		var h holds
		if n := fill(&h, holdsKept, lease/2); n != 0 {
			t.Errorf("%d warnings", n)
		}
	})
	t.Run("1 % may be long", func(t *testing.T) {
		var h holds
		if n := fill(&h, holdsKept, lease/10) + fill(&h, holdsKept/100, lease); n != 0 {
			t.Errorf("%d warnings", n)
		}
		p99, warn := h.add(lease, lease, now)
		if !warn || p99 != 1 {
			t.Errorf("one more: p99 %v, warn %v", p99, warn)
		}
	})
	t.Run("old holds are forgotten", func(t *testing.T) {
		var h holds
		fill(&h, holdsNeeded-1, lease)
		if n := fill(&h, holdsKept, lease/10) + fill(&h, 1, lease); n != 0 {
			t.Errorf("%d warnings", n)
		}
	})
	t.Run("one warning a minute", func(t *testing.T) {
		var h holds
		if n := fill(&h, 2*holdsKept, lease); n != 1 {
			t.Errorf("%d warnings, want 1", n)
		}
		now = now.Add(warnEvery)
		if n := fill(&h, 2, lease); n != 1 {
			t.Errorf("%d warnings a minute later, want 1", n)
		}
	})
}

func TestPercentile(t *testing.T) {
	values := make([]float64, 100)
	for i := range values {
		values[i] = float64(100 - i)
	}
	if p := percentile99(values); p != 99 {
		t.Errorf("of 1 to 100: %v, want 99", p)
	}
	if p := percentile99([]float64{7}); p != 7 {
		t.Errorf("of one value: %v", p)
	}
	if values[0] != 100 {
		t.Error("the values were reordered")
	}
}
