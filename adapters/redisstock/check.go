package redisstock

import (
	"seckill/domain"
)

const (
	maxClaims  = 1000 // one call's claims; the scripts check it too
	maxIDs     = 1000 // hold ids of one script call
	maxOrderID = 128  // characters of a hold id
)

func checkClaims(claims []domain.Claim) error {
	if len(claims) > maxClaims {
		return domain.Invalid("claims", "must be at most %d", maxClaims)
	}
	for _, claim := range claims {
		if err := checkClaim(claim); err != nil {
			return err
		}
	}
	return nil
}

// checkClaim keeps out what the parsers of package domain refuse, whoever
// called: the scripts rely on ids without separators.
func checkClaim(claim domain.Claim) error {
	if !allowed(string(claim.Order), maxOrderID, "") {
		return domain.Invalid("orderId", "is not an order id")
	}
	if _, err := domain.ParseBuyerID(string(claim.Buyer)); err != nil {
		return err
	}
	if claim.Request != "" {
		if _, err := domain.ParseRequestID(string(claim.Request)); err != nil {
			return err
		}
	}
	if claim.Quantity < 1 || claim.Quantity > domain.MaxQuantity {
		return domain.Invalid("quantity", "must be an integer from 1 to %d", domain.MaxQuantity)
	}
	return nil
}

func checkIDs(ids []domain.OrderID) error {
	for _, id := range ids {
		if !allowed(string(id), maxOrderID, "") {
			return domain.Invalid("orderId", "is not an order id")
		}
	}
	return nil
}

// checkHold accepts a hold that comes from the ledger.
func checkHold(hold domain.Hold) error {
	if _, known := stateLetters[hold.State]; !known {
		return domain.Invalid("holds", "must be held, sold or released")
	}
	return checkClaim(domain.Claim{Order: hold.Order, Buyer: hold.Buyer, Request: hold.Request, Quantity: hold.Quantity})
}

func checkGate(gate domain.Gate) error {
	if gate.PerUserLimit < 1 || gate.PerUserLimit > domain.MaxInteger {
		return domain.Invalid("perUserLimit", "must be an integer from 1 to %d", int64(domain.MaxInteger))
	}
	if !allowed(string(gate.State), 32, "") || gate.State == sealedState {
		return domain.Invalid("state", "is not a state")
	}
	return nil
}

func checkFence(fence int64) error {
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
