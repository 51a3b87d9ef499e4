package conformance

import (
	"errors"
	"sync/atomic"

	"seckill/domain"
)

// covers S13
var editTests = []stockTest{
	{"adds and withdraws units, and the next grab sees them", func(s *stockStage) {
		sale := s.openSale(2, 10)
		s.grab(sale, "alice", 2)
		s.wantVerdict(sale, s.claim(sale, "bob", 1), domain.SoldOut)
		s.must(s.Stock.SetTotal(s.Context(), sale, 2, 5, 2))
		s.wantUnits(sale, 3, 2, 0)
		s.grab(sale, "bob", 1)
		s.must(s.Stock.SetTotal(s.Context(), sale, 5, 3, 2))
		s.wantUnits(sale, 0, 3, 0)
		s.wantVerdict(sale, s.claim(sale, "carol", 1), domain.SoldOut)
	}},
	{"does nothing a second time", func(s *stockStage) {
		sale := s.openSale(2, 10)
		for range 3 {
			s.must(s.Stock.SetTotal(s.Context(), sale, 2, 5, 2))
		}
		s.wantUnits(sale, 5, 0, 0)
		for range 3 {
			s.must(s.Stock.SetTotal(s.Context(), sale, 5, 4, 3))
		}
		s.wantUnits(sale, 4, 0, 0)
	}},
	{"never goes below what is held or sold", func(s *stockStage) {
		sale := s.openSale(10, 10)
		_, err := s.Stock.Settle(s.Context(), sale, s.grab(sale, "alice", 3))
		s.must(err)
		s.grab(sale, "bob", 4)
		s.wantErr(s.Stock.SetTotal(s.Context(), sale, 10, 6, 2), domain.ErrUnbalanced)
		s.wantUnits(sale, 3, 4, 3)
		s.must(s.Stock.SetTotal(s.Context(), sale, 10, 7, 2))
		s.wantUnits(sale, 0, 4, 3)
	}},
	{"refuses another total than the one seen, an old number, and a sale that is not there", func(s *stockStage) {
		sale := s.newSale()
		s.wantErr(s.Stock.SetTotal(s.Context(), sale, 1, 2, 1), domain.ErrNotReady)
		s.preheat(domain.Load{Sale: sale, Epoch: 1, Gate: s.openGate(2), Total: 10, Fence: 5})
		s.wantErr(s.Stock.SetTotal(s.Context(), sale, 9, 12, 5), domain.ErrConflict)
		s.wantErr(s.Stock.SetTotal(s.Context(), sale, 10, 12, 4), domain.ErrFenced)
		s.wantErr(s.Stock.SetTotal(s.Context(), sale, 10, 0, 5), domain.ErrInvalid)
		s.wantUnits(sale, 10, 0, 0)
		s.must(s.Stock.SetTotal(s.Context(), sale, 10, 12, 7))
		s.wantErr(s.Stock.SetTotal(s.Context(), sale, 12, 13, 6), domain.ErrFenced)
		s.must(s.Stock.Seal(s.Context(), sale, 7, false))
		s.wantErr(s.Stock.SetTotal(s.Context(), sale, 12, 13, 7), domain.ErrNotReady)
		s.must(s.Stock.Preheat(s.Context(), domain.Load{Sale: sale, Epoch: 2, Gate: s.openGate(2), Total: 13, Fence: 7}))
	}},
	{"loses and makes no unit against a crowd", func(s *stockStage) {
		const first = 200
		sale := s.openSale(first, domain.MaxInteger)
		var units, total atomic.Int64
		total.Store(first)
		s.crowd(func(caller int) error {
			for i := range 20 {
				if caller == 0 { // edits have one author at a time: they are made under the sale's lock
					seen := total.Load()
					wanted := seen + int64(7-i%3*5)
					err := s.Stock.SetTotal(s.Context(), sale, seen, wanted, int64(2+i))
					switch {
					case err == nil:
						total.Store(wanted)
					case !errors.Is(err, domain.ErrUnbalanced):
						return err
					}
					continue
				}
				outcomes, err := s.reserveUntilAnswered(sale, []domain.Claim{s.claim(sale, "b", 1)})
				if err != nil {
					return err
				}
				if outcomes[0].Verdict == domain.Accepted {
					units.Add(1)
				}
			}
			return nil
		})
		level := s.level(sale)
		if level.Total != total.Load() || level.Held != units.Load() || !level.Balanced() {
			s.Errorf("level is %+v, want total %d and held %d", level, total.Load(), units.Load())
		}
	}},
}
