package domain

import "fmt"

// Validate names the first field that is out of bounds, whatever the hot store.
// It returns ErrUnbalanced when the holds have more units than the total.
func (l Load) Validate() error {
	switch {
	case l.Total < 1 || l.Total > MaxInteger:
		return Invalid("total", "must be an integer from 1 to %d", int64(MaxInteger))
	case l.Epoch < 0 || l.Epoch > MaxInteger:
		return Invalid("epoch", "must be an integer from 0 to %d", int64(MaxInteger))
	case l.Fence < 0 || l.Fence > MaxInteger:
		return Invalid("fence", "must be an integer from 0 to %d", int64(MaxInteger))
	case l.Gate.PerUserLimit < 1 || l.Gate.PerUserLimit > MaxInteger:
		return Invalid("perUserLimit", "must be an integer from 1 to %d", int64(MaxInteger))
	}
	var units int64
	seen := make(map[OrderID]bool, len(l.Holds))
	for _, hold := range l.Holds {
		switch hold.State {
		case Held, Sold:
			units += hold.Quantity
		case Released:
		default:
			return Invalid("holds", "must be held, sold or released")
		}
		if hold.Quantity < 1 || hold.Quantity > MaxQuantity {
			return Invalid("quantity", "must be an integer from 1 to %d", MaxQuantity)
		}
		if seen[hold.Order] {
			return Invalid("holds", "name an order twice")
		}
		seen[hold.Order] = true
	}
	if units > l.Total {
		return fmt.Errorf("%d units held and sold of %d: %w", units, l.Total, ErrUnbalanced)
	}
	return nil
}
