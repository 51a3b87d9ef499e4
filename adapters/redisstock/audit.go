package redisstock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"seckill/domain"
)

// holdsPage is about how many records one page of Holds looks at.
const holdsPage = 1000

// Audit implements domain.StockAudit. The script reads the whole sale, and the
// whole queue of its partition, in one step: other callers of that server wait
// about a millisecond per thousand holds and 5 ms per thousand queue entries.
func (s *Stock) Audit(ctx context.Context, sale domain.SaleID) (domain.Audit, error) {
	keys := s.keys(sale)
	reply, err := s.read(ctx, auditScript, []string{keys.sale, keys.holds, keys.buyers, keys.queue}, keys.id)
	if err != nil {
		return domain.Audit{}, err
	}
	if err := reply.refusal(); err != nil {
		return domain.Audit{}, err
	}
	return decodeAudit(reply)
}

func decodeAudit(reply reply) (domain.Audit, error) {
	var audit domain.Audit
	level := &audit.Level
	level.State = domain.State(reply.text(2))
	for place, figure := range map[int]*int64{
		1: &level.Epoch, 3: &level.Total, 4: &level.Available, 5: &level.Held, 6: &level.Sold, 7: &level.Queued,
		8: &audit.HeldUnits, 9: &audit.SoldUnits, 10: &audit.QueuedUnits,
	} {
		var err error
		if *figure, err = reply.number(place); err != nil {
			return domain.Audit{}, err
		}
	}
	for place := 11; place < len(reply); place += 3 {
		recorded, err1 := reply.number(place + 1)
		counted, err2 := reply.number(place + 2)
		if err := cmp.Or(err1, err2); err != nil {
			return domain.Audit{}, err
		}
		audit.Buyers = append(audit.Buyers, domain.BuyerDrift{
			Buyer: domain.BuyerID(reply.text(place)), Recorded: recorded, Counted: counted,
		})
	}
	slices.SortFunc(audit.Buyers, func(a, b domain.BuyerDrift) int { return cmp.Compare(a.Buyer, b.Buyer) })
	return audit, nil
}

// Holds implements domain.StockAudit. The cursor is the one of HSCAN.
func (s *Stock) Holds(ctx context.Context, sale domain.SaleID, cursor string) ([]domain.Hold, string, error) {
	var place uint64
	if cursor != "" {
		var err error
		if place, err = strconv.ParseUint(cursor, 10, 64); err != nil {
			return nil, "", domain.Invalid("cursor", "was not returned by an earlier page")
		}
	}
	keys := s.keys(sale)
	if err := s.ready(ctx, keys.sale); err != nil {
		if errors.Is(err, domain.ErrNotReady) {
			return nil, "", nil // a sale that is not there has no holds
		}
		return nil, "", err
	}
	fields, next, err := s.config.Client.HScan(ctx, keys.holds, place, "", holdsPage).Result()
	if err != nil {
		return nil, "", unavailable(err)
	}
	var page []domain.Hold
	for i := 0; i+1 < len(fields); i += 2 {
		hold, err := decodeHold(domain.OrderID(fields[i]), fields[i+1])
		if err != nil {
			return nil, "", err
		}
		if hold.State == domain.Held {
			page = append(page, hold)
		}
	}
	if next == 0 {
		return page, "", nil
	}
	return page, strconv.FormatUint(next, 10), nil
}

// Adopt implements domain.StockAudit. The buyer's limit is not asked: the
// ledger has accepted the order.
func (s *Stock) Adopt(ctx context.Context, sale domain.SaleID, hold domain.Hold, fence int64) (int64, error) {
	if hold.State == domain.Released {
		return 0, domain.Invalid("hold", "must be held or sold")
	}
	if err := checkHold(hold); err != nil {
		return 0, err
	}
	if err := checkFence(fence); err != nil {
		return 0, err
	}
	keys := s.keys(sale)
	reply, err := s.command(ctx, adoptScript, []string{keys.sale, keys.holds, keys.buyers, keys.requests},
		fence, string(hold.Order), encodeHold(hold), hold.Quantity, string(hold.Buyer), requestField(hold.Buyer, hold.Request))
	if errors.Is(err, domain.ErrConflict) {
		return 0, fmt.Errorf("fewer than %d units are available: %w", hold.Quantity, err)
	}
	if err != nil {
		return 0, err
	}
	return reply.number(1)
}

// Correct implements domain.StockAudit. State and queued units may differ from
// what was seen: they are no part of the account of units.
func (s *Stock) Correct(ctx context.Context, sale domain.SaleID, seen domain.Level, fence int64) (domain.Audit, error) {
	if err := checkFence(fence); err != nil {
		return domain.Audit{}, err
	}
	keys := s.keys(sale)
	reply, err := s.command(ctx, correctScript, []string{keys.sale, keys.holds, keys.buyers, keys.queue},
		fence, seen.Epoch, seen.Total, seen.Available, seen.Held, seen.Sold, keys.id)
	if err != nil {
		return domain.Audit{}, err
	}
	return decodeAudit(reply)
}
