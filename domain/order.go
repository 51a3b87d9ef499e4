package domain

import (
	"context"
	"time"
)

// Status is where an order stands.
type Status string

// The statuses of an order. Queued is never in the ledger; Pending is the only
// one that pay, cancel and expire compete for.
const (
	Queued    Status = "queued"
	Pending   Status = "pending_payment"
	Paid      Status = "paid"
	Cancelled Status = "cancelled"
	Expired   Status = "expired"
	Rejected  Status = "rejected"
	RefundDue Status = "refund_due"
)

// Reasons of a rejected order.
const (
	ReasonSoldOut          = "sold_out"          // the ledger's last gate: no units left
	ReasonLimitReached     = "limit_reached"     // the ledger's last gate: buyer's limit
	ReasonStaleEpoch       = "stale_epoch"       // held before the hot store was loaded anew
	ReasonDuplicateRequest = "duplicate_request" // the request id has another order
	ReasonUnknownSale      = "unknown_sale"      // the ledger has no such sale
	ReasonDeadLetter       = "dead_letter"       // could not be placed, see the dead letters
	ReasonLost             = "lost"              // the hot store lost it before the ledger had it; in no ledger
)

// Order is one order of the ledger. Times are the database's, zero when unset.
type Order struct {
	ID        OrderID
	Sale      SaleID
	Buyer     BuyerID
	Request   RequestID
	Quantity  int64
	Epoch     int64
	Status    Status
	Reason    string // of a rejection
	Payment   PaymentID
	Hold      OrderID // the hold that its units are under: ID, or ID.Late()
	CreatedAt time.Time
	ExpiresAt time.Time
	PaidAt    time.Time
	ClosedAt  time.Time
}

// Placed is what became of one order given to Orders.Place.
type Placed struct {
	Order Order // as the ledger has it now; Status Rejected carries the Reason
	Fresh bool  // this call wrote it; false: it was there before
	Err   error // this order alone could not be written, for a reason of its own; Order is as given
}

// Tally is the ledger's account of a sale, read in one step. Figures are units.
type Tally struct {
	Epoch     int64
	Total     int64
	Reserved  int64 // of the stock row
	Sold      int64 // of the stock row
	Pending   int64 // sum over orders, as all that follow
	Paid      int64
	Cancelled int64
	Expired   int64
	Rejected  int64
	RefundDue int64
	// Unapplied effects: the ledger has decided, the hot store may not know yet.
	Releasing int64 // units of holds that are to be released
	Settling  int64 // units of holds that are to be settled
}

// Balanced says that the stock row agrees with the orders and its bounds.
func (t Tally) Balanced() bool {
	return t.Reserved == t.Pending && t.Sold == t.Paid &&
		t.Reserved >= 0 && t.Sold >= 0 && t.Reserved+t.Sold <= t.Total
}

// Effect is an outbox row: a decision of the ledger that the hot store and the
// subscribers still have to hear of. It is written in the decision's own
// transaction.
type Effect struct {
	ID    int64
	Hold  OrderID // what to release or settle
	Order Order   // as of the decision
}

// Settles says whether the effect settles its hold; otherwise it releases it.
func (e Effect) Settles() bool { return e.Order.Status == Paid }

// Fence guards a ledger write by a lock: it is refused with ErrFenced when a
// newer number was minted for the key. The zero Fence guards nothing.
type Fence struct {
	Key    string
	Number int64
}

// Orders is the ledger of orders: the truth. Each method is one transaction and
// decides by the database's clock. A method that says "decides once" is a
// compare-and-set: the first terminal status wins.
//
// Any error other than the named ones is an ErrUnavailable: the outcome is
// unknown and the call may be repeated under the same ids.
type Orders interface {
	// Place writes orders as Pending, takes their units from the stock row
	// (reserved + sold ≤ total) and their buyers' quotas (≤ limit), or records
	// them as Rejected with a reason and an effect that releases the hold.
	// One order's rejection or failure does not touch its neighbours.
	// Repeat: an id that is there is answered as it is, with Fresh false.
	// It returns one Placed per order, in their order.
	Place(ctx context.Context, orders []Order) ([]Placed, error)

	// Pay decides once: Pending → Paid. It returns the effect that won.
	// Repeat: the same payment id returns the order again, with an effect of ID 0.
	// Errors: ErrNotFound; ClosedError with the order when another outcome or
	// another payment won. Expired is such an outcome, see PayLate.
	Pay(ctx context.Context, id OrderID, payment PaymentID) (Effect, error)

	// PayLate decides once: Expired → Paid under the hold id.Late() if units
	// and the buyer's quota allow and reacquired is true, else → RefundDue.
	// Repeat and errors: as Pay.
	PayLate(ctx context.Context, id OrderID, payment PaymentID, reacquired bool) (Effect, error)

	// Cancel decides once: Pending → Cancelled. Repeat and errors: as Pay.
	Cancel(ctx context.Context, id OrderID) (Effect, error)

	// Expire decides once each: Pending and past ExpiresAt → Expired, for up
	// to max orders of a sale, the longest due first. Errors: ErrFenced.
	Expire(ctx context.Context, sale SaleID, max int, fence Fence) ([]Effect, error)

	// Due lists up to max sales that have orders to expire.
	Due(ctx context.Context, max int) ([]SaleID, error)

	// Find returns those of the ids that the ledger has, in no particular
	// order. An id that only a dead letter has is answered as Rejected.
	Find(ctx context.Context, ids ...OrderID) ([]Order, error)

	// Holds pages, by id, through the orders of a sale that the hot store has
	// to know: the Pending and Paid ones, and every other that has a request id.
	Holds(ctx context.Context, sale SaleID, after OrderID, max int) ([]Order, error)

	// Tally reads the account of a sale. Errors: ErrNotFound.
	Tally(ctx context.Context, sale SaleID) (Tally, error)
}

// Outbox is the ledger's list of effects that are not applied yet.
type Outbox interface {
	// Effects lists up to max rows with an id above after that are at least
	// minAge old, by id.
	Effects(ctx context.Context, minAge time.Duration, after int64, max int) ([]Effect, error)
	// Applied removes rows. Repeat: does nothing.
	Applied(ctx context.Context, ids ...int64) error
}

// DeadLetter is an order intent, or a queue entry, that could not be placed.
type DeadLetter struct {
	ID        int64
	Intent    Intent // zero when the entry could not be decoded
	Payload   string // the entry as it was
	Reason    string
	CreatedAt time.Time
}

// DeadLetters is the ledger's list of what could not be placed.
type DeadLetters interface {
	// Bury records a letter; for one with an order id, an effect that releases
	// the hold is written with it. Repeat: one letter per order id, or per
	// payload where there is none.
	Bury(ctx context.Context, letter DeadLetter) error
	// Letters lists up to max letters with an id above after, oldest first.
	Letters(ctx context.Context, after int64, max int) ([]DeadLetter, error)
	// Letter finds one. Errors: ErrNotFound.
	Letter(ctx context.Context, id int64) (DeadLetter, error)
	// Discard removes the letter and, where it has an order id, records the
	// order as Rejected with ReasonDeadLetter. Errors: ErrNotFound.
	Discard(ctx context.Context, id int64) error
	// Revive removes a letter whose order has been placed. Repeat: does nothing.
	Revive(ctx context.Context, id int64) error
}

// Activities is the ledger of activities and their stock rows.
type Activities interface {
	// Save creates an activity whose State is empty as Draft, or changes one
	// that is in the given State and keeps it. What may change in which state
	// is judged by the caller; the totals of an activity that is no draft change
	// by EditStock only. Errors: ErrConflict when the activity is not in that
	// state (any more), or its totals are others by now; ErrUnbalanced when a
	// total would fall below what is reserved and sold.
	Save(ctx context.Context, activity Activity) error
	// Activity finds one. Errors: ErrNotFound.
	Activity(ctx context.Context, id ActivityID) (Activity, error)
	// Activities lists up to max with an id above after, by id.
	Activities(ctx context.Context, after ActivityID, max int) ([]Activity, error)
	// SetState moves an activity from one state to another, or ErrConflict
	// when it is not in the first any more.
	SetState(ctx context.Context, id ActivityID, from, to State) error
	// EditStock changes the total of a sale by edit.Delta, unless it would fall
	// below 1 or below what is reserved and sold, and records the edit. It
	// returns the edit as recorded.
	// Repeat: an edit with the key of an earlier one is answered with that one
	// and changes nothing. Errors: ErrNotFound; ErrFenced; ErrUnbalanced;
	// ErrConflict when the earlier one with its key asked for something else.
	EditStock(ctx context.Context, edit StockEdit, fence Fence) (StockEdit, error)
	// StockEdits lists the edits of a sale, the newest first, at most MaxEdits.
	StockEdits(ctx context.Context, sale SaleID) ([]StockEdit, error)
	// BeginEpoch raises the epoch of a sale, so that intents of the earlier
	// epochs are rejected, and returns it. Errors: ErrNotFound, ErrFenced,
	// ErrUnbalanced when the row does not agree with its orders.
	BeginEpoch(ctx context.Context, sale SaleID, fence Fence) (epoch int64, err error)
	// Epoch reads the epoch of a sale and when it began; 0 and the zero time before
	// the first. Errors: ErrNotFound.
	Epoch(ctx context.Context, sale SaleID) (epoch int64, since time.Time, err error)
}
