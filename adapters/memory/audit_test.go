package memory

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"seckill/domain"
)

type stillClock struct{}

func (stillClock) Now() time.Time { return time.Date(2030, 6, 1, 12, 0, 0, 0, time.UTC) }

var damaged = domain.SaleID{Activity: 1, SKU: 2}

// damagedStock holds 5 units of buyer b0 … b4 each, has those of b0 and b1 in
// its queue, and lets damage work on the account.
func damagedStock(t *testing.T, damage func(*sale)) *Stock {
	t.Helper()
	stock := NewStock(stillClock{})
	var holds []domain.Hold
	for i := range 5 {
		holds = append(holds, domain.Hold{
			Order: domain.NewOrderID(damaged, fmt.Sprint("n", i)), Buyer: domain.BuyerID(fmt.Sprint("b", i)),
			Quantity: 5, State: domain.Held,
		})
	}
	gate := domain.Gate{State: domain.Open, EndsAt: stillClock{}.Now().Add(time.Hour), PerUserLimit: 10}
	if err := stock.Seal(t.Context(), damaged, 1, false); err != nil {
		t.Fatal(err)
	}
	load := domain.Load{Sale: damaged, Epoch: 1, Gate: gate, Total: 100, Holds: holds, Fence: 1}
	if err := stock.Preheat(t.Context(), load); err != nil {
		t.Fatal(err)
	}
	if n, err := stock.Requeue(t.Context(), damaged, holds[0].Order, holds[1].Order); n != 2 || err != nil {
		t.Fatalf("requeued %d, %v", n, err)
	}
	damage(stock.sales[damaged])
	return stock
}

// covers N1, N3
func TestAuditFindsDamageAndCorrectRepairsIt(t *testing.T) {
	for name, damage := range map[string]func(*sale){
		"available":          func(s *sale) { s.available += 3 },
		"negative available": func(s *sale) { s.available = -1 },
		"held":               func(s *sale) { s.heldUnits-- },
		"sold":               func(s *sale) { s.soldUnits++ },
		"held for available": func(s *sale) { s.heldUnits++; s.available-- },
		"a buyer":            func(s *sale) { s.buyers["b1"]++ },
		"a buyer missing":    func(s *sale) { delete(s.buyers, "b1") },
		"a buyer too many":   func(s *sale) { s.buyers["nobody"] = 2 },
		"a record":           func(s *sale) { delete(s.holds, s.listing[0].Order) },
	} {
		t.Run(name, func(t *testing.T) {
			stock := damagedStock(t, damage)
			audit, err := stock.Audit(t.Context(), damaged)
			if err != nil || audit.Balanced() {
				t.Fatalf("audit is %+v, %v; want the damage", audit, err)
			}
			audit, err = stock.Correct(t.Context(), damaged, audit.Level, 1)
			if err != nil || !audit.Balanced() {
				t.Fatalf("corrected to %+v, %v", audit, err)
			}
			if again, err := stock.Audit(t.Context(), damaged); err != nil || !again.Balanced() {
				t.Fatalf("audit is %+v, %v afterwards", again, err)
			}
		})
	}
}

// covers N1, N3
func TestAuditFindsDamageOfTheQueueAndCorrectRepairsIt(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(*partition)
		queued int64 // after the repair
	}{
		"counter too high": {func(p *partition) { p.units[damaged] += 3 }, 10},
		"counter too low":  {func(p *partition) { p.units[damaged] = 0 }, 10},
		"an entry gone": {func(p *partition) {
			e := p.line.Front().Value.(*entry)
			p.fresh = nil
			p.line.Remove(e.place)
			delete(p.entries, e.delivery.ID)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			stock := damagedStock(t, func(*sale) {})
			if audit, err := stock.Audit(t.Context(), damaged); err != nil || !audit.Balanced() || audit.QueuedUnits != 10 {
				t.Fatalf("before the damage: %+v, %v", audit, err)
			}
			c.damage(stock.queue.home(damaged))
			audit, err := stock.Audit(t.Context(), damaged)
			if err != nil || audit.Balanced() {
				t.Fatalf("audit is %+v, %v; want the damage", audit, err)
			}
			audit, err = stock.Correct(t.Context(), damaged, audit.Level, 1)
			if err != nil || !audit.Balanced() || audit.Level.Queued != c.queued {
				t.Fatalf("corrected to %+v, %v; want %d units queued", audit, err, c.queued)
			}
			if again, err := stock.Audit(t.Context(), damaged); err != nil || !again.Balanced() {
				t.Fatalf("audit is %+v, %v afterwards", again, err)
			}
		})
	}
}

func TestCorrectRefusesRecordsBeyondTheTotal(t *testing.T) {
	stock := damagedStock(t, func(s *sale) { s.total = 24 })
	level, err := stock.Level(t.Context(), damaged)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stock.Correct(t.Context(), damaged, level, 1); !errors.Is(err, domain.ErrUnbalanced) {
		t.Fatalf("error is %v", err)
	}
	if after, err := stock.Level(t.Context(), damaged); err != nil || after != level {
		t.Fatalf("level is %+v, %v; want %+v", after, err, level)
	}
}

func TestAuditNamesBothFiguresOfABuyerAndAtMostAHundred(t *testing.T) {
	stock := damagedStock(t, func(s *sale) { s.buyers["b1"] = 7 })
	audit, err := stock.Audit(t.Context(), damaged)
	want := domain.BuyerDrift{Buyer: "b1", Recorded: 7, Counted: 5}
	if err != nil || len(audit.Buyers) != 1 || audit.Buyers[0] != want {
		t.Fatalf("audit is %+v, %v; want %+v", audit, err, want)
	}
	stock = damagedStock(t, func(s *sale) {
		for i := range 300 {
			s.buyers[domain.BuyerID(fmt.Sprint("x", i))] = 1
		}
	})
	if audit, err = stock.Audit(t.Context(), damaged); err != nil || len(audit.Buyers) != maxDrifts {
		t.Fatalf("%d buyers are named, %v", len(audit.Buyers), err)
	}
}

func TestHoldsStartsOverAfterARebuildAndRefusesForeignCursors(t *testing.T) {
	stock := damagedStock(t, func(*sale) {})
	stale := fmt.Sprintf("%d.%d", stock.sales[damaged].generation-1, 3)
	if page, _, err := stock.Holds(t.Context(), damaged, stale); err != nil || len(page) != 5 {
		t.Fatalf("%d holds, %v", len(page), err)
	}
	for _, cursor := range []string{"x", "1", "1.", ".1", "1.-1", "1.x"} {
		if _, _, err := stock.Holds(t.Context(), damaged, cursor); !errors.Is(err, domain.ErrInvalid) {
			t.Errorf("cursor %q: error is %v", cursor, err)
		}
	}
}
