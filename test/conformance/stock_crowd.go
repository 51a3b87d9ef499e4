package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"seckill/domain"
)

const crowdCallers = 64

// covers S5, N1, N5, P3, T6
var crowdTests = []stockTest{
	{"sells a stock of 500 to 64 callers without one unit too many or too few", func(s *stockStage) {
		const total = 500
		sale := s.openSale(total, domain.MaxInteger)
		var (
			mu       sync.Mutex
			accepted = map[domain.OrderID]int64{}
			units    int64
		)
		s.crowd(func(caller int) error {
			random := rand.New(rand.NewPCG(uint64(caller), 1))
			buyer := fmt.Sprint("b", caller)
			for range 2 * total {
				claims := make([]domain.Claim, 1+random.IntN(6))
				single := len(claims) == 1
				for i := range claims {
					claims[i] = s.claim(sale, buyer, 1+random.Int64N(3))
				}
				if single {
					claims[0].Quantity = 1
				}
				outcomes, err := s.reserveUntilAnswered(sale, claims)
				if err != nil {
					return err
				}
				mu.Lock()
				for i, outcome := range outcomes {
					switch outcome.Verdict {
					case domain.Accepted:
						accepted[outcome.Order] = claims[i].Quantity
						units += claims[i].Quantity
					case domain.SoldOut:
					default:
						err = fmt.Errorf("verdict is %v", outcome.Verdict)
					}
				}
				mu.Unlock()
				// Only a refused single unit says that nothing is left.
				if err != nil || single && outcomes[0].Verdict == domain.SoldOut {
					return err
				}
			}
			return errors.New("never sold out")
		})
		if units != total {
			s.Errorf("%d units were accepted of a stock of %d", units, total)
		}
		s.wantUnits(sale, 0, total, 0)
		s.wantQueued(sale, total)
		for _, intent := range s.drain(len(accepted)) {
			if accepted[intent.Order] != intent.Quantity {
				s.Errorf("intent %+v was not accepted, or came twice", intent)
			}
			delete(accepted, intent.Order)
		}
		if len(accepted) > 0 {
			s.Errorf("%d accepted orders are not in the queue", len(accepted))
		}
	}},
	{"keeps one buyer's limit against 64 callers", func(s *stockStage) {
		sale := s.openSale(1000, 7)
		var units atomic.Int64
		s.crowd(func(int) error {
			for range 5 {
				outcomes, err := s.reserveUntilAnswered(sale, []domain.Claim{s.claim(sale, "alice", 1), s.claim(sale, "alice", 2)})
				if err != nil {
					return err
				}
				for i, outcome := range outcomes {
					if outcome.Verdict == domain.Accepted {
						units.Add(int64(i + 1))
					}
				}
			}
			return nil
		})
		// Claims of one unit follow the last of two, so the limit is used up.
		if units.Load() != 7 {
			s.Errorf("alice got %d units, want 7", units.Load())
		}
		s.wantUnits(sale, 993, 7, 0)
	}},
	{"makes exactly one order of 300 equal requests at once", func(s *stockStage) {
		sale := s.openSale(1000, 1000)
		var (
			mu     sync.Mutex
			orders = map[domain.OrderID]int{}
			fresh  int
		)
		s.crowdOf(300, func(int) error {
			outcomes, err := s.reserveUntilAnswered(sale, []domain.Claim{s.request(sale, "alice", "r-1", 2)})
			if err != nil {
				return err
			}
			if outcomes[0].Verdict != domain.Accepted {
				return fmt.Errorf("verdict is %v", outcomes[0].Verdict)
			}
			mu.Lock()
			defer mu.Unlock()
			orders[outcomes[0].Order]++
			if !outcomes[0].Replayed {
				fresh++
			}
			return nil
		})
		if len(orders) != 1 || fresh > 1 {
			s.Errorf("%d orders, %d of them fresh, want 1", len(orders), fresh)
		}
		s.wantUnits(sale, 998, 2, 0)
		s.drain(1)
	}},
	{"frees each hold once when all callers release all of them", func(s *stockStage) {
		sale := s.openSale(200, 2)
		var holds []domain.OrderID
		for i := range 100 {
			holds = append(holds, s.grab(sale, fmt.Sprint("b", i), 2))
		}
		s.wantUnits(sale, 0, 200, 0)
		var freed atomic.Int64
		s.crowd(func(caller int) error {
			random := rand.New(rand.NewPCG(uint64(caller), 2))
			mine := append([]domain.OrderID(nil), holds...)
			random.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
			for from := 0; from < len(mine); from += 10 {
				err := s.untilAnswered(func(ctx context.Context) error {
					units, err := s.Stock.Release(ctx, sale, mine[from:from+10]...)
					freed.Add(units)
					return err
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		if freed.Load() > 200 {
			s.Errorf("%d units came free of 200", freed.Load())
		}
		s.wantUnits(sale, 200, 0, 0)
	}},
	{"settles or releases each hold when both happen at once", func(s *stockStage) {
		sale := s.openSale(50, 1)
		var holds []domain.OrderID
		for i := range 50 {
			holds = append(holds, s.grab(sale, fmt.Sprint("b", i), 1))
		}
		s.crowd(func(caller int) error {
			for _, hold := range holds {
				err := s.untilAnswered(func(ctx context.Context) error {
					var err error
					if caller%2 == 0 {
						_, err = s.Stock.Settle(ctx, sale, hold)
					} else {
						_, err = s.Stock.Release(ctx, sale, hold)
					}
					return err
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		level := s.level(sale)
		if level.Held != 0 || level.Available+level.Sold != 50 {
			s.Errorf("level is %+v, want every hold settled or released", level)
		}
	}},
	{"never accepts an order whose release came at the same time and won", func(s *stockStage) {
		sale := s.openSale(crowdCallers, 1)
		s.crowd(func(caller int) error {
			c := s.claim(sale, fmt.Sprint("b", caller), 1)
			released := make(chan error, 1)
			go func() {
				released <- s.untilAnswered(func(ctx context.Context) error {
					_, err := s.Stock.Release(ctx, sale, c.Order)
					return err
				})
			}()
			outcomes, err := s.reserveUntilAnswered(sale, []domain.Claim{c})
			if err := errors.Join(err, <-released); err != nil {
				return err
			}
			if v := outcomes[0].Verdict; v != domain.Accepted && v != domain.Withdrawn {
				return fmt.Errorf("verdict is %v", v)
			}
			return nil
		})
		s.wantUnits(sale, crowdCallers, 0, 0)
	}},
}

// momentTests are about what a reader sees in the middle of other calls.
// covers N1
var momentTests = []stockTest{
	{"stays balanced at every moment while callers grab, release and settle", func(s *stockStage) {
		sale := s.openSale(100, 20)
		done := make(chan struct{})
		watched := make(chan error, 1)
		go func() {
			for {
				select {
				case <-done:
					watched <- nil
					return
				default:
				}
				audit, err := s.Stock.Audit(s.Context(), sale)
				switch {
				case transient(err):
				case err != nil:
					watched <- err
					return
				case !audit.Balanced():
					watched <- fmt.Errorf("audit is %+v", audit)
					return
				}
			}
		}()
		s.crowdOf(8, func(caller int) error {
			random := rand.New(rand.NewPCG(uint64(caller), 3))
			for range 40 {
				c := s.claim(sale, fmt.Sprint("b", random.IntN(6)), 1+random.Int64N(5))
				if _, err := s.reserveUntilAnswered(sale, []domain.Claim{c}); err != nil {
					return err
				}
				settles := random.IntN(10) == 0
				err := s.untilAnswered(func(ctx context.Context) error {
					var err error
					if settles {
						_, err = s.Stock.Settle(ctx, sale, c.Order)
					} else {
						_, err = s.Stock.Release(ctx, sale, c.Order)
					}
					return err
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		close(done)
		s.must(<-watched)
	}},
}

func (s *stockStage) crowd(work func(caller int) error) {
	s.Helper()
	s.crowdOf(crowdCallers, work)
}

// crowdOf lets callers start at the same moment and waits for all of them.
func (s *stockStage) crowdOf(callers int, work func(caller int) error) {
	s.Helper()
	var (
		start  = make(chan struct{})
		errs   = make([]error, callers)
		finish sync.WaitGroup
	)
	for caller := range callers {
		finish.Go(func() {
			<-start
			errs[caller] = work(caller)
		})
	}
	close(start)
	finish.Wait()
	s.must(errors.Join(errs...))
}

// reserveUntilAnswered repeats a call whose outcome is unknown, as the contract
// allows. A strategy that locks or retries optimistically may be busy for long
// in a crowd; what counts is that a repeat deducts nothing twice.
func (s *stockStage) reserveUntilAnswered(sale domain.SaleID, claims []domain.Claim) (outcomes []domain.Outcome, err error) {
	err = s.untilAnswered(func(ctx context.Context) error {
		outcomes, err = s.Stock.Reserve(ctx, sale, claims)
		return err
	})
	return outcomes, err
}

func (s *stockStage) untilAnswered(call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(s.Context(), 3*stockPatience)
	defer cancel()
	for {
		err := call(ctx)
		if !transient(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Millisecond + time.Duration(rand.Int64N(int64(5*time.Millisecond)))):
		}
	}
}

func transient(err error) bool {
	return errors.Is(err, domain.ErrUnavailable) || errors.Is(err, domain.ErrBusy)
}
