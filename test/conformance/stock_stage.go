package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"seckill/domain"
)

// stockPatience bounds every wait of the suites. It is long: only a failing test
// ever waits that long.
const stockPatience = 10 * time.Second

// stockStage is one sub-test's world and the sales it made.
type stockStage struct {
	*testing.T
	StockWorld
	sales []domain.SaleID
}

// newSale names a sale that is not preheated.
func (s *stockStage) newSale() domain.SaleID {
	sale := domain.SaleID{
		Activity: domain.ActivityID(1 + rand.Int64N(domain.MaxInteger)),
		SKU:      domain.SKUID(1 + rand.Int64N(domain.MaxInteger)),
	}
	s.sales = append(s.sales, sale)
	return sale
}

// openSale preheats and opens a sale in the middle of its window.
func (s *stockStage) openSale(total, limit int64) domain.SaleID {
	s.Helper()
	sale := s.newSale()
	s.preheat(domain.Load{Sale: sale, Epoch: 1, Gate: s.openGate(limit), Total: total, Fence: 1})
	return sale
}

func (s *stockStage) openGate(limit int64) domain.Gate {
	now := s.Now()
	return domain.Gate{
		State:        domain.Open,
		StartsAt:     now.Add(-time.Hour).Truncate(time.Millisecond),
		EndsAt:       now.Add(time.Hour).Truncate(time.Millisecond),
		PerUserLimit: limit,
	}
}

// preheat seals, by force where the load is a rebuild, and loads.
func (s *stockStage) preheat(load domain.Load) {
	s.Helper()
	s.must(s.Stock.Seal(s.Context(), load.Sale, load.Fence, len(load.Holds) > 0))
	s.must(s.Stock.Preheat(s.Context(), load))
}

// mintOrder makes an order id as the engine does: unique, lower-case.
func mintOrder(sale domain.SaleID) domain.OrderID {
	return domain.NewOrderID(sale, fmt.Sprintf("%016x", rand.Uint64()))
}

// claim asks for units under a fresh order id, without a request id.
func (s *stockStage) claim(sale domain.SaleID, buyer string, quantity int64) domain.Claim {
	return domain.Claim{Order: mintOrder(sale), Buyer: domain.BuyerID(buyer), Quantity: quantity}
}

// request is a claim with a request id.
func (s *stockStage) request(sale domain.SaleID, buyer, id string, quantity int64) domain.Claim {
	c := s.claim(sale, buyer, quantity)
	c.Request = domain.RequestID(id)
	return c
}

func (s *stockStage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("unexpected error: %v", err)
	}
}

// wantErr fails unless err is the sentinel.
func (s *stockStage) wantErr(err, sentinel error) {
	s.Helper()
	if !errors.Is(err, sentinel) {
		s.Fatalf("error is %v, want %v", err, sentinel)
	}
}

// reserve decides claims in one call.
func (s *stockStage) reserve(sale domain.SaleID, claims ...domain.Claim) []domain.Outcome {
	s.Helper()
	outcomes, err := s.Stock.Reserve(s.Context(), sale, claims)
	s.must(err)
	if len(outcomes) != len(claims) {
		s.Fatalf("%d outcomes for %d claims", len(outcomes), len(claims))
	}
	return outcomes
}

// grab makes one fresh hold.
func (s *stockStage) grab(sale domain.SaleID, buyer string, quantity int64) domain.OrderID {
	s.Helper()
	c := s.claim(sale, buyer, quantity)
	s.wantFresh(s.reserve(sale, c)[0], c.Order)
	return c.Order
}

// wantVerdicts decides claims in one call and compares the verdicts.
func (s *stockStage) wantVerdicts(sale domain.SaleID, claims []domain.Claim, want ...domain.Verdict) []domain.Outcome {
	s.Helper()
	outcomes := s.reserve(sale, claims...)
	for i, outcome := range outcomes {
		if outcome.Verdict != want[i] {
			s.Errorf("claim %d of %d is %v, want %v", i+1, len(claims), outcome.Verdict, want[i])
		}
	}
	if s.Failed() {
		s.FailNow()
	}
	return outcomes
}

// wantVerdict decides one claim.
func (s *stockStage) wantVerdict(sale domain.SaleID, c domain.Claim, want domain.Verdict) domain.Outcome {
	s.Helper()
	return s.wantVerdicts(sale, []domain.Claim{c}, want)[0]
}

// wantFresh fails unless the outcome is a first acceptance of the order.
func (s *stockStage) wantFresh(outcome domain.Outcome, order domain.OrderID) {
	s.Helper()
	if outcome.Verdict != domain.Accepted || outcome.Replayed || outcome.Order.Order() != order.Order() {
		s.Fatalf("outcome is %+v, want a fresh acceptance of %s", outcome, order)
	}
}

// wantReplay fails unless the outcome repeats the acceptance of the order.
func (s *stockStage) wantReplay(outcome domain.Outcome, order domain.OrderID) {
	s.Helper()
	if outcome.Verdict != domain.Accepted || !outcome.Replayed || outcome.Order.Order() != order.Order() {
		s.Fatalf("outcome is %+v, want a replay of %s", outcome, order)
	}
	if outcome.Before != outcome.After {
		s.Fatalf("a replay moved the stock from %d to %d", outcome.Before, outcome.After)
	}
}

func (s *stockStage) level(sale domain.SaleID) domain.Level {
	s.Helper()
	level, err := s.Stock.Level(s.Context(), sale)
	s.must(err)
	return level
}

// wantUnits compares the account of units of a sale.
func (s *stockStage) wantUnits(sale domain.SaleID, available, held, sold int64) {
	s.Helper()
	l := s.level(sale)
	if l.Available != available || l.Held != held || l.Sold != sold {
		s.Fatalf("available %d, held %d, sold %d; want %d, %d, %d", l.Available, l.Held, l.Sold, available, held, sold)
	}
}

func (s *stockStage) wantQueued(sale domain.SaleID, units int64) {
	s.Helper()
	if got := s.level(sale).Queued; got != units {
		s.Fatalf("%d units are queued, want %d", got, units)
	}
}

func (s *stockStage) wantHold(sale domain.SaleID, id domain.OrderID, state domain.HoldState) domain.Hold {
	s.Helper()
	hold, err := s.Stock.Hold(s.Context(), sale, id)
	s.must(err)
	if hold.Order != id || hold.State != state {
		s.Fatalf("hold is %+v, want %s as %s", hold, id, state)
	}
	return hold
}

func (s *stockStage) wantNoHold(sale domain.SaleID, id domain.OrderID) {
	s.Helper()
	hold, err := s.Stock.Hold(s.Context(), sale, id)
	if !errors.Is(err, domain.ErrNotFound) {
		s.Fatalf("hold is %+v with error %v, want ErrNotFound", hold, err)
	}
}

// release fails unless exactly that many units come free.
func (s *stockStage) release(sale domain.SaleID, want int64, holds ...domain.OrderID) {
	s.Helper()
	units, err := s.Stock.Release(s.Context(), sale, holds...)
	s.must(err)
	if units != want {
		s.Fatalf("released %d units, want %d", units, want)
	}
}

// settle fails unless exactly that many units are settled.
func (s *stockStage) settle(sale domain.SaleID, want int64, holds ...domain.OrderID) {
	s.Helper()
	units, err := s.Stock.Settle(s.Context(), sale, holds...)
	s.must(err)
	if units != want {
		s.Fatalf("settled %d units, want %d", units, want)
	}
}

// listHolds pages through the holds and fails when it does not end.
func (s *stockStage) listHolds(sale domain.SaleID) map[domain.OrderID]domain.Hold {
	s.Helper()
	found, err := listAllHolds(s.Context(), s.Stock, sale)
	s.must(err)
	return found
}

func listAllHolds(ctx context.Context, stock domain.Stock, sale domain.SaleID) (map[domain.OrderID]domain.Hold, error) {
	found := map[domain.OrderID]domain.Hold{}
	cursor := ""
	for range 100_000 {
		page, next, err := stock.Holds(ctx, sale, cursor)
		if err != nil {
			return nil, err
		}
		for _, hold := range page {
			found[hold.Order] = hold
		}
		if next == "" {
			return found, nil
		}
		cursor = next
	}
	return nil, errors.New("the listing of holds does not end")
}

func (s *stockStage) depth() domain.Depth {
	s.Helper()
	depth, err := s.Queue.Depth(s.Context())
	s.must(err)
	return depth
}

// wantDepth compares the number of orders that are not acknowledged.
func (s *stockStage) wantDepth(orders int64) {
	s.Helper()
	if got := s.depth().Orders; got != orders {
		s.Fatalf("%d orders are in the queue, want %d", got, orders)
	}
}

// collect receives entries that were never delivered until it has n intents.
func (s *stockStage) collect(n int) []domain.Delivery {
	s.Helper()
	got, err := collectIntents(s.Context(), s.Queue, n)
	s.must(err)
	return got
}

// collectIntents reads all partitions at once, since a sale may be in any of them.
// Within a partition, and so within a sale, it keeps the order of delivery.
func collectIntents(parent context.Context, queue domain.OrderQueue, n int) ([]domain.Delivery, error) {
	if n == 0 {
		return nil, nil
	}
	ctx, enough := context.WithTimeout(parent, stockPatience)
	defer enough()
	var (
		mu      sync.Mutex
		intents int
		failed  error
		lines   = make([][]domain.Delivery, queue.Partitions())
		readers sync.WaitGroup
	)
	for p := range lines {
		readers.Go(func() {
			for ctx.Err() == nil {
				got, err := queue.Receive(ctx, p, 100)
				mu.Lock()
				lines[p] = append(lines[p], got...)
				for _, d := range got {
					intents += len(d.Intents)
				}
				if err != nil && ctx.Err() == nil {
					failed = err
				}
				if intents >= n || failed != nil {
					enough()
				}
				mu.Unlock()
			}
		})
	}
	readers.Wait()
	var all []domain.Delivery
	for _, line := range lines {
		all = append(all, line...)
	}
	if failed == nil && intents != n {
		failed = fmt.Errorf("received %d intents, want %d", intents, n)
	}
	return all, failed
}

func (s *stockStage) ack(deliveries ...domain.Delivery) {
	s.Helper()
	s.must(s.Queue.Ack(s.Context(), deliveries...))
}

// drain collects n intents, acknowledges them and checks that nothing is left.
func (s *stockStage) drain(n int) []domain.Intent {
	s.Helper()
	deliveries := s.collect(n)
	s.ack(deliveries...)
	s.wantDepth(0)
	return intentsOf(deliveries)
}

func intentsOf(deliveries []domain.Delivery) []domain.Intent {
	var intents []domain.Intent
	for _, d := range deliveries {
		intents = append(intents, d.Intents...)
	}
	return intents
}

// checkConservation is N1 on every sale of the stage that is ready.
func (s *stockStage) checkConservation() {
	s.Helper()
	for _, sale := range s.sales {
		audit, err := s.Stock.Audit(s.Context(), sale)
		if errors.Is(err, domain.ErrNotReady) {
			continue
		}
		s.must(err)
		if !audit.Balanced() {
			s.Errorf("sale %s does not balance: %+v", sale, audit)
		}
	}
}
