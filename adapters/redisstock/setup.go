package redisstock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"seckill/domain"
)

// Seal implements domain.StockSetup.
func (s *Stock) Seal(ctx context.Context, sale domain.SaleID, fence int64, force bool) error {
	if err := checkFence(fence); err != nil {
		return err
	}
	segments, err := s.traces(ctx, sale)
	if err != nil {
		return err
	}
	if !force && len(segments) > 1 {
		// Look at all before the first is sealed. A grab that slips in after
		// the look leaves some segments sealed; they are loaded anew then.
		if err := s.idle(ctx, segments); err != nil {
			return err
		}
	}
	for _, keys := range segments {
		if err := s.seal(ctx, keys, fence, force); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stock) seal(ctx context.Context, keys saleKeys, fence int64, force bool) error {
	forced := "0"
	if force {
		forced = "1"
	}
	_, err := s.command(ctx, sealScript, []string{keys.sale}, fence, forced)
	return err
}

// idle refuses a sale of which a segment has holds or queued orders.
func (s *Stock) idle(ctx context.Context, segments []saleKeys) error {
	for _, keys := range segments {
		values, err := s.config.Client.HMGet(ctx, keys.sale, "held", "queued").Result()
		if err != nil {
			return unavailable(err)
		}
		for _, value := range values {
			if text, _ := value.(string); text != "" && text != "0" {
				return domain.ErrHasHolds
			}
		}
	}
	return nil
}

// traces are the segments that Redis has of a sale, the first one always with
// them. If the first one is lost, the others tell of themselves.
func (s *Stock) traces(ctx context.Context, sale domain.SaleID) ([]saleKeys, error) {
	pipe := s.config.Client.Pipeline()
	var found []*redis.IntCmd
	for number := range s.maxSegments() {
		found = append(found, pipe.Exists(ctx, s.segment(sale, number).sale))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, unavailable(err)
	}
	var segments []saleKeys
	for number, reply := range found {
		if number == 0 || reply.Val() > 0 {
			segments = append(segments, s.segment(sale, number))
		}
	}
	return segments, nil
}

// Preheat implements domain.StockSetup. It is written in parts of 1000 records;
// the last call makes the sale ready. One that died half-way leaves the sale
// sealed and is simply run again. Of two at a time the one that began last
// goes on; the other ends with ErrState, or ErrFenced.
// Entries of the sale that are still queued stay queued, under their old epoch.
//
// With several segments each gets its buyers' holds and an equal share of what
// is available. They become ready one after the other, the first one last.
func (s *Stock) Preheat(ctx context.Context, load domain.Load) error {
	if err := checkLoad(load); err != nil {
		return err
	}
	count := max(load.Segments, 1)
	if count > s.maxSegments() {
		return domain.Invalid("segments", "must be at most %d, the number of partitions", s.maxSegments())
	}
	first := s.segment(load.Sale, 0)
	if state, err := s.config.Client.HGet(ctx, first.sale, "state").Result(); err != nil && !errors.Is(err, redis.Nil) {
		return unavailable(err)
	} else if state != sealedState {
		return domain.ErrState
	}
	layout := s.layout(load.Sale)
	if len(layout.segments) != count {
		s.forget(load.Sale)
		layout = s.remember(load.Sale, count, true)
	}
	shares := share(load, layout)
	token := rand.Text()
	for number, keys := range layout.segments {
		if number > 0 {
			if err := s.seal(ctx, keys, load.Fence, true); err != nil {
				return fmt.Errorf("begin preheat: %w", err)
			}
		}
		if err := s.fill(ctx, keys, load.Fence, token, shares[number]); err != nil {
			return err
		}
	}
	for number := count - 1; number >= 0; number-- {
		share := shares[number]
		_, err := s.command(ctx, preheatEndScript, []string{layout.segments[number].sale}, load.Fence, token, string(load.Gate.State), load.Epoch,
			millis(load.Gate.StartsAt), millis(load.Gate.EndsAt), load.Gate.PerUserLimit,
			share.available+share.held+share.sold, share.available, share.held, share.sold, count)
		if err != nil {
			return fmt.Errorf("end preheat: %w", err)
		}
	}
	s.remember(load.Sale, count, true)
	return nil
}

// fill replaces a sealed segment's records.
func (s *Stock) fill(ctx context.Context, keys saleKeys, fence int64, token string, content content) error {
	hashes := []string{keys.sale, keys.holds, keys.buyers, keys.requests}
	if _, err := s.command(ctx, preheatBeginScript, append(slices.Clone(hashes), keys.queue, keys.depth), fence, token, keys.id); err != nil {
		return fmt.Errorf("begin preheat: %w", err)
	}
	for args := range content.parts(fence, token) {
		if _, err := s.command(ctx, preheatPartScript, hashes, args...); err != nil {
			return fmt.Errorf("go on with preheat: %w", err)
		}
	}
	return nil
}

// Gate implements domain.StockSetup. When a change of the gate has not reached
// all segments, it is one that equals no other.
func (s *Stock) Gate(ctx context.Context, sale domain.SaleID) (domain.Gate, error) {
	layout, err := s.find(ctx, sale)
	if err != nil {
		return domain.Gate{}, err
	}
	gate, err := s.gate(ctx, layout.segments[0])
	for _, keys := range layout.segments[1:] {
		if err != nil {
			break
		}
		var other domain.Gate
		if other, err = s.gate(ctx, keys); err == nil && !other.Same(gate) {
			return domain.Gate{}, nil
		}
	}
	return gate, err
}

func (s *Stock) gate(ctx context.Context, keys saleKeys) (domain.Gate, error) {
	names := []string{"limit", "starts", "ends"}
	values, err := s.config.Client.HMGet(ctx, keys.sale, append(names, "state")...).Result()
	if err != nil {
		return domain.Gate{}, unavailable(err)
	}
	state, _ := values[len(names)].(string)
	if state == "" || state == sealedState {
		return domain.Gate{}, domain.ErrNotReady
	}
	var starts, ends int64
	gate := domain.Gate{State: domain.State(state)}
	for i, field := range []*int64{&gate.PerUserLimit, &starts, &ends} {
		text, _ := values[i].(string)
		if *field, err = parseFigure(text); err != nil {
			return domain.Gate{}, unavailable(fmt.Errorf("SECKILL corrupt %s", names[i]))
		}
	}
	gate.StartsAt, gate.EndsAt = moment(starts), moment(ends)
	return gate, nil
}

// SetGate implements domain.StockSetup.
func (s *Stock) SetGate(ctx context.Context, sale domain.SaleID, gate domain.Gate, fence int64) error {
	if err := checkGate(gate); err != nil {
		return err
	}
	if err := checkFence(fence); err != nil {
		return err
	}
	layout, err := s.find(ctx, sale)
	if err != nil {
		return err
	}
	for _, keys := range layout.segments {
		_, err := s.command(ctx, gateScript, []string{keys.sale}, fence, string(gate.State),
			millis(gate.StartsAt), millis(gate.EndsAt), gate.PerUserLimit)
		if err != nil {
			return err
		}
	}
	return nil
}

// SetTotal implements domain.StockSetup. With several segments, the first one
// is edited; a withdrawal gathers the units there before.
func (s *Stock) SetTotal(ctx context.Context, sale domain.SaleID, seen, total, fence int64) error {
	if err := checkFence(fence); err != nil {
		return err
	}
	if total < 1 || total > domain.MaxInteger {
		return domain.Invalid("total", "must be an integer from 1 to %d", int64(domain.MaxInteger))
	}
	layout, err := s.find(ctx, sale)
	if err != nil {
		return err
	}
	readings, err := s.survey(ctx, layout)
	if err != nil {
		return err
	}
	var have int64
	for _, r := range readings {
		have += r.Total
	}
	switch have {
	case total:
		return nil
	case seen:
	default:
		return fmt.Errorf("the total is %d: %w", have, domain.ErrConflict)
	}
	mark := fmt.Sprintf("%d:%d-%d", fence, seen, total)
	if total > seen {
		_, err = s.command(ctx, editScript, []string{layout.segments[0].sale}, fence, mark, "+", total-seen)
		return err
	}
	return s.withdraw(ctx, layout, fence, mark, seen-total)
}

// withdraw takes free units out of the first segment, which gathers them before.
// Other segments may borrow them back in between; then it gathers again.
func (s *Stock) withdraw(ctx context.Context, l *layout, fence int64, mark string, units int64) error {
	for range topUpTries {
		_, err := s.command(ctx, editScript, []string{l.segments[0].sale}, fence, mark, "-", units)
		if !errors.Is(err, domain.ErrUnbalanced) || len(l.segments) == 1 {
			return err
		}
		free, gatherErr := s.gather(ctx, l, 0, units)
		if gatherErr != nil {
			return gatherErr
		}
		if free < units {
			return err
		}
	}
	return unavailable(errRestless)
}

// Archive implements domain.StockSetup. The sale's fence is forgotten with it.
func (s *Stock) Archive(ctx context.Context, sale domain.SaleID, fence int64) error {
	if err := checkFence(fence); err != nil {
		return err
	}
	segments, err := s.traces(ctx, sale)
	if err != nil {
		return err
	}
	if len(segments) > 1 {
		if err := s.idle(ctx, segments); err != nil {
			return err
		}
	}
	for _, keys := range slices.Backward(segments) { // the first one last: it leads to the others
		if _, err := s.command(ctx, archiveScript, []string{keys.sale, keys.holds, keys.buyers, keys.requests}, fence); err != nil {
			return err
		}
	}
	s.forget(sale)
	return nil
}
