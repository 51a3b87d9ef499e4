package usecase

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"seckill/application"
	"seckill/domain"
)

func edit(delta int64, key domain.RequestID) domain.StockEdit {
	return domain.StockEdit{Sale: sale, Delta: delta, Reason: "counted again", Key: key}
}

// covers S13
func TestEditStock(t *testing.T) {
	s := open(t, options{total: 3, limit: 5})
	s.placed("a")
	s.must(s.EditStock(ctx, edit(2, "k-1")))
	s.must(s.EditStock(ctx, edit(2, "k-1")))
	s.wantLevel(4, 1, 0)
	s.must(s.EditStock(ctx, edit(-4, "k-2")))
	s.must(s.EditStock(ctx, edit(-4, "k-2")))
	s.wantLevel(0, 1, 0)
	for _, delta := range []int64{-1, -2} {
		if _, err := s.EditStock(ctx, edit(delta, "")); !errors.Is(err, domain.ErrUnbalanced) {
			t.Errorf("withdrew %d held units: %v", -delta, err)
		}
	}
	s.wantLevel(0, 1, 0)
	s.must(s.EditStock(ctx, edit(1, "")))
	s.must(s.EditStock(ctx, edit(1, ""))) // without a key each is an edit of its own
	s.placed("b")
	s.wantLevel(1, 2, 0)
	edits, err := s.StockEdits(ctx, sale)
	if err != nil || len(edits) != 4 || edits[0].Total != 3 || edits[3].Key != "k-1" || edits[0].Key == "" {
		t.Errorf("%+v, %v", edits, err)
	}
	// What is in the ledger by now is what a new hot store is loaded with.
	s.start(options{})
	if err := s.Rebuild(ctx); err != nil {
		t.Fatal(err)
	}
	s.wantLevel(1, 2, 0)
}

func TestEditStockRefuses(t *testing.T) {
	s := open(t, options{total: 3})
	for field, bad := range map[string]domain.StockEdit{
		"delta":     edit(0, ""),
		"reason":    {Sale: sale, Delta: 1, Reason: " "},
		"requestId": edit(1, domain.RequestID(strings.Repeat("k", 65))),
	} {
		var wrong *domain.FieldError
		if _, err := s.EditStock(ctx, bad); !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	unknown := edit(1, "")
	unknown.Sale.SKU = 7
	if _, err := s.EditStock(ctx, unknown); !errors.Is(err, domain.ErrNotFound) {
		t.Errorf("unknown SKU: %v", err)
	}
	if _, err := s.EditStock(ctx, edit(-3, "")); !errors.Is(err, domain.ErrUnbalanced) {
		t.Errorf("nothing would be left: %v", err)
	}
	s.must(s.EditStock(ctx, edit(1, "k")))
	if _, err := s.EditStock(ctx, edit(2, "k")); !errors.Is(err, domain.ErrConflict) {
		t.Errorf("the key of another edit: %v", err)
	}
	s.wantLevel(4, 0, 0)
}

// A draft has no hot store yet; the preheat loads what the edits have left.
func TestEditStockOfADraft(t *testing.T) {
	s := open(t, options{total: 3})
	draft := domain.Activity{
		ID: 7, Name: "draft", StartsAt: s.Clock.Now(), EndsAt: s.Clock.Now().AddDate(0, 0, 1), PaymentWindow: 1e9,
		SKUs: []domain.SKU{{ID: 1, Total: 10, PerUserLimit: 1, Segments: 1}},
	}
	s.must(s.SaveActivity(ctx, draft))
	id := domain.SaleID{Activity: 7, SKU: 1}
	s.must(s.EditStock(ctx, domain.StockEdit{Sale: id, Delta: -4, Reason: "x"}))
	s.must(s.Preheat(ctx, 7))
	level, err := s.Stock.Level(ctx, id)
	if err != nil || level.Total != 6 {
		t.Errorf("%+v, %v", level, err)
	}
	s.must(s.SetState(ctx, 7, "close"))
	s.must(s.Archive(ctx, 7))
	if _, err := s.EditStock(ctx, domain.StockEdit{Sale: id, Delta: 1, Reason: "x"}); !errors.Is(err, domain.ErrState) {
		t.Errorf("archived: %v", err)
	}
}

// deaf is a hot store that does, or does not do, what it is told and gives no answer.
type deaf struct {
	domain.Stock
	does, fails bool
}

func (d *deaf) SetTotal(ctx context.Context, sale domain.SaleID, seen, total, fence int64) error {
	if !d.fails {
		return d.Stock.SetTotal(ctx, sale, seen, total, fence)
	}
	if d.does {
		_ = d.Stock.SetTotal(ctx, sale, seen, total, fence)
	}
	return domain.ErrUnavailable
}

// unwilling is a ledger that edits nothing.
type unwilling struct{ ledgerOfActivities }

type ledgerOfActivities = domain.Activities

func (unwilling) EditStock(context.Context, domain.StockEdit, domain.Fence) (domain.StockEdit, error) {
	return domain.StockEdit{}, domain.ErrUnavailable
}

// An edit that one of the stores did not take, or did not confirm, is brought to
// both, by the same edit once more or by reconcile.
func TestEditStockAfterAFailure(t *testing.T) {
	for _, delta := range []int64{4, -4} {
		for name, does := range map[string]bool{"it did it": true, "it did not": false} {
			for _, repeat := range []bool{true, false} {
				hot := &deaf{does: does}
				s := open(t, options{total: 10, limit: 9, wrap: func(stock domain.Stock) domain.Stock {
					hot.Stock = stock
					return hot
				}})
				s.placed("a")
				hot.fails = true
				if _, err := s.EditStock(ctx, edit(delta, "k")); !errors.Is(err, domain.ErrUnavailable) {
					t.Fatalf("%d, %s: %v", delta, name, err)
				}
				hot.fails = false
				want := 9 + delta
				if repeat {
					s.must(s.EditStock(ctx, edit(delta, "k")))
				} else {
					s.must(s.Reconcile(ctx, sale.Activity, true))
					if delta < 0 { // the ledger has not heard of it: it is undone
						want = 9
					}
				}
				s.wantLevel(want, 1, 0)
			}
		}
	}
}

func TestAWithdrawalThatTheLedgerRefusesIsUndone(t *testing.T) {
	s := open(t, options{total: 10})
	ledger := s.Activities
	s.Activities = unwilling{ledger}
	if _, err := s.EditStock(ctx, edit(-4, "k")); !errors.Is(err, domain.ErrUnavailable) {
		t.Fatal(err)
	}
	s.Activities = ledger
	s.wantLevel(10, 0, 0)
}

// counting counts the grabs that reach the hot store.
type counting struct {
	domain.Stock
	calls int
}

func (c *counting) Reserve(ctx context.Context, sale domain.SaleID, claims []domain.Claim) ([]domain.Outcome, error) {
	c.calls++
	return c.Stock.Reserve(ctx, sale, claims)
}

// covers T2: two nodes remember that a sale is sold out; units that come back on
// one are on sale on both within a second.
func TestSoldOutIsRememberedForLessThanASecond(t *testing.T) {
	hot := &counting{}
	s := open(t, options{total: 1, limit: 1, wrap: func(stock domain.Stock) domain.Stock {
		hot.Stock = stock
		return hot
	}})
	there := &clock{}
	ports := s.Ports
	ports.Clock = there
	other := application.New(ports, application.Config{Log: slog.New(slog.DiscardHandler)})
	id := s.placed("winner")

	verdict := func(e *application.Engine, buyer domain.BuyerID, request domain.RequestID) domain.Verdict {
		t.Helper()
		outcome, err := e.Grab(ctx, application.GrabRequest{Sale: sale, Buyer: buyer, Request: request})
		if err != nil {
			t.Fatal(err)
		}
		return outcome.Verdict
	}
	for _, e := range []*application.Engine{s.Engine, other} {
		hot.calls = 0
		for range 1000 {
			if v := verdict(e, "late", ""); v != domain.SoldOut {
				t.Fatalf("verdict is %s", v)
			}
		}
		if hot.calls == 0 || hot.calls > 100 {
			t.Errorf("%d of 1000 grabs reached the hot store", hot.calls)
		}
	}
	// Whoever has the unit and asks again is told so, however sold out it is.
	s.must(s.Cancel(ctx, id, "winner"))
	if v := verdict(s.Engine, "second", "r-1"); v != domain.Accepted {
		t.Errorf("on the node that freed the unit: %s", v)
	}
	for range 10 {
		if v := verdict(other, "second", "r-1"); v != domain.Accepted {
			t.Errorf("a repeat on the other node: %s", v)
		}
		verdict(other, "late", "")
		verdict(s.Engine, "late", "")
	}
	s.must(s.EditStock(ctx, edit(2, "")))
	if v := verdict(s.Engine, "third", ""); v != domain.Accepted {
		t.Errorf("on the node of the edit: %s", v)
	}
	there.mu.Lock()
	there.offset += 1_000_000_000
	there.mu.Unlock()
	if v := verdict(other, "fourth", ""); v != domain.Accepted {
		t.Errorf("a second later on the other node: %s", v)
	}
}

// The hot store has more units than the ledger, and most of them are held: what
// is free goes at once, what else is wrong is repaired all the same, and the rest
// goes when units come back.
// covers N3
func TestReconcileLowersATotalAsFarAsItCan(t *testing.T) {
	s := open(t, options{total: 10, limit: 9})
	var orders []domain.OrderID
	for _, buyer := range []domain.BuyerID{"a", "b", "c", "d", "e", "f"} {
		orders = append(orders, s.placed(buyer))
	}
	// An edit of the ledger that the hot store has not heard of: 7 of 10, and two
	// more of the others' units go meanwhile.
	s.must(s.Activities.EditStock(ctx, edit(-3, "k"), domain.Fence{}))
	over := []domain.OrderID{s.grab("g"), s.grab("h")}
	// A hold that the ledger has decided about, and the hot store has not heard of.
	effect, err := s.Orders.Cancel(ctx, orders[0])
	s.must(effect, err)
	s.must(nil, s.Outbox.Applied(ctx, effect.ID))
	if _, err := s.Reconcile(ctx, sale.Activity, true); err != nil && !errors.Is(err, domain.ErrUnbalanced) {
		t.Fatal(err)
	}
	hold, err := s.Stock.Hold(ctx, sale, orders[0])
	if err != nil || hold.State != domain.Released {
		t.Errorf("the cancelled order's hold is %q, %v", hold.State, err)
	}
	level, err := s.Stock.Level(ctx, sale)
	if err != nil || level.Total > 9 {
		t.Errorf("%+v, %v", level, err)
	}
	s.consume() // the ledger takes as many as it has
	s.must(s.Reconcile(ctx, sale.Activity, true))
	report, err := s.Report(ctx, sale.Activity)
	if err != nil || !report.Balanced() || report.Sales[0].Level.Total != 7 {
		t.Errorf("%+v, %v (%v)", report.Sales[0], err, over)
	}
}

// An edit that the hot store cannot take because the sale is not loaded is not
// made: the operator is told to come again, and will.
// covers S13
func TestAnEditWaitsForTheLoad(t *testing.T) {
	s := open(t, options{total: 10, limit: 9})
	s.must(nil, s.Stock.Seal(ctx, sale, 1<<40, true))
	for _, delta := range []int64{5, -5} {
		if _, err := s.EditStock(ctx, edit(delta, "")); !errors.Is(err, domain.ErrNotReady) {
			t.Errorf("%+d: %v", delta, err)
		}
	}
	if edits, err := s.StockEdits(ctx, sale); err != nil || len(edits) > 0 {
		t.Errorf("%+v, %v", edits, err)
	}
}
