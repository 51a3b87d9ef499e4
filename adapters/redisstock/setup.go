package redisstock

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"

	"seckill/domain"
)

// Seal implements domain.StockSetup.
func (s *Stock) Seal(ctx context.Context, sale domain.SaleID, fence int64, force bool) error {
	if err := checkFence(fence); err != nil {
		return err
	}
	forced := "0"
	if force {
		forced = "1"
	}
	_, err := s.command(ctx, sealScript, []string{s.keys(sale).sale}, fence, forced)
	return err
}

// Preheat implements domain.StockSetup. It is written in parts of 1000 records;
// the last call makes the sale ready. One that died half-way leaves the sale
// sealed and is simply run again. Of two at a time the one that began last
// goes on; the other ends with ErrState, or ErrFenced.
// Entries of the sale that are still queued stay queued, under their old epoch.
func (s *Stock) Preheat(ctx context.Context, load domain.Load) error {
	if err := checkLoad(load); err != nil {
		return err
	}
	keys, token := s.keys(load.Sale), rand.Text()
	hashes := []string{keys.sale, keys.holds, keys.buyers, keys.requests}

	if _, err := s.command(ctx, preheatBeginScript, append(slices.Clone(hashes), keys.queue), load.Fence, token, keys.id); err != nil {
		return fmt.Errorf("begin preheat: %w", err)
	}
	content := layOut(load.Holds)
	for args := range content.parts(load.Fence, token) {
		if _, err := s.command(ctx, preheatPartScript, hashes, args...); err != nil {
			return fmt.Errorf("go on with preheat: %w", err)
		}
	}
	_, err := s.command(ctx, preheatEndScript, hashes[:1], load.Fence, token, string(load.Gate.State), load.Epoch,
		millis(load.Gate.StartsAt), millis(load.Gate.EndsAt), load.Gate.PerUserLimit,
		load.Total, load.Total-content.held-content.sold, content.held, content.sold, 1)
	if err != nil {
		return fmt.Errorf("end preheat: %w", err)
	}
	return nil
}

// Gate implements domain.StockSetup.
func (s *Stock) Gate(ctx context.Context, sale domain.SaleID) (domain.Gate, error) {
	names := []string{"limit", "starts", "ends"}
	values, err := s.config.Client.HMGet(ctx, s.keys(sale).sale, append(names, "state")...).Result()
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
	_, err := s.command(ctx, gateScript, []string{s.keys(sale).sale}, fence, string(gate.State),
		millis(gate.StartsAt), millis(gate.EndsAt), gate.PerUserLimit)
	return err
}

// Archive implements domain.StockSetup. The sale's fence is forgotten with it.
func (s *Stock) Archive(ctx context.Context, sale domain.SaleID, fence int64) error {
	if err := checkFence(fence); err != nil {
		return err
	}
	keys := s.keys(sale)
	_, err := s.command(ctx, archiveScript, []string{keys.sale, keys.holds, keys.buyers, keys.requests}, fence)
	return err
}
