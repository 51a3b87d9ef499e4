package memory

import (
	"context"
	"errors"
	"testing"

	"seckill/domain"
)

// These tests put the store into moments that lie between two instructions, so
// that no luck of the scheduler is needed.

// covers N1: a grab that looked the sale up before it was archived, and locks
// it afterwards, must not disappear into the archived account.
func TestAnArchivedAccountTakesNoGrabs(t *testing.T) {
	stock := NewStock(stillClock{})
	gate := domain.Gate{State: domain.Open, EndsAt: stillClock{}.Now().AddDate(0, 0, 1), PerUserLimit: 10}
	if err := stock.Seal(t.Context(), damaged, 1, false); err != nil {
		t.Fatal(err)
	}
	if err := stock.Preheat(t.Context(), domain.Load{Sale: damaged, Epoch: 1, Gate: gate, Total: 10, Fence: 1}); err != nil {
		t.Fatal(err)
	}
	lookedUp := stock.sales[damaged]
	if err := stock.Archive(t.Context(), damaged, 1); err != nil {
		t.Fatal(err)
	}
	stock.sales[damaged] = lookedUp
	claim := domain.Claim{Order: domain.NewOrderID(damaged, "n1"), Buyer: "alice", Quantity: 1}
	outcomes, err := stock.Reserve(t.Context(), damaged, []domain.Claim{claim})
	if err != nil || outcomes[0].Verdict != domain.NotReady {
		t.Fatalf("outcome is %+v, %v", outcomes, err)
	}
}

// Two entries may arrive under one token. The receiver that takes it and leaves
// an entry behind must pass it on.
func TestAReceiverThatLeavesEntriesWakesTheNext(t *testing.T) {
	p := newPartition(0, DefaultBackoff, DefaultBackoffMax)
	now := stillClock{}.Now()
	for range 2 {
		p.push(damaged, []domain.Intent{{Quantity: 1}}, now)
	}
	takeToken(t, p)
	if got := p.receive(1, now); len(got) != 1 {
		t.Fatalf("received %v", got)
	}
	takeToken(t, p)
}

func takeToken(t *testing.T, p *partition) {
	t.Helper()
	select {
	case <-p.arrived:
	default:
		t.Fatal("nobody would be woken")
	}
}

// A receiver may be woken at the moment its context ends. The entry that it was
// woken for must not wait for the next grab.
func TestAReceiverThatGivesUpPassesItsTokenOn(t *testing.T) {
	stock := NewStock(stillClock{})
	p := stock.queue.partitions[0]
	p.wake()
	ends := &endingContext{Context: t.Context()}
	if _, err := stock.queue.Receive(ends, 0, 1); !errors.Is(err, context.Canceled) {
		t.Fatalf("error is %v", err)
	}
	takeToken(t, p)
}

// endingContext ends between the first and the second look at it.
type endingContext struct {
	context.Context
	looks int
}

func (c *endingContext) Done() <-chan struct{} { return nil }

func (c *endingContext) Err() error {
	if c.looks++; c.looks > 1 {
		return context.Canceled
	}
	return nil
}
