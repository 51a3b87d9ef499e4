package sqlstore

import (
	"seckill/domain"
)

const maxClaims = 1000 // of one call

func checkClaims(claims []domain.Claim) error {
	if len(claims) > maxClaims {
		return domain.Invalid("claims", "must be at most %d", maxClaims)
	}
	for _, claim := range claims {
		if !plain(string(claim.Order), 1, maxOrderID) {
			return domain.Invalid("orderId", "must have 1 to %d printable ASCII characters", maxOrderID)
		}
		if err := checkAsker(claim.Buyer, claim.Request, claim.Quantity); err != nil {
			return err
		}
	}
	return nil
}

// checkAsker keeps out what the parsers of package domain refuse, whoever
// called: the keys of the tables rely on names without colons.
func checkAsker(buyer domain.BuyerID, request domain.RequestID, quantity int64) error {
	if _, err := domain.ParseBuyerID(string(buyer)); err != nil {
		return err
	}
	if request != "" {
		if _, err := domain.ParseRequestID(string(request)); err != nil {
			return err
		}
	}
	if quantity < 1 || quantity > domain.MaxQuantity {
		return domain.Invalid("quantity", "must be an integer from 1 to %d", domain.MaxQuantity)
	}
	return nil
}

func checkHoldID(id domain.OrderID) error {
	if !plain(string(id), 1, maxHoldID) {
		return domain.Invalid("orderId", "must have 1 to %d printable ASCII characters", maxHoldID)
	}
	return nil
}

func checkHoldIDs(ids []domain.OrderID) error {
	for _, id := range ids {
		if err := checkHoldID(id); err != nil {
			return err
		}
	}
	return nil
}

// checkHold accepts a hold that comes from the ledger.
func checkHold(hold domain.Hold) error {
	switch hold.State {
	case domain.Held, domain.Sold, domain.Released:
	default:
		return domain.Invalid("holds", "must be held, sold or released")
	}
	if err := checkHoldID(hold.Order); err != nil {
		return err
	}
	return checkAsker(hold.Buyer, hold.Request, hold.Quantity)
}

func checkGate(gate domain.Gate) error {
	if gate.PerUserLimit < 1 || gate.PerUserLimit > domain.MaxInteger {
		return domain.Invalid("perUserLimit", "must be an integer from 1 to %d", int64(domain.MaxInteger))
	}
	if !plain(string(gate.State), 1, 32) {
		return domain.Invalid("state", "is not a state")
	}
	return nil
}

func checkTotal(total int64) error {
	if total < 1 || total > domain.MaxInteger {
		return domain.Invalid("total", "must be an integer from 1 to %d", int64(domain.MaxInteger))
	}
	return nil
}

func checkFenceNumber(fence int64) error {
	if fence < 0 || fence > domain.MaxInteger {
		return domain.Invalid("fence", "must be an integer from 0 to %d", int64(domain.MaxInteger))
	}
	return nil
}

func checkLoad(load domain.Load) error {
	if err := load.Validate(); err != nil {
		return err
	}
	if err := checkGate(load.Gate); err != nil {
		return err
	}
	for _, hold := range load.Holds {
		if err := checkHold(hold); err != nil {
			return err
		}
	}
	return nil
}
