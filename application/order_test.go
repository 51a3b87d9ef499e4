package application_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/golang/mock/gomock"

	"seckill/application"
	"seckill/domain"
	"seckill/test/mock"
)

// These tests are about the order of calls when a step fails. What the use
// cases do on real stores is tested in test/.

var (
	sale    = domain.SaleID{Activity: 1001, SKU: 2001}
	orderID = domain.NewOrderID(sale, "0a")
	errDown = errors.New("down")
)

type ports struct {
	stock      *mock.MockStock
	queue      *mock.MockOrderQueue
	orders     *mock.MockOrders
	outbox     *mock.MockOutbox
	letters    *mock.MockDeadLetters
	activities *mock.MockActivities
	engine     *application.Engine
}

type fixedClock struct{}

func (fixedClock) Now() time.Time { return time.Unix(1_800_000_000, 0) }

func newPorts(t *testing.T) ports {
	ctrl := gomock.NewController(t)
	p := ports{
		stock: mock.NewMockStock(ctrl), queue: mock.NewMockOrderQueue(ctrl), orders: mock.NewMockOrders(ctrl),
		outbox: mock.NewMockOutbox(ctrl), letters: mock.NewMockDeadLetters(ctrl), activities: mock.NewMockActivities(ctrl),
	}
	p.engine = application.New(application.Ports{
		Stock: p.stock, Queue: p.queue, Orders: p.orders, Outbox: p.outbox, DeadLetters: p.letters,
		Activities: p.activities, Clock: fixedClock{},
	}, application.Config{MaxAttempts: 3, Log: slog.New(slog.DiscardHandler)})
	return p
}

func delivery(attempt int) domain.Delivery {
	return domain.Delivery{ID: "1-0", Sale: sale, Attempts: attempt, Intents: []domain.Intent{
		{Order: orderID, Sale: sale, Buyer: "b", Quantity: 2, Epoch: 1},
	}}
}

func order(status domain.Status) domain.Order {
	return domain.Order{ID: orderID, Sale: sale, Buyer: "b", Quantity: 2, Epoch: 1, Status: status, Hold: orderID}
}

// covers Q5
func TestNothingIsAcknowledgedBeforeTheCommit(t *testing.T) {
	p := newPorts(t)
	p.orders.EXPECT().Place(gomock.Any(), gomock.Any()).Return(nil, errDown)
	// No Ack is expected: one would fail the test.
	if err := p.engine.Persist(context.Background(), []domain.Delivery{delivery(1)}); !errors.Is(err, errDown) {
		t.Errorf("error is %v", err)
	}
}

// What is in the ledger is acknowledged although the rest is not: a slow or
// failing ledger gets on with every delivery.
// covers Q5
func TestWhatIsPlacedIsAcknowledgedWithoutTheRest(t *testing.T) {
	p := newPorts(t)
	first, second := delivery(1), delivery(1)
	for len(first.Intents) < 500 { // one transaction
		first.Intents = append(first.Intents, first.Intents[0])
	}
	second.ID = "2-0"
	p.orders.EXPECT().Place(gomock.Any(), gomock.Len(500)).DoAndReturn(
		func(_ context.Context, orders []domain.Order) ([]domain.Placed, error) {
			placed := make([]domain.Placed, len(orders))
			for i := range placed {
				placed[i].Order = order(domain.Paid)
			}
			return placed, nil
		})
	p.orders.EXPECT().Place(gomock.Any(), gomock.Len(1)).Return(nil, errDown)
	p.queue.EXPECT().Ack(gomock.Any(), first).Return(nil)
	if err := p.engine.Persist(context.Background(), []domain.Delivery{first, second}); !errors.Is(err, errDown) {
		t.Errorf("error is %v", err)
	}
}

// covers Q5
func TestSubscribersHearBeforeTheAcknowledgement(t *testing.T) {
	p := newPorts(t)
	heard := false
	p.engine.Subscribe(func(context.Context, domain.Event) error { heard = true; return nil })
	gomock.InOrder(
		p.orders.EXPECT().Place(gomock.Any(), gomock.Any()).Return([]domain.Placed{{Order: order(domain.Pending), Fresh: true}}, nil),
		p.queue.EXPECT().Ack(gomock.Any(), gomock.Any()).DoAndReturn(func(context.Context, ...domain.Delivery) error {
			if !heard {
				t.Error("acknowledged before the subscriber heard")
			}
			return nil
		}),
	)
	if err := p.engine.Persist(context.Background(), []domain.Delivery{delivery(1)}); err != nil {
		t.Fatal(err)
	}
}

// covers O7
func TestADeafSubscriberKeepsItsDelivery(t *testing.T) {
	p := newPorts(t)
	p.engine.Subscribe(func(context.Context, domain.Event) error { return errDown })
	p.orders.EXPECT().Place(gomock.Any(), gomock.Any()).Return([]domain.Placed{{Order: order(domain.Pending), Fresh: true}}, nil)
	// No Ack is expected.
	if err := p.engine.Persist(context.Background(), []domain.Delivery{delivery(9)}); err != nil {
		t.Fatal(err)
	}
}

// covers Q6
func TestABadOrderIsBuriedOnlyAfterItsTries(t *testing.T) {
	bad := []domain.Placed{{Order: order(""), Err: errDown}}

	p := newPorts(t)
	p.orders.EXPECT().Place(gomock.Any(), gomock.Any()).Return(bad, nil)
	// No Ack is expected.
	if err := p.engine.Persist(context.Background(), []domain.Delivery{delivery(2)}); err != nil {
		t.Fatal(err)
	}

	p = newPorts(t)
	gomock.InOrder(
		p.orders.EXPECT().Place(gomock.Any(), gomock.Any()).Return(bad, nil),
		p.letters.EXPECT().Bury(gomock.Any(), gomock.Any()).Return(nil),
		// No Release here: the letter's own effect does it.
		p.queue.EXPECT().Ack(gomock.Any(), gomock.Any()).Return(nil),
	)
	if err := p.engine.Persist(context.Background(), []domain.Delivery{delivery(3)}); err != nil {
		t.Fatal(err)
	}

	// A letter that cannot be written is no reason to let the order go.
	p = newPorts(t)
	p.orders.EXPECT().Place(gomock.Any(), gomock.Any()).Return(bad, nil)
	p.letters.EXPECT().Bury(gomock.Any(), gomock.Any()).Return(errDown)
	if err := p.engine.Persist(context.Background(), []domain.Delivery{delivery(3)}); !errors.Is(err, errDown) {
		t.Errorf("error is %v", err)
	}
}

// freeLock is a lock that nobody else wants.
type freeLock struct{}

func (freeLock) Do(ctx context.Context, key string, _ time.Duration, fn func(context.Context, domain.Lease) error) error {
	return fn(ctx, domain.Lease{Fence: domain.Fence{Key: key, Number: 7}})
}

// covers S1: a grab slips in between the look and the seal. The epoch must not
// move, or that grab's order would be rejected.
func TestAPreheatThatCannotSealMovesNoEpoch(t *testing.T) {
	p := newPorts(t)
	p.engine.Lock = freeLock{}
	activity := domain.Activity{ID: sale.Activity, State: domain.Open, SKUs: []domain.SKU{{ID: sale.SKU, Total: 1}}}
	p.activities.EXPECT().Activity(gomock.Any(), sale.Activity).Return(activity, nil)
	gomock.InOrder(
		p.stock.EXPECT().Level(gomock.Any(), sale).Return(domain.Level{Total: 1, Available: 1}, nil),
		p.orders.EXPECT().Tally(gomock.Any(), sale).Return(domain.Tally{Total: 1}, nil),
		p.stock.EXPECT().Seal(gomock.Any(), sale, int64(7), false).Return(domain.ErrHasHolds),
	)
	if _, err := p.engine.Preheat(context.Background(), sale.Activity); !errors.Is(err, domain.ErrHasHolds) {
		t.Errorf("error is %v", err)
	}
}

// covers P4
func TestAnEffectLeavesTheOutboxLast(t *testing.T) {
	effect := domain.Effect{ID: 7, Hold: orderID, Order: order(domain.Cancelled)}

	p := newPorts(t)
	gomock.InOrder(
		p.orders.EXPECT().Find(gomock.Any(), orderID).Return([]domain.Order{order(domain.Pending)}, nil),
		p.orders.EXPECT().Cancel(gomock.Any(), orderID).Return(effect, nil),
		p.stock.EXPECT().Release(gomock.Any(), sale, orderID).Return(int64(2), nil),
		p.outbox.EXPECT().Applied(gomock.Any(), int64(7)).Return(nil),
	)
	if _, err := p.engine.Cancel(context.Background(), orderID, "b"); err != nil {
		t.Fatal(err)
	}

	// The hot store is away: the order is cancelled all the same, and the
	// effect stays in the outbox.
	p = newPorts(t)
	gomock.InOrder(
		p.orders.EXPECT().Find(gomock.Any(), orderID).Return([]domain.Order{order(domain.Pending)}, nil),
		p.orders.EXPECT().Cancel(gomock.Any(), orderID).Return(effect, nil),
		p.stock.EXPECT().Release(gomock.Any(), sale, orderID).Return(int64(0), errDown),
	)
	got, err := p.engine.Cancel(context.Background(), orderID, "b")
	if err != nil || got.Status != domain.Cancelled {
		t.Errorf("answer is %v, %v", got.Status, err)
	}
}

// covers P5
func TestALatePaymentTakesTheUnitsBeforeTheLedgerDecides(t *testing.T) {
	expired := &domain.ClosedError{Order: order(domain.Expired)}
	for _, c := range []struct {
		verdict    domain.Verdict
		reacquired bool
	}{{domain.Accepted, true}, {domain.SoldOut, false}, {domain.LimitReached, false}, {domain.Withdrawn, false}} {
		p := newPorts(t)
		status := domain.RefundDue
		if c.reacquired {
			status = domain.Paid
		}
		won := order(status)
		won.Hold = orderID.Late()
		calls := []*gomock.Call{
			p.orders.EXPECT().Find(gomock.Any(), orderID).Return([]domain.Order{order(domain.Expired)}, nil),
			p.orders.EXPECT().Pay(gomock.Any(), orderID, domain.PaymentID("p")).Return(domain.Effect{}, expired),
			p.stock.EXPECT().Release(gomock.Any(), sale, orderID).Return(int64(0), nil),
			p.stock.EXPECT().Reacquire(gomock.Any(), sale, gomock.Any()).Return(domain.Outcome{Verdict: c.verdict}, nil),
			p.orders.EXPECT().PayLate(gomock.Any(), orderID, domain.PaymentID("p"), c.reacquired).Return(domain.Effect{ID: 8, Hold: won.Hold, Order: won}, nil),
		}
		if c.reacquired {
			calls = append(calls, p.stock.EXPECT().Settle(gomock.Any(), sale, won.Hold).Return(int64(2), nil))
		} else {
			calls = append(calls, p.stock.EXPECT().Release(gomock.Any(), sale, won.Hold).Return(int64(0), nil))
		}
		calls = append(calls, p.outbox.EXPECT().Applied(gomock.Any(), int64(8)).Return(nil))
		gomock.InOrder(calls...)
		if _, err := p.engine.Pay(context.Background(), orderID, "b", "p"); err != nil {
			t.Errorf("%s: %v", c.verdict, err)
		}
	}

	// A hot store that is being loaded cannot say: nothing is decided.
	p := newPorts(t)
	p.orders.EXPECT().Find(gomock.Any(), orderID).Return([]domain.Order{order(domain.Expired)}, nil)
	p.orders.EXPECT().Pay(gomock.Any(), orderID, domain.PaymentID("p")).Return(domain.Effect{}, expired)
	p.stock.EXPECT().Release(gomock.Any(), sale, orderID).Return(int64(0), domain.ErrNotReady)
	p.stock.EXPECT().Reacquire(gomock.Any(), sale, gomock.Any()).Return(domain.Outcome{Verdict: domain.NotReady}, nil)
	p.activities.EXPECT().Activity(gomock.Any(), sale.Activity).Return(domain.Activity{ID: sale.Activity, State: domain.Open}, nil)
	if _, err := p.engine.Pay(context.Background(), orderID, "b", "p"); !errors.Is(err, domain.ErrNotReady) {
		t.Errorf("error is %v", err)
	}
}
