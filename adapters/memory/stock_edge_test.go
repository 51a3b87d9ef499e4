package memory_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"seckill/adapters/memory"
	"seckill/domain"
)

// handClock stands still until it is set.
type handClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

var (
	noon    = time.Date(2030, 6, 1, 12, 0, 0, 0, time.UTC)
	oneSale = domain.SaleID{Activity: 1001, SKU: 2001}
)

func openSale(t *testing.T, stock *memory.Stock, gate domain.Gate) {
	t.Helper()
	if err := stock.Seal(t.Context(), oneSale, 1, true); err != nil {
		t.Fatal(err)
	}
	load := domain.Load{Sale: oneSale, Epoch: 1, Gate: gate, Total: 1000, Fence: 1}
	if err := stock.Preheat(t.Context(), load); err != nil {
		t.Fatal(err)
	}
}

func openGate() domain.Gate {
	return domain.Gate{State: domain.Open, StartsAt: noon, EndsAt: noon.Add(time.Hour), PerUserLimit: 1000}
}

func grab(ctx context.Context, stock *memory.Stock, n int) (domain.Outcome, error) {
	claim := domain.Claim{Order: domain.NewOrderID(oneSale, fmt.Sprintf("n%06d", n)), Buyer: "alice", Quantity: 1}
	outcomes, err := stock.Reserve(ctx, oneSale, []domain.Claim{claim})
	if err != nil {
		return domain.Outcome{}, err
	}
	return outcomes[0], nil
}

// covers S3
func TestWindowIsHalfOpen(t *testing.T) {
	clock := &handClock{}
	stock := memory.NewStock(clock)
	openSale(t, stock, openGate())
	for i, step := range []struct {
		now  time.Time
		want domain.Verdict
	}{
		{noon.Add(-time.Hour), domain.NotStarted},
		{noon.Add(-time.Millisecond), domain.NotStarted},
		{noon.Add(-time.Nanosecond), domain.NotStarted},
		{noon, domain.Accepted},
		{noon.Add(time.Hour - time.Nanosecond), domain.Accepted},
		{noon.Add(time.Hour), domain.SaleEnded},
		{noon.Add(2 * time.Hour), domain.SaleEnded},
	} {
		clock.set(step.now)
		outcome, err := grab(t.Context(), stock, i)
		if err != nil || outcome.Verdict != step.want {
			t.Errorf("at %s: %v, %v; want %v", step.now, outcome.Verdict, err, step.want)
		}
	}
}

// covers Q6
func TestBackoffDoublesUpToItsLimit(t *testing.T) {
	clock := &handClock{now: noon}
	stock := memory.NewStock(clock, memory.WithBackoff(time.Second, 5*time.Second))
	openSale(t, stock, openGate())
	if _, err := grab(t.Context(), stock, 1); err != nil {
		t.Fatal(err)
	}
	if got, err := stock.Queue().Receive(t.Context(), 0, 1); err != nil || len(got) != 1 {
		t.Fatalf("received %v, %v", got, err)
	}
	for i, wait := range []time.Duration{1, 2, 4, 5, 5, 5} {
		due := clock.Now().Add(wait * time.Second)
		clock.set(due.Add(-time.Nanosecond))
		if got, err := stock.Queue().Reclaim(t.Context(), 0, 1); err != nil || len(got) != 0 {
			t.Fatalf("before %ds: reclaimed %v, %v", wait, got, err)
		}
		clock.set(due)
		got, err := stock.Queue().Reclaim(t.Context(), 0, 1)
		if err != nil || len(got) != 1 || got[0].Attempts != i+2 {
			t.Fatalf("at %ds: reclaimed %v, %v", wait, got, err)
		}
	}
	clock.set(noon.Add(time.Minute))
	if depth, err := stock.Queue().Depth(t.Context()); err != nil || depth.Orders != 1 || depth.Oldest != time.Minute {
		t.Fatalf("depth is %+v, %v", depth, err)
	}
}

func TestPartitionsAreBounded(t *testing.T) {
	for n, want := range map[int]int{-1: 1, 0: 1, 1: 1, 16: 16, 1_000_000: 1024} {
		queue := memory.NewStock(wallClock{}, memory.WithPartitions(n)).Queue()
		if got := queue.Partitions(); got != want {
			t.Errorf("%d partitions asked for, %d made, want %d", n, got, want)
		}
		for _, p := range []int{-1, want} {
			_, err1 := queue.Receive(t.Context(), p, 1)
			_, err2 := queue.Reclaim(t.Context(), p, 1)
			err3 := queue.Ack(t.Context(), domain.Delivery{ID: "1", Partition: p})
			for _, err := range []error{err1, err2, err3} {
				if !errors.Is(err, domain.ErrInvalid) {
					t.Errorf("partition %d of %d: error is %v", p, want, err)
				}
			}
		}
	}
}

// A receiver that gives up just when it is woken must not swallow the wake-up
// of an entry that another receiver waits for.
func TestReceiversThatGiveUpLeaveEntriesToOthers(t *testing.T) {
	stock := memory.NewStock(wallClock{}, memory.WithBackoff(time.Hour, time.Hour))
	now := time.Now()
	openSale(t, stock, domain.Gate{State: domain.Open, StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour), PerUserLimit: 1000})
	for i := range 200 {
		patient := make(chan int, 1)
		go func() {
			got, _ := stock.Queue().Receive(t.Context(), 0, 1)
			patient <- len(got)
		}()
		ctx, cancel := context.WithCancel(t.Context())
		hasty := make(chan int, 1)
		go func() {
			got, _ := stock.Queue().Receive(ctx, 0, 1)
			hasty <- len(got)
		}()
		go cancel()
		start := time.Now()
		if _, err := grab(t.Context(), stock, i); err != nil {
			t.Fatal(err)
		}
		if n := <-hasty; n == 0 {
			if n := <-patient; n != 1 {
				t.Fatalf("round %d: nobody got the entry after %s", i, time.Since(start))
			}
			continue
		}
		// The hasty one was faster: give the patient one its own.
		if _, err := grab(t.Context(), stock, 1000+i); err != nil {
			t.Fatal(err)
		}
		if n := <-patient; n != 1 {
			t.Fatalf("round %d: the second entry was not received", i)
		}
	}
}

// covers N1: a grab that looked the sale up before it was archived must not
// disappear into the archived account.
func TestArchiveAndGrabsAtTheSameTime(t *testing.T) {
	for round := range 300 {
		stock := memory.NewStock(&handClock{now: noon})
		openSale(t, stock, openGate())
		var (
			all      sync.WaitGroup
			archived error
			outcome  domain.Outcome
		)
		all.Go(func() { archived = stock.Archive(t.Context(), oneSale, 1) })
		all.Go(func() { outcome, _ = grab(t.Context(), stock, round) })
		all.Wait()
		if archived == nil && outcome.Verdict != domain.NotReady {
			t.Fatalf("round %d: archived, and the grab is %v", round, outcome.Verdict)
		}
		if archived != nil && (outcome.Verdict != domain.Accepted || !errors.Is(archived, domain.ErrHasHolds)) {
			t.Fatalf("round %d: the grab is %v, Archive says %v", round, outcome.Verdict, archived)
		}
	}
}
