package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// testPay: the first payment wins, and its repeat is the same answer.
// covers P2 A2 S6
func testPay(t *testing.T, c *cell) {
	activity := c.sell(t, sale{total: 10})
	o := c.take(t, c.here(), activity, "ann")
	if o.Status != "pending_payment" || o.ExpiresAt == nil || !o.ExpiresAt.After(*o.CreatedAt) || o.PaidAt != nil {
		t.Fatalf("a fresh order: %+v", o)
	}
	for _, a := range []answer{
		c.find(c.here(), "bob", o.OrderID, ""), c.pay(c.here(), "bob", o.OrderID, "p-0"), c.cancel(c.here(), "bob", o.OrderID),
	} {
		a.want(t, http.StatusNotFound)
	}
	paid := c.pay(c.here(), "ann", o.OrderID, "p-1").want(t, http.StatusOK)
	if paid.order.Status != "paid" || paid.order.PaidAt == nil {
		t.Fatalf("paid: %s", paid.body)
	}
	again := c.pay(c.there(), "ann", o.OrderID, "p-1").want(t, http.StatusOK)
	if !bytes.Equal(again.body, paid.body) {
		t.Fatalf("paid: %s\nagain: %s", paid.body, again.body)
	}
	c.pay(c.there(), "ann", o.OrderID, "p-2").closedAs(t, "paid")
	c.cancel(c.there(), "ann", o.OrderID).closedAs(t, "paid")
	c.grab(c.there(), grab{ActivityID: activity, UserID: "ann"}).refused(t, http.StatusConflict, -2, "limit_reached")
	c.becomes(t, activity, account{Total: 10, Available: 9, Sold: 1, Ledger: ledger{Paid: 1}})
}

// testCancel: the buyer gets the allowance back, and a hundred cancels give the
// unit back once.
// covers P3 S6 T2
func testCancel(t *testing.T, c *cell) {
	activity := c.sell(t, sale{total: 2})
	first := c.take(t, c.here(), activity, "ann")
	c.take(t, c.there(), activity, "bob")
	for _, n := range c.nodes {
		c.grab(n, grab{ActivityID: activity, UserID: "cyd"}).refused(t, http.StatusConflict, 0, "sold_out")
	}
	a := c.cancel(c.here(), "ann", first.OrderID).want(t, http.StatusOK)
	if a.order.Status != "cancelled" || a.order.ClosedAt == nil {
		t.Fatalf("cancelled: %s", a.body)
	}
	// A node may remember for a second that a sale was sold out.
	var second order
	eventually(t, 2*time.Second, func() error {
		a := c.grab(c.there(), grab{ActivityID: activity, UserID: "ann"})
		second = a.order
		return a.check(http.StatusAccepted)
	})
	if second.OrderID == first.OrderID {
		t.Fatal("the cancelled order was given again")
	}
	if _, err := c.placed(c.here(), "ann", second.OrderID); err != nil {
		t.Fatal(err)
	}
	atOnce(t, 100, 50, func(int) {
		a := c.cancel(c.any(), "ann", second.OrderID)
		if err := a.check(http.StatusOK); err != nil || a.order.Status != "cancelled" {
			t.Errorf("repeated cancel: %v: %s", err, a.body)
		}
	})
	c.pay(c.there(), "ann", second.OrderID, "p-1").closedAs(t, "cancelled")
	c.becomes(t, activity, account{Total: 2, Available: 1, Held: 1, Ledger: ledger{Pending: 1, Cancelled: 2}})
}

// ended waits until the order is closed by itself.
func (c *cell) ended(t *testing.T, buyer, id, status string) {
	t.Helper()
	eventually(t, settleBound, func() error {
		a := c.find(c.any(), buyer, id, "")
		if err := a.check(http.StatusOK); err != nil {
			return err
		}
		if a.order.Status != status {
			return fmt.Errorf("order %s is %s, not %s", id, a.order.Status, status)
		}
		return nil
	})
}

const shortly = 300 * time.Millisecond

// testExpiry: units of an unpaid order go to another buyer.
// covers P1
func testExpiry(t *testing.T, c *cell) {
	activity := c.sell(t, sale{total: 1, toPay: shortly})
	o := c.take(t, c.here(), activity, "ann")
	c.ended(t, "ann", o.OrderID, "expired")
	c.cancel(c.there(), "ann", o.OrderID).closedAs(t, "expired")
	c.becomes(t, activity, account{Total: 1, Available: 1, Ledger: ledger{Expired: 1}})
	next := c.take(t, c.there(), activity, "bob")
	c.ended(t, "bob", next.OrderID, "expired")
	c.becomes(t, activity, account{Total: 1, Available: 1, Ledger: ledger{Expired: 2}}) // the unit follows the order
	c.take(t, c.there(), activity, "ann")
	c.becomes(t, activity, account{Total: 1, Available: 1, Ledger: ledger{Expired: 3}})
}

// testLatePayment: a payment after the expiry takes the units again if they are
// there, and is to be given back if they are not.
// covers P5
func testLatePayment(t *testing.T, c *cell) {
	activity := c.sell(t, sale{total: 1, toPay: shortly})
	ann := c.take(t, c.here(), activity, "ann")
	bob := func() order {
		c.ended(t, "ann", ann.OrderID, "expired")
		var o order
		eventually(t, 2*time.Second, func() error {
			a := c.grab(c.there(), grab{ActivityID: activity, UserID: "bob"})
			o = a.order
			return a.check(http.StatusAccepted)
		})
		if _, err := c.placed(c.there(), "bob", o.OrderID); err != nil {
			t.Fatal(err)
		}
		return o
	}()
	c.ended(t, "bob", bob.OrderID, "expired")

	late := c.pay(c.here(), "bob", bob.OrderID, "late-1").want(t, http.StatusOK)
	if late.order.Status != "paid" || late.order.PaidAt == nil {
		t.Fatalf("paid while the unit is there: %s", late.body)
	}
	again := c.pay(c.there(), "bob", bob.OrderID, "late-1").want(t, http.StatusOK)
	if !bytes.Equal(late.body, again.body) {
		t.Fatalf("late: %s\nagain: %s", late.body, again.body)
	}
	c.pay(c.there(), "bob", bob.OrderID, "late-2").closedAs(t, "paid")
	c.becomes(t, activity, account{Total: 1, Sold: 1, Ledger: ledger{Paid: 1, Expired: 1}})

	refund := c.pay(c.here(), "ann", ann.OrderID, "late-3").want(t, http.StatusOK)
	if refund.order.Status != "refund_due" {
		t.Fatalf("paid when the unit was gone: %s", refund.body)
	}
	again = c.pay(c.there(), "ann", ann.OrderID, "late-3").want(t, http.StatusOK)
	if again.order.Status != "refund_due" {
		t.Fatalf("refund: %s\nagain: %s", refund.body, again.body)
	}
	c.pay(c.there(), "ann", ann.OrderID, "late-4").closedAs(t, "refund_due")
	c.cancel(c.there(), "ann", ann.OrderID).closedAs(t, "refund_due")
	c.becomes(t, activity, account{Total: 1, Sold: 1, Ledger: ledger{Paid: 1, RefundDue: 1}})
}
