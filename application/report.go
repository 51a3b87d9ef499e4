package application

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/domain"
)

const (
	reportTries = 5 // samples before a difference is believed
	reportPause = 300 * time.Millisecond
)

// What can be wrong with a sale besides its figures. All but the gate, which a
// command may be changing right now, are certain at the first look.
const (
	problemMissing = "the hot store does not hold the sale"
	problemCorrupt = "the hot store's account of the sale cannot be read"
	problemEpoch   = "the hot store is on another epoch than the ledger"
	problemGate    = "the hot store's gate differs from the ledger's"
	problemRecords = "the hot store's counters and records disagree"
)

// Report says for each sale of an activity what the hot store, the queue and
// the ledger hold, and whether they agree.
type Report struct {
	Activity domain.Activity
	Sales    []SaleReport
}

// Balanced says that every sale is.
func (r Report) Balanced() bool {
	for _, sale := range r.Sales {
		if !sale.Balanced {
			return false
		}
	}
	return true
}

// SaleReport is the account of one sale. All figures are units.
type SaleReport struct {
	Sale   domain.SaleID
	Loaded bool         // the hot store has the sale
	Level  domain.Level // of the hot store and its queue; only Total is set unless Loaded
	Ledger domain.Tally
	// Drift is how many units the stores disagree by, after what is in flight
	// (queued, or decided and not applied yet) is accounted for, and how many
	// the hot store's own account is off by.
	Drift int64
	// Balanced: total = available + held + sold, nothing negative, the stock
	// row adds up, and there is no drift.
	Balanced bool
	Repairs  []Repair // what a reconcile with repair changed
	Problem  string   // what disagrees besides the figures; "" when nothing does
}

// Repair is one thing that reconcile put right.
type Repair struct {
	What  string         // "requeued", "released", "settled", "adopted", "corrected", "total set", "gate set", "loaded"
	Order domain.OrderID // the hold, where it is about one
	Units int64
}

// Report reads the account of an activity. It changes nothing.
// Errors: ErrNotFound, ErrUnavailable.
func (e *Engine) Report(ctx context.Context, id domain.ActivityID) (Report, error) {
	activity, err := e.Activities.Activity(ctx, id)
	if err != nil {
		return Report{}, fmt.Errorf("report: %w", err)
	}
	report := Report{Activity: activity}
	for _, sku := range activity.SKUs {
		sale, err := e.account(ctx, activity, sku)
		if err != nil {
			return Report{}, fmt.Errorf("report sale %s: %w", activity.Sale(sku.ID), err)
		}
		report.Sales = append(report.Sales, sale)
	}
	return report, nil
}

// account compares the stores. They cannot be read at the same instant, so a
// difference counts only when it is still there after a few looks, and from the
// second look on the hot store is compared with the ledger before and after it.
func (e *Engine) account(ctx context.Context, activity domain.Activity, sku domain.SKU) (SaleReport, error) {
	var before *domain.Tally
	for try := 1; ; try++ {
		report, err := e.sample(ctx, activity, sku, before)
		certain := report.Problem != "" && report.Problem != problemGate
		if err != nil || report.Balanced || certain || try == reportTries {
			return report, err
		}
		before = &report.Ledger
		select {
		case <-time.After(reportPause):
		case <-ctx.Done():
			return SaleReport{}, ctx.Err()
		}
	}
}

func (e *Engine) sample(ctx context.Context, activity domain.Activity, sku domain.SKU, before *domain.Tally) (SaleReport, error) {
	report := SaleReport{Sale: activity.Sale(sku.ID), Loaded: true}
	var err error
	var gate domain.Gate
	report.Level, err = e.Stock.Level(ctx, report.Sale)
	if err == nil {
		gate, err = e.Stock.Gate(ctx, report.Sale)
	}
	switch {
	case errors.Is(err, domain.ErrNotReady):
		report.Loaded = false
		report.Level = domain.Level{Total: sku.Total}
		if preheated(activity.State) {
			report.Problem = problemMissing
		}
	case errors.Is(err, domain.ErrCorrupt):
		report.Problem = problemCorrupt
	case err != nil:
		return SaleReport{}, err
	}
	report.Ledger, err = e.Orders.Tally(ctx, report.Sale)
	if err != nil {
		return SaleReport{}, err
	}
	if !report.Loaded {
		// A draft or archived sale lives in the ledger alone; its account is the row's.
		report.Level.Held, report.Level.Sold = report.Ledger.Reserved, report.Ledger.Sold
		report.Level.Available = report.Ledger.Total - report.Ledger.Reserved - report.Ledger.Sold
		report.Balanced = report.Ledger.Balanced() && report.Problem == ""
		return report, nil
	}
	if report.Problem != "" {
		return report, nil
	}
	if before == nil {
		before = &report.Ledger
	}
	report.Drift = drift(report.Level, *before, report.Ledger)
	switch {
	case report.Level.Epoch != report.Ledger.Epoch:
		report.Problem = problemEpoch
	case !gate.Same(activity.Gate(sku)):
		report.Problem = problemGate
	}
	report.Balanced = report.Drift == 0 && report.Problem == "" && report.Level.Balanced() && report.Ledger.Balanced()
	return report, nil
}

// drift is the number of units that nothing explains, given the ledger before
// and after the hot store was read. Held units are orders that wait for
// payment, orders on their way there (queued), and orders that are decided but
// whose hold has not heard of it (releasing, settling); the last two may have
// been counted on both sides or on one.
func drift(level domain.Level, before, after domain.Tally) int64 {
	settling := max(before.Settling, after.Settling)
	inFlight := level.Queued + max(before.Releasing, after.Releasing) + settling
	held := outside(level.Held, min(before.Pending, after.Pending), max(before.Pending, after.Pending)+inFlight)
	sold := outside(level.Sold, min(before.Paid, after.Paid)-settling, max(before.Paid, after.Paid))
	total := abs(level.Total - after.Total)
	account := abs(level.Total - level.Available - level.Held - level.Sold)
	return held + sold + total + account
}

// outside is how far n lies from the range low … high.
func outside(n, low, high int64) int64 {
	return max(low-n, n-high, 0)
}

func abs(n int64) int64 { return max(n, -n) }
