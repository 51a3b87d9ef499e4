package redisstock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"seckill/domain"
)

// holdsPage is about how many records one page of Holds looks at.
const holdsPage = 1000

// maxDrifts is how many buyers an audit names.
const maxDrifts = 100

// Audit implements domain.StockAudit. The script reads the whole sale, and the
// whole queue of its partition, in one step: other callers of that server wait
// about a millisecond per thousand holds and 5 ms per thousand queue entries.
func (s *Stock) Audit(ctx context.Context, sale domain.SaleID) (domain.Audit, error) {
	layout, err := s.find(ctx, sale)
	if err != nil {
		return domain.Audit{}, err
	}
	if len(layout.segments) == 1 {
		return s.audit(ctx, layout.segments[0])
	}
	for range surveyTries {
		before, err := s.survey(ctx, layout)
		if err != nil {
			return domain.Audit{}, err
		}
		audits := make([]domain.Audit, len(layout.segments))
		for i, keys := range layout.segments {
			if audits[i], err = s.audit(ctx, keys); err != nil {
				return domain.Audit{}, err
			}
		}
		after, err := s.survey(ctx, layout)
		if err != nil {
			return domain.Audit{}, err
		}
		if !moved(before, after) {
			return sumAudits(audits), nil
		}
	}
	return domain.Audit{}, unavailable(errRestless)
}

// sumAudits adds up what was counted in the segments.
func sumAudits(audits []domain.Audit) domain.Audit {
	all := audits[0]
	for _, audit := range audits[1:] {
		all.Level = sum(all.Level, audit.Level)
		all.HeldUnits += audit.HeldUnits
		all.SoldUnits += audit.SoldUnits
		all.QueuedUnits += audit.QueuedUnits
		all.Buyers = append(all.Buyers, audit.Buyers...)
	}
	slices.SortFunc(all.Buyers, func(a, b domain.BuyerDrift) int { return cmp.Compare(a.Buyer, b.Buyer) })
	all.Buyers = all.Buyers[:min(len(all.Buyers), maxDrifts)]
	return all
}

func (s *Stock) audit(ctx context.Context, keys saleKeys) (domain.Audit, error) {
	reply, err := s.read(ctx, auditScript, []string{keys.sale, keys.holds, keys.buyers, keys.queue, keys.depth, keys.requests}, keys.id)
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

// Holds implements domain.StockAudit. The cursor is a segment's number and its
// cursor of HSCAN.
func (s *Stock) Holds(ctx context.Context, sale domain.SaleID, cursor string) ([]domain.Hold, string, error) {
	layout, err := s.find(ctx, sale)
	if err != nil {
		return nil, "", err
	}
	number, place, err := parseCursor(cursor, len(layout.segments))
	if err != nil {
		return nil, "", err
	}
	keys := layout.segments[number]
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
		if number++; number == len(layout.segments) {
			return page, "", nil
		}
	}
	return page, fmt.Sprintf("%d:%d", number, next), nil
}

func parseCursor(cursor string, segments int) (number int, place uint64, err error) {
	if cursor == "" {
		return 0, 0, nil
	}
	first, second, found := strings.Cut(cursor, ":")
	number, err1 := strconv.Atoi(first)
	place, err2 := strconv.ParseUint(second, 10, 64)
	if !found || err1 != nil || err2 != nil || number < 0 || number >= segments {
		return 0, 0, domain.Invalid("cursor", "was not returned by an earlier page")
	}
	return number, place, nil
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
	layout, err := s.find(ctx, sale)
	if err != nil {
		return 0, err
	}
	home := layout.home(hold.Buyer)
	for range topUpTries {
		units, err := s.adopt(ctx, layout.segments[home], hold, fence)
		if !errors.Is(err, domain.ErrConflict) {
			return units, err
		}
		if len(layout.segments) > 1 {
			free, err := s.borrow(ctx, layout, home, hold.Quantity)
			if err != nil {
				return 0, err
			}
			if free >= hold.Quantity {
				continue
			}
		}
		return 0, fmt.Errorf("fewer than %d units are available: %w", hold.Quantity, err)
	}
	return 0, unavailable(errRestless)
}

func (s *Stock) adopt(ctx context.Context, keys saleKeys, hold domain.Hold, fence int64) (int64, error) {
	reply, err := s.command(ctx, adoptScript, []string{keys.sale, keys.holds, keys.buyers, keys.requests},
		fence, string(hold.Order), encodeHold(hold), hold.Quantity, string(hold.Buyer), requestField(hold.Buyer, hold.Request))
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
	layout, err := s.find(ctx, sale)
	if err != nil {
		return domain.Audit{}, err
	}
	if len(layout.segments) == 1 {
		return s.correct(ctx, layout.segments[0], seen, fence)
	}
	// Each segment is compared with what it was when all of them together were
	// as the caller saw them.
	now, err := s.survey(ctx, layout)
	if err != nil {
		return domain.Audit{}, err
	}
	all := now[0].Level
	for _, r := range now[1:] {
		all = sum(all, r.Level)
	}
	if all.State, all.Queued = seen.State, seen.Queued; all != seen {
		return domain.Audit{}, domain.ErrConflict
	}
	audits := make([]domain.Audit, len(now))
	for i, r := range now {
		if audits[i], err = s.correct(ctx, layout.segments[i], r.Level, fence); err != nil {
			return domain.Audit{}, err
		}
	}
	return sumAudits(audits), nil
}

func (s *Stock) correct(ctx context.Context, keys saleKeys, seen domain.Level, fence int64) (domain.Audit, error) {
	reply, err := s.command(ctx, correctScript, []string{keys.sale, keys.holds, keys.buyers, keys.queue, keys.depth},
		fence, seen.Epoch, seen.Total, seen.Available, seen.Held, seen.Sold, keys.id)
	if err != nil {
		return domain.Audit{}, err
	}
	return decodeAudit(reply)
}
