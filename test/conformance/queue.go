package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"seckill/domain"
)

// Queue holds the order queue of every strategy to the contract of the port
// domain.OrderQueue. Entries are made by Stock.Reserve, as in the engine.
//
// open is called once per sub-test and returns a world that nothing else uses.
//
// covers Q2, Q3, Q5
func Queue(t *testing.T, open func(t *testing.T) StockWorld) {
	runStockTests(t, open, queueTests)
}

// receiveLimit bounds "at most about a second", with room for a busy machine.
const receiveLimit = 3 * time.Second

var queueTests = []stockTest{
	{"has at least one partition and never another number", func(s *stockStage) {
		n := s.Queue.Partitions()
		s.openSale(10, 1)
		if n < 1 || s.Queue.Partitions() != n {
			s.Fatalf("%d partitions first, then %d", n, s.Queue.Partitions())
		}
	}},
	{"waits a while for an entry and then returns none, without an error", func(s *stockStage) {
		s.eachPartition(func(p int) {
			start := time.Now()
			got, err := s.Queue.Receive(s.Context(), p, 10)
			took := time.Since(start)
			if err != nil || len(got) > 0 {
				s.Errorf("received %v, %v from an empty partition", got, err)
			}
			if took > receiveLimit || took < 50*time.Millisecond {
				s.Errorf("Receive waited %s, want about a second", took)
			}
		})
	}},
	{"hands an entry to a receiver that is already waiting", func(s *stockStage) {
		sale := s.openSale(10, 10)
		// On a busy machine a call may end before the grab comes: then once more.
		for range 5 {
			c := s.claim(sale, "alice", 1)
			grabbed := make(chan error, 1)
			time.AfterFunc(100*time.Millisecond, func() {
				_, err := s.Stock.Reserve(s.Context(), sale, []domain.Claim{c})
				grabbed <- err
			})
			got := s.receiveSome(10)
			s.must(<-grabbed)
			if len(got) == 1 {
				if order := got[0].Intents[0].Order; order != c.Order {
					s.Fatalf("received %s, want %s", order, c.Order)
				}
				return
			}
			s.collect(1)
		}
		s.Fatal("Receive never returned an entry that came while it waited")
	}},
	{"hands out entries in the order of their grabs", func(s *stockStage) {
		sale := s.openSale(100, 1)
		var want []domain.OrderID
		for i := range 50 {
			want = append(want, s.grab(sale, fmt.Sprint("b", i), 1))
		}
		for i, intent := range s.drain(50) {
			if intent.Order != want[i] {
				s.Fatalf("intent %d is of %s, want %s", i, intent.Order, want[i])
			}
		}
	}},
	{"keeps a sale in one partition", func(s *stockStage) {
		sales := []domain.SaleID{s.openSale(10, 9), s.openSale(10, 9), s.openSale(10, 9)}
		for range 5 {
			for _, sale := range sales {
				s.grab(sale, "alice", 1)
			}
		}
		homes := map[domain.SaleID]int{}
		for _, d := range s.collect(15) {
			if home, seen := homes[d.Sale]; seen && home != d.Partition {
				s.Fatalf("sale %s is in the partitions %d and %d", d.Sale, home, d.Partition)
			}
			homes[d.Sale] = d.Partition
		}
	}},
	{"hands out no more entries than asked for", func(s *stockStage) {
		sale := s.openSale(10, 9)
		for range 5 {
			s.grab(sale, "alice", 1)
		}
		var got []domain.Delivery
		for range 5 {
			part := s.receiveSome(2)
			if len(part) > 2 {
				s.Fatalf("received %d entries, want at most 2", len(part))
			}
			if got = append(got, part...); len(got) == 5 {
				break
			}
		}
		if len(got) != 5 {
			s.Fatalf("received %d entries, want 5", len(got))
		}
		s.makeDue()
		if part := s.reclaimSome(2); len(part) > 2 {
			s.Fatalf("reclaimed %d entries, want at most 2", len(part))
		}
	}},
	{"stops once it has as many orders as asked for", func(s *stockStage) {
		const entries, perEntry, limit = 12, 50, 120
		sale := s.openSale(entries*perEntry, entries*perEntry)
		for range entries {
			claims := make([]domain.Claim, perEntry)
			for i := range claims {
				claims[i] = s.claim(sale, "alice", 1)
			}
			s.reserve(sale, claims...)
		}
		bounded := func(got []domain.Delivery) {
			if n := len(got); n > 0 && len(intentsOf(got[:n-1])) >= limit {
				s.Fatalf("handed out %d orders, want about %d", len(intentsOf(got)), limit)
			}
		}
		for n := 0; n < entries*perEntry; {
			got := s.receiveSome(limit)
			bounded(got)
			n += len(intentsOf(got))
		}
		s.makeDue()
		for n := 0; n < entries*perEntry; {
			got := s.reclaimSome(limit)
			bounded(got)
			n += len(intentsOf(got))
			s.ack(got...)
		}
	}},
	{"hands each entry to one of many receivers", func(s *stockStage) {
		const entries = 300
		sales := []domain.SaleID{s.openSale(1000, 1000), s.openSale(1000, 1000), s.openSale(1000, 1000)}
		ctx, enough := context.WithTimeout(s.Context(), stockPatience)
		defer enough()
		var (
			mu      sync.Mutex
			seen    = map[domain.OrderID]int{}
			readers sync.WaitGroup
		)
		for p := range s.Queue.Partitions() {
			for range 4 {
				readers.Go(func() {
					for ctx.Err() == nil {
						got, err := s.Queue.Receive(ctx, p, 7)
						if err != nil && ctx.Err() == nil {
							s.Error(err)
						}
						mu.Lock()
						for _, intent := range intentsOf(got) {
							seen[intent.Order]++
						}
						if len(seen) == entries {
							enough()
						}
						mu.Unlock()
					}
				})
			}
		}
		for i := range entries {
			s.grab(sales[i%3], "alice", 1)
		}
		readers.Wait()
		if len(seen) != entries {
			s.Errorf("%d orders were received, want %d", len(seen), entries)
		}
		for order, times := range seen {
			if times != 1 {
				s.Errorf("order %s was received %d times", order, times)
			}
		}
		s.wantDepth(entries)
	}},
	{"brings back what is not acknowledged, later each time", func(s *stockStage) {
		sale := s.openSale(10, 9)
		c := s.request(sale, "alice", "r-1", 2)
		s.wantVerdict(sale, c, domain.Accepted)
		delivered := s.Now()
		first := s.collect(1)[0]
		var waits []time.Duration
		for attempts := 2; attempts <= 4; attempts++ {
			again := s.awaitReclaim()
			now := s.Now()
			waits = append(waits, now.Sub(delivered))
			delivered = now
			if again.Attempts != attempts || again.ID != first.ID || again.Sale != sale {
				s.Fatalf("delivery is %+v, want the attempt %d of %+v", again, attempts, first)
			}
			if len(again.Intents) != 1 || again.Intents[0] != first.Intents[0] {
				s.Fatalf("intents are %+v, want %+v", again.Intents, first.Intents)
			}
		}
		for i, wait := range waits {
			// Never early: a machine that is slow can only make it later.
			if wait < s.Reclaim-2*time.Millisecond {
				s.Errorf("attempt %d came back after %s, before the backoff of %s", i+2, wait, s.Reclaim)
			}
		}
		if last := waits[len(waits)-1]; last < s.Reclaim*3/2 {
			s.Errorf("the backoff does not grow with the attempts: %v", waits)
		}
		s.wantDepth(1)
		s.wantQueued(sale, 2)
	}},
	{"does not reclaim what was never delivered", func(s *stockStage) {
		sale := s.openSale(10, 9)
		s.grab(sale, "alice", 1)
		s.makeDue()
		if got := s.reclaimSome(10); len(got) > 0 {
			s.Fatalf("reclaimed %+v", got)
		}
		if d := s.collect(1)[0]; d.Attempts != 1 {
			s.Fatalf("the first delivery is attempt %d", d.Attempts)
		}
	}},
	{"does not receive again what was delivered before", func(s *stockStage) {
		sale := s.openSale(10, 9)
		first := s.grab(sale, "alice", 1)
		s.collect(1)
		s.makeDue()
		second := s.grab(sale, "alice", 1)
		intents := intentsOf(s.collect(1))
		if intents[0].Order != second {
			s.Fatalf("received %s, want %s and not %s", intents[0].Order, second, first)
		}
	}},
	{"never brings back what is acknowledged", func(s *stockStage) {
		sale := s.openSale(10, 9)
		gone, stays := s.grab(sale, "alice", 1), s.grab(sale, "alice", 1)
		for _, d := range s.collect(2) {
			if d.Intents[0].Order == gone {
				s.ack(d)
			}
		}
		// The other entry, delivered at the same time, shows when both are due.
		for range 3 {
			if d := s.awaitReclaim(); d.Intents[0].Order != stays {
				s.Fatalf("order %s came back after its acknowledgement", d.Intents[0].Order)
			}
		}
		s.wantDepth(1)
	}},
	{"acknowledges once when it is told twice", func(s *stockStage) {
		sale := s.openSale(20, 9)
		s.grab(sale, "alice", 3)
		done := s.collect(1)
		s.grab(sale, "alice", 2)
		for range 3 {
			s.ack(done...)
			s.ack(append(done, done...)...)
		}
		s.ack()
		s.wantDepth(1)
		s.wantQueued(sale, 2)
		s.drain(1)
		s.ack(done...)
		s.wantDepth(0)
		s.wantQueued(sale, 0)
	}},
	{"takes the acknowledgement of an earlier delivery of the same entry", func(s *stockStage) {
		sale := s.openSale(10, 9)
		s.grab(sale, "alice", 1)
		slow := s.collect(1)
		s.awaitReclaim()
		s.ack(slow...)
		s.wantDepth(0)
		s.wantQueued(sale, 0)
	}},
	{"lets one caller reclaim an entry, not all of them", func(s *stockStage) {
		sale := s.openSale(100, 99)
		for range 40 {
			s.grab(sale, "alice", 1)
		}
		s.collect(40)
		s.makeDue()
		var (
			mu       sync.Mutex
			attempts = map[domain.OrderID][]int{}
			callers  sync.WaitGroup
		)
		for range 8 {
			callers.Go(func() {
				for got := s.reclaimSome(100); len(got) > 0; got = s.reclaimSome(100) {
					mu.Lock()
					for _, d := range got {
						attempts[d.Intents[0].Order] = append(attempts[d.Intents[0].Order], d.Attempts)
					}
					mu.Unlock()
				}
			})
		}
		callers.Wait()
		if len(attempts) != 40 {
			s.Errorf("%d orders came back, want 40", len(attempts))
		}
		for order, list := range attempts {
			seen := map[int]bool{}
			for _, attempt := range list {
				// A slow machine may let the next backoff pass, too: then it is another attempt.
				if seen[attempt] || attempt < 2 {
					s.Errorf("order %s was reclaimed at the attempts %v", order, list)
				}
				seen[attempt] = true
			}
		}
	}},
	{"falls to nothing when everything is acknowledged", func(s *stockStage) {
		one, two := s.openSale(100, 99), s.openSale(100, 99)
		if d := s.depth(); d.Orders != 0 || d.Oldest != 0 {
			s.Fatalf("depth is %+v, want none", d)
		}
		for range 3 {
			s.reserve(one, s.claim(one, "alice", 2), s.claim(one, "bob", 1))
			s.grab(two, "alice", 4)
		}
		s.wantDepth(9)
		s.wantQueued(one, 9)
		s.wantQueued(two, 12)
		deliveries := s.collect(9)
		s.wantDepth(9)
		s.ack(deliveries...)
		s.wantQueued(one, 0)
		s.wantQueued(two, 0)
		if d := s.depth(); d.Orders != 0 || d.Oldest != 0 {
			s.Fatalf("depth is %+v, want none", d)
		}
		s.makeDue()
		if got := s.reclaimSome(100); len(got) > 0 {
			s.Fatalf("reclaimed %+v", got)
		}
	}},
	{"tells the age of the oldest entry, delivered or not", func(s *stockStage) {
		sale := s.openSale(10, 9)
		earliest := s.Now()
		s.grab(sale, "alice", 1)
		latest := s.Now()
		s.collect(1)
		s.makeDue()
		s.grab(sale, "bob", 1)
		before := s.Now()
		oldest := s.depth().Oldest
		after := s.Now()
		low, high := before.Sub(latest)-2*time.Millisecond, after.Sub(earliest)+2*time.Millisecond
		if oldest < low || oldest > high {
			s.Fatalf("the oldest entry is %s old, want %s to %s", oldest, low, high)
		}
	}},
	{"returns promptly when the context ends, and loses nothing", func(s *stockStage) {
		sale := s.openSale(10, 9)
		ctx, cancel := context.WithCancel(s.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		start := time.Now()
		s.eachPartition(func(p int) {
			got, err := s.Queue.Receive(ctx, p, 10)
			if len(got) > 0 || err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, domain.ErrUnavailable) {
				s.Errorf("received %v, %v", got, err)
			}
		})
		if took := time.Since(start); took > 700*time.Millisecond {
			s.Errorf("Receive returned %s after it began, want soon after 50ms", took)
		}
		// A reader that has gone may have taken the entry with it: then it comes back.
		order := s.grab(sale, "alice", 1)
		end := time.Now().Add(stockPatience)
		for time.Now().Before(end) {
			got := append(s.receiveSome(10), s.reclaimSome(10)...)
			if len(got) > 0 {
				if got[0].Intents[0].Order != order {
					s.Fatalf("received %s, want %s", got[0].Intents[0].Order, order)
				}
				return
			}
		}
		s.Fatal("the entry is lost")
	}},
}

// eachPartition runs f for all partitions at once.
func (s *stockStage) eachPartition(f func(partition int)) {
	var all sync.WaitGroup
	for p := range s.Queue.Partitions() {
		all.Go(func() { f(p) })
	}
	all.Wait()
}

// receiveSome asks all partitions at once, each for up to max entries, until
// one of them has some.
func (s *stockStage) receiveSome(limit int) []domain.Delivery {
	s.Helper()
	ctx, enough := context.WithCancel(s.Context())
	defer enough()
	var (
		mu  sync.Mutex
		all []domain.Delivery
	)
	s.eachPartition(func(p int) {
		got, err := s.Queue.Receive(ctx, p, limit)
		if err != nil && ctx.Err() == nil {
			s.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if all = append(all, got...); len(all) > 0 {
			enough()
		}
	})
	return all
}

// reclaimSome asks every partition once for up to max entries.
func (s *stockStage) reclaimSome(limit int) []domain.Delivery {
	var all []domain.Delivery
	for p := range s.Queue.Partitions() {
		got, err := s.Queue.Reclaim(s.Context(), p, limit)
		if err != nil {
			s.Error(err)
		}
		all = append(all, got...)
	}
	return all
}

// awaitReclaim asks until one entry comes back.
func (s *stockStage) awaitReclaim() domain.Delivery {
	s.Helper()
	end := time.Now().Add(stockPatience)
	for time.Now().Before(end) {
		if got := s.reclaimSome(10); len(got) == 1 {
			return got[0]
		} else if len(got) > 1 {
			s.Fatalf("%d entries came back, want one: %+v", len(got), got)
		}
		time.Sleep(time.Millisecond)
	}
	s.Fatal("nothing came back")
	return domain.Delivery{}
}

// makeDue waits until whatever was delivered once is past its backoff, by the
// store's clock.
func (s *stockStage) makeDue() {
	s.Helper()
	due := s.Now().Add(s.Reclaim + 20*time.Millisecond)
	end := time.Now().Add(stockPatience)
	for s.Now().Before(due) {
		if time.Now().After(end) {
			s.Fatal("the store's clock stands still")
		}
		time.Sleep(time.Millisecond)
	}
}
