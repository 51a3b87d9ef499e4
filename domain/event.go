package domain

import "context"

// Event tells that an order reached a status. It is delivered at least once;
// order id and status together tell repeats apart. Two events of an order may
// come in either order when something failed in between: Pending never comes
// back, and after Expired only Paid and RefundDue can follow.
type Event struct {
	Order Order // Order.Status is what happened
}

// Subscriber hears events. An error has the event delivered again later.
// It must be quick: it runs in the line of the order's own progress.
type Subscriber func(ctx context.Context, event Event) error
