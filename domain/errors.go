package domain

import (
	"errors"
	"fmt"
)

// Sentinels. Adapters wrap them with %w; the HTTP adapter maps each to a status.
var (
	// ErrInvalid is what every FieldError is.
	ErrInvalid = errors.New("invalid value")
	// ErrNotFound says that the activity, order or dead letter does not exist,
	// or belongs to someone else.
	ErrNotFound = errors.New("not found")
	// ErrNotReady says that the hot store does not hold the sale.
	ErrNotReady = errors.New("sale is not preheated")
	// ErrHasHolds says that a sale still has holds or queued orders, so it can
	// be neither preheated nor archived.
	ErrHasHolds = errors.New("sale still has holds or queued orders")
	// ErrUnbalanced says that a ledger row's numbers do not add up.
	ErrUnbalanced = errors.New("ledger numbers do not add up")
	// ErrState says that the activity's state does not allow the operation.
	ErrState = errors.New("not possible in this state")
	// ErrOrderClosed says that another outcome of the order won.
	ErrOrderClosed = errors.New("order is closed with another outcome")
	// ErrOrderQueued says that the order is accepted but not in the ledger yet.
	ErrOrderQueued = errors.New("order is still queued")
	// ErrUnavailable says that a store did not answer or refused to work. The
	// outcome of a write that failed so is unknown; every write may be repeated.
	ErrUnavailable = errors.New("store is unavailable")
	// ErrCorrupt says that the hot store holds a figure of the sale that is
	// none. Nothing was changed. It comes with ErrUnavailable.
	ErrCorrupt = errors.New("hot store's record is corrupt")
	// ErrConflict says that a compare-and-apply found other values than expected.
	ErrConflict = errors.New("changed in the meantime")

	// ErrBusy says that a lock was not obtained within the wait.
	ErrBusy = errors.New("lock is busy")
	// ErrLeaseLost says that a lease ended before its work did: it expired or
	// somebody took it. Nothing may be written after that.
	ErrLeaseLost = errors.New("lease lost")
	// ErrLockNotHeld says that a release found the lock not held any more.
	ErrLockNotHeld = errors.New("lock not held at release")
	// ErrFenced says that a newer holder of the lock has been here: the write
	// carried an older fencing number and was refused.
	ErrFenced = errors.New("fencing number is out of date")
)

// FieldError is a bad input value, named. It is an ErrInvalid.
type FieldError struct {
	Field   string // as the outer contract spells it, for example "activityId"
	Problem string // what is wrong, without the value itself
}

func (e *FieldError) Error() string { return fmt.Sprintf("%s: %s", e.Field, e.Problem) }

// Is makes errors.Is(err, ErrInvalid) true.
func (e *FieldError) Is(target error) bool { return target == ErrInvalid }

// Invalid makes a FieldError.
func Invalid(field, format string, args ...any) error {
	return &FieldError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// ClosedError is an ErrOrderClosed that carries the order with the outcome that won.
type ClosedError struct{ Order Order }

func (e *ClosedError) Error() string {
	return fmt.Sprintf("order %s is %s", e.Order.ID, e.Order.Status)
}

// Is makes errors.Is(err, ErrOrderClosed) true.
func (e *ClosedError) Is(target error) bool { return target == ErrOrderClosed }
