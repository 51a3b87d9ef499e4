package domain

import (
	"context"
	"time"
)

// Verdict is what the hot store says to one claim. The zero value is no verdict.
type Verdict uint8

// The verdicts. Only Accepted changes anything.
const (
	Accepted      Verdict = iota + 1
	SoldOut               // fewer units are free than asked for
	NotReady              // the hot store does not hold the sale
	LimitReached          // the buyer's held and bought units plus these exceed the limit
	NotStarted            // before StartsAt, or not opened
	SalePaused            // paused by an operator
	SaleEnded             // at or after EndsAt, or closed
	RequestReused         // the buyer used this request id for another quantity
	Withdrawn             // the order id was released before it was reserved
	UnknownSale           // no such activity or SKU; said by the use case, never by a Stock
)

// String is the word for logs, metrics and reasons of the outer contract.
func (v Verdict) String() string {
	switch v {
	case Accepted:
		return "accepted"
	case SoldOut:
		return "sold_out"
	case NotReady:
		return "not_ready"
	case LimitReached:
		return "limit_reached"
	case NotStarted:
		return "not_started"
	case SalePaused:
		return "paused"
	case SaleEnded:
		return "ended"
	case RequestReused:
		return "request_id_reused"
	case Withdrawn:
		return "withdrawn"
	case UnknownSale:
		return "unknown_sale"
	}
	return "none"
}

// Gate is the part of a sale that an operator may change while it runs.
type Gate struct {
	State        State
	StartsAt     time.Time // millisecond precision
	EndsAt       time.Time // millisecond precision, exclusive
	PerUserLimit int64
}

// Same says whether two gates judge alike, to the millisecond.
func (g Gate) Same(other Gate) bool {
	return g.State == other.State && g.PerUserLimit == other.PerUserLimit &&
		g.StartsAt.UnixMilli() == other.StartsAt.UnixMilli() && g.EndsAt.UnixMilli() == other.EndsAt.UnixMilli()
}

// Judge is the rule of the gate at a moment of the hot store's clock: Accepted,
// NotStarted, SalePaused or SaleEnded. Every adapter decides as Judge does.
func (g Gate) Judge(now time.Time) Verdict {
	switch {
	case g.State == Closed || g.State == Archived || !now.Before(g.EndsAt):
		return SaleEnded
	case g.State == Paused:
		return SalePaused
	case g.State != Open || now.Before(g.StartsAt):
		return NotStarted
	}
	return Accepted
}

// Claim asks for units under an order id that the caller minted.
type Claim struct {
	Order    OrderID
	Buyer    BuyerID
	Request  RequestID // empty: the grab can only be replayed by its order id
	Quantity int64     // 1 … MaxQuantity
}

// Outcome answers one claim.
type Outcome struct {
	Verdict  Verdict
	Order    OrderID   // Accepted: the order that holds the units; on a replay, the first one's
	Replayed bool      // Accepted: this claim or its request id was accepted before
	Before   int64     // units available before this claim; of a split stock, in the buyer's segment
	After    int64     // the same after this claim; SoldOut: in all segments
	StartsAt time.Time // NotStarted: when the window opens
}

// HoldState is where a hold stands.
type HoldState string

// The states of a hold. Held and Sold count units; Released counts none.
const (
	Held     HoldState = "held"
	Sold     HoldState = "sold"
	Released HoldState = "released"
)

// Hold is the hot store's record of one accepted claim, or the tombstone of
// one that was released first (then Buyer is empty and Quantity 0).
type Hold struct {
	Order     OrderID
	Buyer     BuyerID
	Request   RequestID
	Quantity  int64
	State     HoldState
	CreatedAt time.Time // by the hot store's clock
}

// Level is the hot store's account of a sale, read in one step.
type Level struct {
	Epoch     int64
	State     State
	Total     int64
	Available int64
	Held      int64
	Sold      int64
	Queued    int64 // units in queue entries that are not acknowledged yet
}

// Balanced is the conservation law over the counters.
func (l Level) Balanced() bool {
	return l.Available >= 0 && l.Held >= 0 && l.Sold >= 0 && l.Total == l.Available+l.Held+l.Sold
}

// Audit is the conservation law counted record by record, in one step.
type Audit struct {
	Level       Level
	HeldUnits   int64 // sum over the holds in state Held
	SoldUnits   int64 // sum over the holds in state Sold
	QueuedUnits int64 // sum over the readable entries of the sale that the queue holds
	// Buyers whose recorded units differ from the sum of their holds, with both
	// figures; at most 100 are named.
	Buyers []BuyerDrift
}

// Balanced says that counters, records and buyers agree.
func (a Audit) Balanced() bool {
	return a.Level.Balanced() && a.HeldUnits == a.Level.Held && a.SoldUnits == a.Level.Sold &&
		a.QueuedUnits == a.Level.Queued && len(a.Buyers) == 0
}

// BuyerDrift is a buyer whose recorded units differ from the sum of their holds.
type BuyerDrift struct {
	Buyer    BuyerID
	Recorded int64
	Counted  int64
}

// Load is what a preheat puts into the hot store: the ledger's account of a sale.
type Load struct {
	Sale  SaleID
	Epoch int64 // higher than every earlier epoch of the sale
	Gate  Gate
	Total int64 // the cap that no release may exceed
	// Holds are Held and Sold ones, from the ledger's pending and paid orders,
	// and Released ones, from closed orders whose request ids are still to be
	// replayed.
	Holds []Hold
	Fence int64
	// Segments is how many partitions the stock is split over; 0 means 1. It
	// stays the same for as long as the hot store has the sale. An adapter that
	// does not split takes any number.
	Segments int
}

// Stock is the hot store: it admits grabs and keeps the account of units.
//
// Every method touches one sale and is one atomic step, unless an adapter's
// own comment says what it does instead. Any error other than the named ones
// is an ErrUnavailable: the outcome is unknown and the call may be repeated.
type Stock interface {
	Admission
	StockSetup
	StockAudit
}

// Admission is the part of Stock that works while a sale runs.
type Admission interface {
	// Reserve decides the claims in their order: idempotent replay, gate,
	// buyer's limit, stock; then deducts, records the hold and queues the
	// order intent: all of it or nothing, per claim. One claim's refusal does
	// not touch its neighbours. It returns one outcome per claim.
	//
	// Replay comes before the gate, so a buyer whose answer was lost hears it
	// even when the sale has ended since.
	//
	// Repeat: a claim whose order id, or whose buyer and request id, is already
	// held or sold answers Accepted with Replayed and the first order id, and
	// deducts nothing. A claim whose order id was released is Withdrawn; one
	// whose request id belongs to a released order is still replayed.
	// Refusals are verdicts, not errors.
	Reserve(ctx context.Context, sale SaleID, claims []Claim) ([]Outcome, error)

	// Reacquire takes units for an order again, under the hold id
	// claim.Order.Late(), after its first hold was released. It ignores the
	// gate and queues nothing; limit and stock decide as in Reserve. While the
	// first hold has its units, it is LimitReached.
	// Repeat: while the late hold is held or sold, as in Reserve. After its
	// release it may be taken again; a late hold that was released before it
	// was ever taken is Withdrawn.
	Reacquire(ctx context.Context, sale SaleID, claim Claim) (Outcome, error)

	// Release gives the units of holds back to the sale and the allowance back
	// to their buyers. A hold that does not exist leaves a tombstone: a later
	// Reserve of that id is Withdrawn. A sold hold stays sold.
	// Repeat: releases once. Available never exceeds the total.
	// It returns how many units came free. Errors: ErrNotReady.
	Release(ctx context.Context, sale SaleID, holds ...OrderID) (int64, error)

	// Settle turns holds into sold units.
	// Repeat: settles once. A released or unknown hold is left alone.
	// It returns how many units were settled. Errors: ErrNotReady.
	Settle(ctx context.Context, sale SaleID, holds ...OrderID) (int64, error)

	// Level reads the account of a sale. Errors: ErrNotReady, ErrCorrupt.
	Level(ctx context.Context, sale SaleID) (Level, error)

	// Hold reads one hold. Errors: ErrNotFound, also when the sale is not there.
	Hold(ctx context.Context, sale SaleID, id OrderID) (Hold, error)
}

// StockSetup is the part of Stock that prepares and ends a sale. A write whose
// fence is lower than one seen before is refused with ErrFenced.
type StockSetup interface {
	// Seal makes a sale not ready, so that nothing changes while it is loaded.
	// Without force it refuses a sale that has holds or queued orders with
	// ErrHasHolds and changes nothing. A sale that is not there is sealed too.
	Seal(ctx context.Context, sale SaleID, fence int64, force bool) error

	// Preheat replaces everything the hot store knows of a sealed sale by the
	// load: available = total − held − sold. It sets, never adds. Buyers'
	// units, request ids and holds are those of the load. It is not atomic for
	// a large load: the sale stays not ready until the last step.
	// Errors: ErrState when the sale is not sealed, ErrFenced, ErrUnbalanced
	// when the load has more units than its total.
	Preheat(ctx context.Context, load Load) error

	// Gate reads the gate. Errors: ErrNotReady, ErrCorrupt.
	Gate(ctx context.Context, sale SaleID) (Gate, error)

	// SetGate changes the gate, for the very next grab.
	// Errors: ErrNotReady, ErrFenced.
	SetGate(ctx context.Context, sale SaleID, gate Gate, fence int64) error

	// SetTotal changes the total of a sale from seen to total, and what is
	// available by as much; what is held and sold stays.
	// Repeat: does nothing when the total already is as wanted.
	// Errors: ErrNotReady; ErrFenced; ErrConflict when the total is neither;
	// ErrUnbalanced when fewer units are available than are withdrawn.
	SetTotal(ctx context.Context, sale SaleID, seen, total int64, fence int64) error

	// Archive removes every trace of a sale. It refuses one with holds or
	// queued orders with ErrHasHolds. Repeat: does nothing.
	// Errors: ErrFenced.
	Archive(ctx context.Context, sale SaleID, fence int64) error
}

// StockAudit is the part of Stock that proves and repairs the account.
type StockAudit interface {
	// Audit counts a sale record by record. It reads only. Errors: ErrNotReady.
	Audit(ctx context.Context, sale SaleID) (Audit, error)

	// Holds lists holds in state Held, in no particular order, a page at a
	// time: pass "" first, then the returned cursor until it is "". A hold
	// that exists throughout the listing is listed at least once; others may be.
	Holds(ctx context.Context, sale SaleID, cursor string) (page []Hold, next string, err error)

	// Requeue queues the order intents of holds in state Held again, under the
	// current epoch. Others are left alone. It returns how many were queued.
	// Repeat: queues again; the ledger places an order once. Errors: ErrNotReady.
	Requeue(ctx context.Context, sale SaleID, holds ...OrderID) (int, error)

	// Adopt records the hold, Held or Sold, of a pending or paid ledger order
	// that the hot store does not know or has as released, deducting its units
	// if that many are available. A hold that is held or sold is left alone.
	// Repeat: does nothing. It returns the units deducted.
	// Errors: ErrNotReady, ErrFenced, ErrConflict when too few are available.
	Adopt(ctx context.Context, sale SaleID, hold Hold, fence int64) (int64, error)

	// Correct recounts held, sold and every buyer's units from the records, and
	// queued from the queue, and sets available to total − held − sold, if
	// epoch, total, available, held and sold still are as given;
	// else ErrConflict. Errors: ErrNotReady, ErrFenced, ErrUnbalanced when the
	// records hold more units than the total.
	Correct(ctx context.Context, sale SaleID, seen Level, fence int64) (Audit, error)
}
