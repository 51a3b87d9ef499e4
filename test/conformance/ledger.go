package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seckill/domain"
)

// LedgerPorts is what a ledger offers: all its ports on one database.
type LedgerPorts interface {
	domain.Orders
	domain.Outbox
	domain.DeadLetters
	domain.Activities
	domain.Fences
	domain.Deployment
}

// Ledger proves that a ledger keeps the contract of its ports. open returns one
// for a test to use; it may be the same for all tests, and may hold the rows of
// others: every test makes its own sales.
func Ledger(t *testing.T, open func(t *testing.T) LedgerPorts) {
	groups := []struct {
		name  string
		tests map[string]func(l ledgerTest)
	}{
		{"Place", ledgerPlaceTests},
		{"Gates", ledgerGateTests},
		{"Resolve", ledgerResolveTests},
		{"PayLate", ledgerLateTests},
		{"Expire", ledgerExpireTests},
		{"Outbox", ledgerOutboxTests},
		{"DeadLetters", ledgerLetterTests},
		{"Setup", ledgerSetupTests},
		{"Races", ledgerRaceTests},
	}
	for _, group := range groups {
		t.Run(group.name, func(t *testing.T) {
			for name, test := range group.tests {
				t.Run(name, func(t *testing.T) {
					test(ledgerTest{T: t, LedgerPorts: open(t)})
				})
			}
		})
	}
}

// ledgerTest is one test with its ledger.
type ledgerTest struct {
	*testing.T
	LedgerPorts
}

// ctx ends a test that hangs.
func (l ledgerTest) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	l.Cleanup(cancel)
	return ctx
}

func ledgerActivityID() domain.ActivityID {
	return domain.ActivityID(1 + rand.Int64N(domain.MaxInteger))
}

// activity is a valid activity with one SKU, 2001, that is not in the ledger yet.
func (l ledgerTest) activity(total, limit int64) domain.Activity {
	return domain.Activity{
		ID: ledgerActivityID(), Name: "秒杀 ⚡",
		StartsAt:      time.Date(2030, 1, 2, 3, 4, 5, 6e6, time.UTC),
		EndsAt:        time.Date(2030, 1, 3, 3, 4, 5, 7e6, time.UTC),
		PaymentWindow: 30 * time.Minute,
		SKUs:          []domain.SKU{{ID: 2001, Name: "茶 🍵", Price: 9900, Total: total, PerUserLimit: limit, Segments: 1}},
	}
}

// create saves a new activity and returns it as the ledger has it.
func (l ledgerTest) create(a domain.Activity) domain.Activity {
	l.Helper()
	a.State = ""
	l.must(l.Save(l.ctx(), a))
	a.State = domain.Draft
	return a
}

// ledgerSale is a sale of its own for one test.
type ledgerSale struct {
	ledgerTest
	domain.SaleID
	activity domain.Activity
	epoch    int64
}

// sale makes a sale in epoch 1.
func (l ledgerTest) sale(total, limit int64) *ledgerSale {
	l.Helper()
	return l.saleOf(l.activity(total, limit))
}

// shortSale makes a sale whose orders are due at once.
func (l ledgerTest) shortSale(total, limit int64) *ledgerSale {
	l.Helper()
	a := l.activity(total, limit)
	a.PaymentWindow = time.Millisecond
	return l.saleOf(a)
}

func (l ledgerTest) saleOf(a domain.Activity) *ledgerSale {
	l.Helper()
	a = l.create(a)
	s := &ledgerSale{ledgerTest: l, SaleID: a.Sale(a.SKUs[0].ID), activity: a}
	epoch, err := l.BeginEpoch(l.ctx(), s.SaleID, domain.Fence{})
	l.must(err)
	s.epoch = epoch
	return s
}

var ledgerSerial atomic.Int64

// order makes an order that fits the sale.
func (s *ledgerSale) order(buyer domain.BuyerID, quantity int64) domain.Order {
	unique := fmt.Sprintf("%08d%06x", ledgerSerial.Add(1), rand.IntN(1<<24))
	return domain.Order{
		ID: domain.NewOrderID(s.SaleID, unique), Sale: s.SaleID, Buyer: buyer,
		Quantity: quantity, Epoch: s.epoch,
	}
}

// orders makes one order for each of n buyers.
func (s *ledgerSale) orders(n int) []domain.Order {
	all := make([]domain.Order, n)
	for i := range all {
		all[i] = s.order(domain.BuyerID(fmt.Sprintf("buyer-%d", i)), 1)
	}
	return all
}

// place places orders and demands an answer for each, without an error.
func (l ledgerTest) place(orders ...domain.Order) []domain.Placed {
	l.Helper()
	placed, err := l.Place(l.ctx(), orders)
	l.must(err)
	if len(placed) != len(orders) {
		l.Fatalf("%d answers for %d orders", len(placed), len(orders))
	}
	for i, p := range placed {
		if p.Err != nil {
			l.Fatalf("order %d: %v", i, p.Err)
		}
		if p.Order.ID != orders[i].ID {
			l.Fatalf("answer %d is about %s, want %s", i, p.Order.ID, orders[i].ID)
		}
	}
	return placed
}

// pending places an order and demands that it is pending.
func (s *ledgerSale) pending(o domain.Order) domain.Order {
	s.Helper()
	p := s.place(o)[0]
	s.wants(p, domain.Pending, "")
	return p.Order
}

func (l ledgerTest) wants(p domain.Placed, status domain.Status, reason string) {
	l.Helper()
	if p.Order.Status != status || p.Order.Reason != reason {
		l.Fatalf("order is %s %q, want %s %q", p.Order.Status, p.Order.Reason, status, reason)
	}
}

// expired places an order of a short sale and expires it.
func (s *ledgerSale) expired(o domain.Order) domain.Order {
	s.Helper()
	s.pending(o)
	return s.expireOne().Order
}

// expireOne expires one order of the sale as soon as it is due.
func (s *ledgerSale) expireOne() domain.Effect {
	s.Helper()
	var effects []domain.Effect
	s.until("an order is due", func() bool {
		var err error
		effects, err = s.Expire(s.ctx(), s.SaleID, 1, domain.Fence{})
		s.must(err)
		return len(effects) > 0
	})
	if len(effects) != 1 {
		s.Fatalf("%d orders expired, at most 1 was asked for", len(effects))
	}
	return effects[0]
}

// find reads one order.
func (l ledgerTest) find(id domain.OrderID) domain.Order {
	l.Helper()
	found, err := l.Find(l.ctx(), id)
	l.must(err)
	if len(found) != 1 {
		l.Fatalf("found %d orders of id %s", len(found), id)
	}
	return found[0]
}

// tally reads the account of the sale and demands that it is balanced.
func (s *ledgerSale) tally() domain.Tally {
	s.Helper()
	t, err := s.Tally(s.ctx(), s.SaleID)
	s.must(err)
	if !t.Balanced() {
		s.Fatalf("not balanced: %+v", t)
	}
	return t
}

// counts checks the units of the account, apart from the total and effects.
func (s *ledgerSale) counts(want domain.Tally) {
	s.Helper()
	got := s.tally()
	want.Epoch, want.Total, want.Releasing, want.Settling = got.Epoch, got.Total, got.Releasing, got.Settling
	want.Reserved, want.Sold = want.Pending, want.Paid
	if got != want {
		s.Fatalf("account\n got %+v\nwant %+v", got, want)
	}
}

// effects lists what the outbox has of the sale, by id.
func (s *ledgerSale) effects() []domain.Effect {
	s.Helper()
	all, err := s.Effects(s.ctx(), 0, 0, 100_000)
	s.must(err)
	var mine []domain.Effect
	for _, e := range all {
		if e.Order.Sale == s.SaleID {
			mine = append(mine, e)
		}
	}
	return mine
}

// effectOf finds the one effect with the hold and status.
func (s *ledgerSale) effectOf(hold domain.OrderID, status domain.Status) domain.Effect {
	s.Helper()
	var found []domain.Effect
	for _, e := range s.effects() {
		if e.Hold == hold && e.Order.Status == status {
			found = append(found, e)
		}
	}
	if len(found) != 1 {
		s.Fatalf("%d effects for hold %s with status %s, want 1", len(found), hold, status)
	}
	return found[0]
}

func (l ledgerTest) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// fails demands an error of a kind.
func (l ledgerTest) fails(err, want error) {
	l.Helper()
	if !errors.Is(err, want) {
		l.Fatalf("error is %v, want %v", err, want)
	}
}

// closed demands a ClosedError with the outcome that won.
func (l ledgerTest) closed(err error, id domain.OrderID, status domain.Status) {
	l.Helper()
	var closed *domain.ClosedError
	if !errors.As(err, &closed) {
		l.Fatalf("error is %v, want a ClosedError", err)
	}
	if closed.Order.ID != id || closed.Order.Status != status {
		l.Fatalf("closed as %s %s, want %s %s", closed.Order.ID, closed.Order.Status, id, status)
	}
}

// until waits for a condition.
func (l ledgerTest) until(what string, is func() bool) {
	l.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !is() {
		if time.Now().After(deadline) {
			l.Fatalf("waited too long until %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// same compares two orders; times are the same when they are the same moment.
func (l ledgerTest) same(got, want domain.Order) {
	l.Helper()
	if g, w := ledgerText(got), ledgerText(want); g != w {
		l.Fatalf("order\n got %s\nwant %s", g, w)
	}
}

func ledgerText(o domain.Order) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s sale %s buyer %s request %q %d epoch %d %s %q payment %q hold %s", o.ID, o.Sale, o.Buyer,
		o.Request, o.Quantity, o.Epoch, o.Status, o.Reason, o.Payment, o.Hold)
	for _, at := range []time.Time{o.CreatedAt, o.ExpiresAt, o.PaidAt, o.ClosedAt} {
		if at.IsZero() {
			b.WriteString(" -")
		} else {
			b.WriteString(" " + at.UTC().Format(time.RFC3339Nano))
		}
	}
	return b.String()
}
