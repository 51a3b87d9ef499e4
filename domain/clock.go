package domain

import "time"

// Clock tells the time of this process. The sale's window is judged by the hot
// store's clock and deadlines by the database's; in a process with neither,
// both are this one.
type Clock interface {
	Now() time.Time
}

// IDs mints order ids.
type IDs interface {
	// OrderID returns a new id: unique everywhere, sorting by time, impossible to guess.
	OrderID(SaleID) OrderID
	// Minted is when OrderID made an id, to the millisecond; false when it did not.
	Minted(OrderID) (time.Time, bool)
}
