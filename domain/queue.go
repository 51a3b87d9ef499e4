package domain

import (
	"context"
	"time"
)

// Intent is the queued wish to place an order.
type Intent struct {
	Order    OrderID
	Sale     SaleID
	Buyer    BuyerID
	Request  RequestID
	Quantity int64
	Epoch    int64     // of the sale when the hold was made
	At       time.Time // by the hot store's clock
}

// Delivery is one queue entry: the intents of one sale that were accepted together.
type Delivery struct {
	ID        string
	Partition int
	Sale      SaleID
	Intents   []Intent
	Attempts  int    // how often it was delivered, this time included
	Raw       string // what the entry holds, when Problem is set
	Problem   string // why the entry could not be decoded; empty: it could
}

// Depth is how much waits in the queue.
type Depth struct {
	Orders int64
	Oldest time.Duration // age of the oldest entry that is not acknowledged
}

// OrderQueue hands the intents that Stock.Reserve queued to consumers: at least
// once, and first in first out per buyer of a sale as long as one consumer reads
// a partition. A sale's intents are all in one partition, unless its stock is
// split (Load.Segments): then each buyer's are. That is the order of delivery:
// deliveries may be placed in the ledger side by side.
type OrderQueue interface {
	// Partitions is how many there are, numbered from 0. It never changes.
	Partitions() int

	// Receive returns new entries of a partition, at most max and with about max
	// orders: an entry may hold many. It waits, at most about a second, until
	// there is one; none is not an error.
	// A delivery that is not acknowledged comes back through Reclaim.
	Receive(ctx context.Context, partition, max int) ([]Delivery, error)

	// Reclaim returns, bounded alike, entries that were delivered before, to anyone,
	// and have not been acknowledged for longer than the queue's backoff,
	// which grows with the attempts. It does not wait.
	Reclaim(ctx context.Context, partition, max int) ([]Delivery, error)

	// Ack removes entries for good. Repeat: does nothing.
	Ack(ctx context.Context, deliveries ...Delivery) error

	// Depth counts what is not acknowledged, over all partitions.
	Depth(ctx context.Context) (Depth, error)
}
