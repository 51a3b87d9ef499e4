package conformance

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"seckill/domain"
)

// ledgerWord is a random word.
func ledgerWord() string { return fmt.Sprintf("%016x", rand.Uint64()) }

// together runs n functions at the same time and waits for all.
func (l ledgerTest) together(n int, run func(i int) error) {
	l.Helper()
	var group sync.WaitGroup
	start := make(chan struct{})
	failed := make(chan error, n)
	for i := range n {
		group.Go(func() {
			<-start
			if err := run(i); err != nil {
				failed <- err
			}
		})
	}
	close(start)
	group.Wait()
	close(failed)
	for err := range failed {
		l.Error(err)
	}
}

var ledgerRaceTests = map[string]func(ledgerTest){
	// covers Q7 Q3 N2
	"OverlappingBatchesNeverOversell": func(l ledgerTest) {
		const total, limit = 60, 2
		s := l.sale(total, limit)
		var pool []domain.Order
		for i := range 120 {
			o := s.order(domain.BuyerID(fmt.Sprintf("b%d", i%40)), int64(1+i%2))
			o.Request = domain.RequestID(fmt.Sprintf("r%d", i%50))
			pool = append(pool, o)
		}
		ctx := l.ctx()
		var mutex sync.Mutex
		fresh := map[domain.OrderID]int{}
		answers := map[domain.OrderID]domain.Status{}
		l.together(50, func(i int) error {
			first := i * len(pool) / 50
			batch := slices.Clone(slices.Concat(pool, pool)[first : first+20])
			rand.Shuffle(len(batch), func(a, b int) { batch[a], batch[b] = batch[b], batch[a] })
			placed, err := l.Place(ctx, batch)
			if err != nil {
				return err
			}
			mutex.Lock()
			defer mutex.Unlock()
			for _, p := range placed {
				if p.Err != nil {
					return p.Err
				}
				if p.Fresh {
					fresh[p.Order.ID]++
				}
				if was, ok := answers[p.Order.ID]; ok && was != p.Order.Status {
					return fmt.Errorf("order %s is %s and %s", p.Order.ID, was, p.Order.Status)
				}
				answers[p.Order.ID] = p.Order.Status
			}
			return nil
		})
		got := s.tally()
		if got.Pending > total || got.Pending+got.Rejected != 180 {
			l.Errorf("account %+v", got)
		}
		if len(answers) != len(pool) {
			l.Errorf("%d orders answered, want %d", len(answers), len(pool))
		}
		for id, n := range fresh {
			if n != 1 {
				l.Errorf("order %s was written %d times", id, n)
			}
		}
		units := map[domain.BuyerID]int64{}
		holds, err := l.Holds(l.ctx(), s.SaleID, "", 1000)
		l.must(err)
		live := 0
		for _, o := range holds {
			if o.Status == domain.Pending {
				units[o.Buyer] += o.Quantity
				live++
			}
		}
		for buyer, n := range units {
			if n > limit {
				l.Errorf("buyer %s has %d units", buyer, n)
			}
		}
		if n := int64(len(s.effects())); n != int64(len(pool)-live) {
			l.Errorf("%d effects for %d rejections", n, len(pool)-live)
		}
	},
	// covers Q5
	"RedeliveryInParallel": func(l ledgerTest) {
		s := l.sale(1000, 1)
		batch := s.orders(200)
		ctx := l.ctx()
		var mutex sync.Mutex
		fresh := 0
		l.together(8, func(int) error {
			placed, err := l.Place(ctx, batch)
			mutex.Lock()
			defer mutex.Unlock()
			for _, p := range placed {
				if p.Fresh {
					fresh++
				}
				if p.Order.Status != domain.Pending {
					return fmt.Errorf("order is %s %s", p.Order.Status, p.Order.Reason)
				}
			}
			return err
		})
		if fresh != 200 {
			l.Errorf("%d fresh orders, want 200", fresh)
		}
		s.counts(domain.Tally{Pending: 200})
	},
	// covers Q4: many consumers, one hot row, no order lost
	"DisjointBatches": func(l ledgerTest) {
		a, b := l.sale(1000, 1000), l.sale(1000, 1000)
		ctx := l.ctx()
		l.together(12, func(i int) error {
			var batch []domain.Order
			for n := range 40 {
				buyer := domain.BuyerID(fmt.Sprintf("b%d", (n*7+i)%13))
				batch = append(batch, a.order(buyer, 1), b.order(buyer, 1))
			}
			placed, err := l.Place(ctx, batch)
			for _, p := range placed {
				if p.Order.Status != domain.Pending {
					return fmt.Errorf("order is %s %s: %v", p.Order.Status, p.Order.Reason, p.Err)
				}
			}
			return err
		})
		a.counts(domain.Tally{Pending: 480})
		b.counts(domain.Tally{Pending: 480})
	},
	// covers P2 P3
	"PayCancelExpireHaveOneWinner": func(l ledgerTest) {
		const rounds, rivals = 8, 6
		s := l.shortSale(rounds, 1)
		orders := s.orders(rounds)
		s.place(orders...)
		l.until("the sale is due", func() bool { return slices.Contains(l.dueSales(), s.SaleID) })
		ctx := l.ctx()
		var mutex sync.Mutex
		wins := map[domain.OrderID][]domain.Status{}
		won := func(e domain.Effect, err error) error {
			if errors.Is(err, domain.ErrOrderClosed) || err == nil && e.ID == 0 {
				return nil
			}
			if err == nil {
				mutex.Lock()
				defer mutex.Unlock()
				wins[e.Order.ID] = append(wins[e.Order.ID], e.Order.Status)
			}
			return err
		}
		l.together(rounds*rivals, func(i int) error {
			id := orders[i%rounds].ID
			switch i / rounds % 3 {
			case 0:
				return won(l.Pay(ctx, id, "p"))
			case 1:
				return won(l.Cancel(ctx, id))
			}
			effects, err := l.Expire(ctx, s.SaleID, 2, domain.Fence{})
			for _, e := range effects {
				_ = won(e, nil)
			}
			return err
		})
		var want domain.Tally
		for _, o := range orders {
			if len(wins[o.ID]) > 1 {
				l.Errorf("order %s won as %v", o.ID, wins[o.ID])
			}
			switch l.find(o.ID).Status {
			case domain.Paid:
				want.Paid++
			case domain.Cancelled:
				want.Cancelled++
			case domain.Expired:
				want.Expired++
			case domain.Pending:
				want.Pending++
			}
		}
		s.counts(want)
		// What was let go can be bought again, and not one unit more.
		free := rounds - want.Paid - want.Pending
		for i := range free + 1 {
			p := s.place(s.order(domain.BuyerID(fmt.Sprintf("next%d", i)), 1))[0]
			if (p.Order.Status == domain.Pending) != (i < free) {
				l.Errorf("buyer %d of %d free units: %s %s", i, free, p.Order.Status, p.Order.Reason)
			}
		}
	},
	// covers P3
	"HundredCancelsFreeOnce": func(l ledgerTest) {
		s := l.sale(5, 5)
		keep, o := s.pending(s.order("7", 2)), s.pending(s.order("7", 3))
		ctx := l.ctx()
		l.together(100, func(int) error {
			_, err := l.Cancel(ctx, o.ID)
			return err
		})
		s.counts(domain.Tally{Pending: 2, Cancelled: 3})
		if n := len(s.effects()); n != 1 {
			l.Errorf("%d effects", n)
		}
		_, err := l.Pay(ctx, keep.ID, "p")
		l.must(err)
	},
	// covers P5
	"LatePaymentsShareWhatIsLeft": func(l ledgerTest) {
		const buyers, units = 10, 4
		s := l.shortSale(buyers, 1)
		orders := s.orders(buyers)
		s.place(orders...)
		left := buyers
		l.until("all are expired", func() bool {
			effects, err := l.Expire(l.ctx(), s.SaleID, buyers, domain.Fence{})
			l.must(err)
			left -= len(effects)
			return left == 0
		})
		s.pending(s.order("other", 1))
		s.activity.SKUs[0].Total = 1 + units
		l.must(l.Save(l.ctx(), s.activity))
		ctx := l.ctx()
		l.together(buyers*2, func(i int) error {
			_, err := l.PayLate(ctx, orders[i%buyers].ID, "p", true)
			return err
		})
		s.counts(domain.Tally{Pending: 1, Paid: units, RefundDue: buyers - units})
	},
	// covers L5
	"FencesAreAllDifferent": func(l ledgerTest) {
		word, ctx := ledgerWord(), l.ctx()
		var mutex sync.Mutex
		seen, newest := map[int64]bool{}, int64(0)
		l.together(100, func(i int) error {
			var last int64
			// Some call for a key of their own, which nobody has called for yet.
			for _, key := range []string{"race:" + word, fmt.Sprintf("race:%s:%d", word, i/2)} {
				n, err := l.NextFence(ctx, key)
				if err != nil {
					return err
				}
				if n <= last {
					return fmt.Errorf("number %d after %d", n, last)
				}
				last = n
				mutex.Lock()
				twice := seen[n]
				seen[n], newest = true, max(newest, n)
				mutex.Unlock()
				if twice {
					return fmt.Errorf("number %d twice", n)
				}
			}
			return nil
		})
		if next, err := l.NextFence(ctx, "race:"+word); err != nil || next <= newest {
			l.Errorf("next number %d %v, the newest was %d", next, err, newest)
		}
	},
	// covers L5: only the newest number of a key is good, whoever minted when.
	"OneFenceIsLeft": func(l ledgerTest) {
		s, ctx, key := l.sale(1000, 1), l.ctx(), "race:"+ledgerWord()
		numbers := make([]int64, 20)
		l.together(len(numbers), func(i int) (err error) {
			numbers[i], err = l.NextFence(ctx, key)
			return err
		})
		for _, n := range numbers {
			_, err := l.BeginEpoch(ctx, s.SaleID, domain.Fence{Key: key, Number: n})
			if n == slices.Max(numbers) {
				l.must(err)
			} else {
				l.fails(err, domain.ErrFenced)
			}
		}
	},
	// covers Q10
	"AllAgree": func(l ledgerTest) {
		name, ctx := "race:"+ledgerWord(), l.ctx()
		answers := make([]string, 20)
		l.together(20, func(i int) (err error) {
			answers[i], err = l.Agree(ctx, name, fmt.Sprint(i))
			return err
		})
		for _, answer := range answers {
			if answer != answers[0] {
				l.Errorf("%q and %q", answer, answers[0])
			}
		}
	},
	// covers Q6
	"BuriedOnce": func(l ledgerTest) {
		s, ctx := l.sale(10, 5), l.ctx()
		letter := s.letter("7")
		l.together(20, func(int) error { return l.Bury(ctx, letter) })
		l.letterOf(letter.Payload)
		s.effectOf(letter.Intent.Order, domain.Rejected)
	},
	// covers Q5 Q6: an order is placed or buried. Both would release its hold
	// although it is pending.
	"PlaceOrBury": func(l ledgerTest) {
		ctx := l.ctx()
		s := l.sale(1000, 1000)
		for range 40 {
			letter, orders := s.letter("7"), s.orders(5)
			id := letter.Intent.Order
			orders[2].ID = id
			l.together(2, func(i int) error {
				if i == 0 {
					return l.Bury(ctx, letter)
				}
				placed, err := l.Place(ctx, orders)
				if err == nil && placed[4].Order.Status != domain.Pending {
					return fmt.Errorf("a neighbour is %s %s", placed[4].Order.Status, placed[4].Order.Reason)
				}
				return err
			})
			released := slices.ContainsFunc(s.effects(), func(e domain.Effect) bool { return e.Hold == id })
			if pending := l.find(id).Status == domain.Pending; pending == released {
				l.Fatalf("pending %v, released %v", pending, released)
			}
			if released {
				l.letterOf(letter.Payload)
			} else {
				l.noLetter(letter.Payload)
			}
		}
	},
	// covers N7: once an epoch has begun, nothing of an earlier one is placed.
	"NothingOldAfterAnEpochBegan": func(l ledgerTest) {
		ctx := l.ctx()
		for range 10 {
			s := l.sale(1000, 1000)
			var began int64
			l.together(9, func(i int) error {
				if i == 0 {
					if _, err := l.BeginEpoch(ctx, s.SaleID, domain.Fence{}); err != nil {
						return err
					}
					account, err := l.Tally(ctx, s.SaleID)
					began = account.Pending
					return err
				}
				for range 3 {
					placed, err := l.Place(ctx, []domain.Order{s.order("7", 1), s.order("8", 1)})
					if err != nil {
						return err
					}
					for _, p := range placed {
						if p.Order.Status != domain.Pending && p.Order.Reason != domain.ReasonStaleEpoch {
							return fmt.Errorf("order is %s %s", p.Order.Status, p.Order.Reason)
						}
					}
				}
				return nil
			})
			if account := s.tally(); account.Pending != began {
				l.Errorf("%d units pending when the epoch began, %d in the end", began, account.Pending)
			}
		}
	},
	// covers N7
	"EpochsAreAllDifferent": func(l ledgerTest) {
		s, ctx := l.sale(10, 1), l.ctx()
		var mutex sync.Mutex
		seen := map[int64]bool{}
		l.together(12, func(int) error {
			epoch, err := l.BeginEpoch(ctx, s.SaleID, domain.Fence{})
			mutex.Lock()
			defer mutex.Unlock()
			if seen[epoch] {
				return fmt.Errorf("epoch %d twice", epoch)
			}
			seen[epoch] = true
			return err
		})
	},
	"SavesInParallel": func(l ledgerTest) {
		a, ctx := l.create(l.activity(10, 2)), l.ctx()
		a.SKUs = append(a.SKUs, domain.SKU{ID: 2002, Name: "y", Price: 2, Total: 30, PerUserLimit: 4, Segments: 1})
		l.together(12, func(int) error { return l.Save(ctx, a) })
		l.stored(a)
	},
	"CreatedOnce": func(l ledgerTest) {
		a, ctx := l.activity(10, 2), l.ctx()
		var created atomic.Int64
		l.together(12, func(int) error {
			err := l.Save(ctx, a)
			if err == nil {
				created.Add(1)
			}
			if errors.Is(err, domain.ErrConflict) {
				return nil
			}
			return err
		})
		if n := created.Load(); n != 1 {
			l.Errorf("created %d times", n)
		}
		a.State = domain.Draft
		l.stored(a)
	},
	// covers S1: what was judged in one state is not written in another. Each
	// state has its own total, so a write that came too late shows.
	"SaveAndSetStateAreOneAfterTheOther": func(l ledgerTest) {
		ctx := l.ctx()
		for range 10 {
			a := l.create(l.activity(10, 2))
			var ready domain.Activity
			l.together(6, func(i int) error {
				if i == 0 {
					if err := l.SetState(ctx, a.ID, domain.Draft, domain.Ready); err != nil {
						return err
					}
					var err error
					ready, err = l.Activity(ctx, a.ID)
					return err
				}
				changed := a
				changed.SKUs = slices.Clone(a.SKUs)
				for n := range int64(5) {
					changed.SKUs[0].Total = int64(100*i) + n
					if err := l.Save(ctx, changed); err != nil && !errors.Is(err, domain.ErrConflict) {
						return err
					}
				}
				return nil
			})
			l.stored(ready)
		}
	},
}
