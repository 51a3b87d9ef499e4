package conformance

import (
	"time"

	"seckill/domain"
)

// covers S3, S4, S6
var gateTests = []stockTest{
	{"admits only in the state open", func(s *stockStage) {
		sale := s.openSale(10, 10)
		for _, step := range []struct {
			state domain.State
			want  domain.Verdict
		}{
			{domain.Draft, domain.NotStarted},
			{domain.Open, domain.Accepted},
			{domain.Ready, domain.NotStarted},
			{domain.Paused, domain.SalePaused},
			{domain.Open, domain.Accepted},
			{domain.Closed, domain.SaleEnded},
			{domain.Archived, domain.SaleEnded},
			{domain.Open, domain.Accepted}, // reopened by an operator
		} {
			gate := s.openGate(10)
			gate.State = step.state
			s.must(s.Stock.SetGate(s.Context(), sale, gate, 1))
			s.wantVerdict(sale, s.claim(sale, "alice", 1), step.want)
			if got, err := s.Stock.Gate(s.Context(), sale); err != nil || got.State != step.state || got.PerUserLimit < 1 || !got.StartsAt.Before(got.EndsAt) {
				s.Fatalf("gate reads %+v, %v", got, err)
			}
			if got := s.level(sale).State; got != step.state {
				s.Fatalf("level shows the state %q, want %q", got, step.state)
			}
		}
		s.wantUnits(sale, 7, 3, 0)
		s.wantDepth(3)
	}},
	{"judges by the state before the start and by the end before the state", func(s *stockStage) {
		sale := s.openSale(10, 10)
		now := s.Now()
		early := domain.Gate{StartsAt: now.Add(time.Hour), EndsAt: now.Add(2 * time.Hour), PerUserLimit: 1}
		late := domain.Gate{StartsAt: now.Add(-2 * time.Hour), EndsAt: now.Add(-time.Hour), PerUserLimit: 1}
		for _, step := range []struct {
			gate  domain.Gate
			state domain.State
			want  domain.Verdict
		}{
			{early, domain.Open, domain.NotStarted},
			{early, domain.Ready, domain.NotStarted},
			{early, domain.Paused, domain.SalePaused},
			{early, domain.Closed, domain.SaleEnded},
			{late, domain.Open, domain.SaleEnded},
			{late, domain.Ready, domain.SaleEnded},
			{late, domain.Paused, domain.SaleEnded},
			{late, domain.Closed, domain.SaleEnded},
		} {
			step.gate.State = step.state
			s.must(s.Stock.SetGate(s.Context(), sale, step.gate, 1))
			s.wantVerdict(sale, s.claim(sale, "alice", 1), step.want)
		}
		s.wantUnits(sale, 10, 0, 0)
		s.wantDepth(0)
	}},
	{"tells when the window opens", func(s *stockStage) {
		sale := s.openSale(10, 10)
		gate := s.openGate(10)
		gate.StartsAt = s.Now().Add(30 * time.Minute).Truncate(time.Millisecond)
		s.must(s.Stock.SetGate(s.Context(), sale, gate, 1))
		outcome := s.wantVerdict(sale, s.claim(sale, "alice", 1), domain.NotStarted)
		if !outcome.StartsAt.Equal(gate.StartsAt) {
			s.Fatalf("the window opens at %s, want %s", outcome.StartsAt, gate.StartsAt)
		}
	}},
	{"opens exactly at the start of the window", func(s *stockStage) {
		sale := s.openSale(10_000, 10_000)
		gate := s.openGate(10_000)
		gate.StartsAt = s.Now().Add(200 * time.Millisecond).Truncate(time.Millisecond)
		s.must(s.Stock.SetGate(s.Context(), sale, gate, 1))
		s.watchEdge(sale, gate.StartsAt, domain.NotStarted, domain.Accepted)
	}},
	{"closes exactly at the end of the window", func(s *stockStage) {
		sale := s.openSale(10_000, 10_000)
		gate := s.openGate(10_000)
		gate.EndsAt = s.Now().Add(200 * time.Millisecond).Truncate(time.Millisecond)
		s.must(s.Stock.SetGate(s.Context(), sale, gate, 1))
		s.watchEdge(sale, gate.EndsAt, domain.Accepted, domain.SaleEnded)
	}},
	{"takes a moved end for the very next grab", func(s *stockStage) {
		sale := s.openSale(10, 10)
		gate := s.openGate(10)
		s.wantVerdict(sale, s.claim(sale, "alice", 1), domain.Accepted)
		gate.EndsAt = s.Now().Add(-time.Second)
		s.must(s.Stock.SetGate(s.Context(), sale, gate, 1))
		s.wantVerdict(sale, s.claim(sale, "alice", 1), domain.SaleEnded)
		gate.EndsAt = s.Now().Add(time.Hour)
		s.must(s.Stock.SetGate(s.Context(), sale, gate, 1))
		s.wantVerdict(sale, s.claim(sale, "alice", 1), domain.Accepted)
	}},
	{"takes a changed limit for the very next grab", func(s *stockStage) {
		sale := s.openSale(10, 1)
		s.grab(sale, "alice", 1)
		s.wantVerdict(sale, s.claim(sale, "alice", 1), domain.LimitReached)
		s.must(s.Stock.SetGate(s.Context(), sale, s.openGate(3), 1))
		s.grab(sale, "alice", 2)
		s.must(s.Stock.SetGate(s.Context(), sale, s.openGate(2), 1)) // below what she holds
		s.wantVerdict(sale, s.claim(sale, "alice", 1), domain.LimitReached)
		s.grab(sale, "bob", 2)
	}},
	{"refuses limits that are no plain bounded integers", func(s *stockStage) {
		sale := s.openSale(10, 2)
		for _, limit := range []int64{0, -1, domain.MaxInteger + 1} {
			s.wantErr(s.Stock.SetGate(s.Context(), sale, s.openGate(limit), 1), domain.ErrInvalid)
		}
		s.grab(sale, "alice", 2)
		s.wantVerdict(sale, s.claim(sale, "alice", 1), domain.LimitReached)
	}},
	{"comes before limit and stock", func(s *stockStage) {
		sale := s.openSale(1, 1)
		s.grab(sale, "alice", 1)
		gate := s.openGate(1)
		gate.State = domain.Paused
		s.must(s.Stock.SetGate(s.Context(), sale, gate, 1))
		s.wantVerdict(sale, s.claim(sale, "alice", 1), domain.SalePaused)
	}},
	{"comes after the replay", func(s *stockStage) {
		sale := s.openSale(10, 1)
		first := s.request(sale, "alice", "r-1", 1)
		s.wantVerdict(sale, first, domain.Accepted)
		for _, state := range []domain.State{domain.Paused, domain.Closed, domain.Ready} {
			gate := s.openGate(1)
			gate.State = state
			s.must(s.Stock.SetGate(s.Context(), sale, gate, 1))
			s.wantReplay(s.reserve(sale, first)[0], first.Order)
			s.wantReplay(s.reserve(sale, s.request(sale, "alice", "r-1", 1))[0], first.Order)
			s.wantVerdict(sale, s.request(sale, "alice", "r-1", 2), domain.RequestReused)
		}
		tombstone := s.claim(sale, "bob", 1)
		s.release(sale, 0, tombstone.Order)
		s.wantVerdict(sale, tombstone, domain.Withdrawn)
	}},
}

// watchEdge grabs until the verdict changes, and compares every answer with the
// store's clock read before and after it.
func (s *stockStage) watchEdge(sale domain.SaleID, edge time.Time, before, after domain.Verdict) {
	s.Helper()
	end := time.Now().Add(stockPatience)
	for time.Now().Before(end) {
		earliest := s.Now()
		verdict := s.reserve(sale, s.claim(sale, "alice", 1))[0].Verdict
		latest := s.Now()
		switch {
		case verdict == before && !earliest.Before(edge):
			s.Fatalf("%v at %s, which is not before the edge %s", verdict, earliest, edge)
		case verdict == after && latest.Before(edge):
			s.Fatalf("%v at %s, which is before the edge %s", verdict, latest, edge)
		case verdict == after:
			return
		case verdict != before:
			s.Fatalf("verdict is %v, want %v or %v", verdict, before, after)
		}
		time.Sleep(time.Millisecond)
	}
	s.Fatalf("still %v long after the edge", before)
}
