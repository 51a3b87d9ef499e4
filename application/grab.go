package application

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"seckill/domain"
)

// GrabRequest asks for units of a sale.
type GrabRequest struct {
	Sale     domain.SaleID
	Buyer    domain.BuyerID
	Quantity int64 // units, 1 … domain.MaxQuantity; 0 means 1
	// Request makes the grab repeatable: the same buyer, sale and request id
	// have the same answer. Empty: every call is a grab of its own.
	Request domain.RequestID
}

// Grab decides at once whether the buyer gets the units. A refusal is a
// verdict, not an error. A sale without a single free unit may be answered from
// memory for up to a second, unless the grab has a Request.
//
// Errors: ErrInvalid (names the field; nothing happened); ErrUnavailable: the
// outcome is unknown. Then Outcome.Order is the order id that was tried, and
// calling again with the same Request is safe.
func (e *Engine) Grab(ctx context.Context, req GrabRequest) (domain.Outcome, error) {
	claim, err := req.claim()
	if err != nil {
		return domain.Outcome{}, err
	}
	start := e.Clock.Now()
	if claim.Request == "" && e.soldOut.known(req.Sale, start) {
		outcome := domain.Outcome{Verdict: domain.SoldOut}
		e.logGrab(ctx, start, claim, "", outcome, nil)
		e.watch.Grabbed(domain.SoldOut, 0)
		return outcome, nil
	}
	if e.doubted(req.Sale) {
		outcome := domain.Outcome{Verdict: domain.NotReady}
		e.logGrab(ctx, start, claim, "", outcome, nil)
		e.watch.Grabbed(domain.NotReady, 0)
		return outcome, nil
	}
	claim.Order = e.IDs.OrderID(req.Sale)

	// The waiter is there before the hold is, so the commit cannot slip past it.
	var commit *wait
	if e.cfg.Accept == AcceptCommitted {
		commit = e.waits.add(claim.Order)
		defer commit.stop()
	}

	outcome, err := e.reserve(ctx, req.Sale, claim)
	end := e.Clock.Now()
	if err == nil {
		e.soldOut.saw(req.Sale, outcome, start, end)
	}
	tried := claim.Order
	if outcome.Order != "" { // a replay: the order is an earlier one
		tried = outcome.Order
	}
	if err == nil && commit != nil && outcome.Verdict == domain.Accepted {
		outcome.Verdict, err = e.committed(ctx, outcome, commit)
		end = e.Clock.Now()
	}
	e.logGrab(ctx, end, claim, tried, outcome, err)
	if err != nil {
		return domain.Outcome{Order: tried}, fmt.Errorf("grab: %w", err)
	}
	e.watch.Grabbed(outcome.Verdict, end.Sub(start))
	return outcome, nil
}

func (r GrabRequest) claim() (domain.Claim, error) {
	if r.Quantity == 0 {
		r.Quantity = 1
	}
	if err := checkSale(r.Sale); err != nil {
		return domain.Claim{}, err
	}
	if r.Quantity < 1 || r.Quantity > domain.MaxQuantity {
		return domain.Claim{}, domain.Invalid("quantity", "must be an integer from 1 to %d", domain.MaxQuantity)
	}
	if _, err := domain.ParseBuyerID(string(r.Buyer)); err != nil {
		return domain.Claim{}, err
	}
	if r.Request != "" {
		if _, err := domain.ParseRequestID(string(r.Request)); err != nil {
			return domain.Claim{}, err
		}
	}
	return domain.Claim{Buyer: r.Buyer, Request: r.Request, Quantity: r.Quantity}, nil
}

func checkSale(sale domain.SaleID) error {
	if sale.Activity < 1 || sale.Activity > domain.MaxInteger {
		return domain.Invalid("activityId", "must be an integer from 1 to %d", int64(domain.MaxInteger))
	}
	if sale.SKU < 1 || sale.SKU > domain.MaxInteger {
		return domain.Invalid("skuId", "must be an integer from 1 to %d", int64(domain.MaxInteger))
	}
	return nil
}

// reserve asks the hot store, and tells a sale that nobody knows from one that
// should be there and is not.
func (e *Engine) reserve(ctx context.Context, sale domain.SaleID, claim domain.Claim) (domain.Outcome, error) {
	outcomes, err := e.Stock.Reserve(ctx, sale, []domain.Claim{claim})
	if err != nil {
		return domain.Outcome{}, err
	}
	outcome := outcomes[0]
	if outcome.Verdict != domain.NotReady {
		return outcome, nil
	}
	outcome.Verdict, err = e.missing(ctx, sale)
	return outcome, err
}

// missing says what a sale is that the hot store does not hold.
func (e *Engine) missing(ctx context.Context, sale domain.SaleID) (domain.Verdict, error) {
	activity, fresh, err := e.catalog.find(ctx, sale.Activity)
	if errors.Is(err, domain.ErrNotFound) {
		return domain.UnknownSale, nil
	}
	if err != nil {
		return 0, err
	}
	if _, ok := activity.SKU(sale.SKU); !ok {
		return domain.UnknownSale, nil
	}
	if activity.State == domain.Archived {
		return domain.SaleEnded, nil
	}
	if fresh { // once a second, however many ask
		e.log.LogAttrs(ctx, slog.LevelError, "a known sale is not in the hot store: preheat it",
			slog.String("sale", sale.String()))
	}
	return domain.NotReady, nil
}

// committed waits until the ledger has the order. A rejection by the ledger's
// last gate becomes the refusal that it is.
func (e *Engine) committed(ctx context.Context, outcome domain.Outcome, commit *wait) (domain.Verdict, error) {
	if outcome.Order != commit.id { // a replay: the order is an earlier one
		commit = e.waits.add(outcome.Order)
		defer commit.stop()
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.AcceptWait)
	defer cancel()
	order, err := commit.result(ctx)
	if err != nil {
		return 0, fmt.Errorf("%w: order %s is held but its commit was not seen in time: %w", domain.ErrUnavailable, outcome.Order, err)
	}
	switch {
	case order.Status != domain.Rejected:
		return domain.Accepted, nil
	case order.Reason == domain.ReasonSoldOut:
		return domain.SoldOut, nil
	case order.Reason == domain.ReasonLimitReached:
		return domain.LimitReached, nil
	}
	return 0, fmt.Errorf("%w: order %s was rejected: %s", domain.ErrUnavailable, order.ID, order.Reason)
}

// GrabLine is the message of the line that each grab writes. It is by far the
// most frequent one, so a log may treat it apart.
const GrabLine = "grab"

// logGrab writes one line per grab: winners at info, refusals at debug, since
// a flash sale refuses a thousand times for each unit it sells. The record is
// made by hand: the logger's own methods look for the caller's place in the
// source first, which costs as much as all the rest.
func (e *Engine) logGrab(ctx context.Context, at time.Time, claim domain.Claim, tried domain.OrderID, outcome domain.Outcome, err error) {
	level := slog.LevelDebug
	switch {
	case err != nil:
		level = slog.LevelError
	case outcome.Verdict == domain.Accepted:
		level = slog.LevelInfo
	}
	handler := e.log.Handler()
	if !handler.Enabled(ctx, level) {
		return
	}
	biz := string(claim.Request)
	if biz == "" {
		biz = string(tried)
	}
	record := slog.NewRecord(at, level, GrabLine, 0)
	record.AddAttrs(
		slog.String("biz_id", biz),
		slog.String("order_id", string(tried)),
		slog.String("buyer", string(claim.Buyer)),
		slog.Int64("quantity", claim.Quantity),
	)
	if err != nil {
		record.AddAttrs(slog.String("outcome", "unknown"), slog.Any("error", err))
	} else {
		record.AddAttrs(
			slog.String("outcome", outcome.Verdict.String()),
			slog.Bool("replayed", outcome.Replayed),
			slog.Int64("stock_before", outcome.Before),
			slog.Int64("stock_after", outcome.After))
	}
	// A log that cannot be written has nobody to tell.
	_ = handler.Handle(ctx, record)
}

// compensationTimeout bounds work that must go on although its caller is gone.
const compensationTimeout = 3 * time.Second

// detached is a context for such work.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), compensationTimeout)
}
