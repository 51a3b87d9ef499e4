package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// testPayAgainstExpiry pays orders at the very moment of their deadline, while
// others wait for every unit that comes free.
// covers P1 P2 P5 N1
func testPayAgainstExpiry(t *testing.T, c *cell) {
	const payers, idlers, rivals = 200, 20, 40
	const stock = payers + idlers
	activity := c.sell(t, sale{total: stock, toPay: 3 * time.Second})
	list := attempts("b", stock)
	orders := make([]order, stock)
	start := time.Now()
	atOnce(t, stock, 100, func(i int) {
		// One deadline after the other, so that payments do not queue behind
		// each other until the sweep has come and gone.
		time.Sleep(time.Until(start.Add(time.Duration(i) * 12 * time.Millisecond)))
		c.try(t, c.any(), activity, &list[i])
		o, err := c.placed(c.any(), list[i].buyer, list[i].id)
		if err != nil || o.ExpiresAt == nil {
			t.Errorf("order of %s: %v %+v", list[i].buyer, err, o)
		}
		orders[i] = o
	})
	if t.Failed() {
		t.FailNow()
	}

	var paid, refunds, rivalOrders atomic.Int64
	var all sync.WaitGroup
	for i, o := range orders[:payers] {
		all.Go(func() {
			// From 80 ms before to 120 ms after the deadline; a sweep comes every 100 ms.
			time.Sleep(time.Until(o.ExpiresAt.Add(time.Duration(20*(i%11)-80) * time.Millisecond)))
			got, err := c.payUntilAnswered(o, "p-"+strconv.Itoa(i))
			switch {
			case err != nil:
				t.Error(err)
			case got.Status == "paid":
				paid.Add(1)
			case got.Status == "refund_due":
				refunds.Add(1)
			default:
				t.Errorf("order %s was paid and is %s", o.OrderID, got.Status)
			}
		})
	}
	begin := *orders[0].ExpiresAt
	for _, o := range orders {
		if o.ExpiresAt.Before(begin) {
			begin = *o.ExpiresAt
		}
	}
	// Rivals go on until an idler's unit must be there for one of them.
	var rivalry sync.WaitGroup
	var over atomic.Bool
	for _, rival := range attempts("rival", rivals) {
		rivalry.Go(func() {
			time.Sleep(time.Until(begin))
			for !over.Load() && rival.id == "" {
				rival.out = false
				c.try(t, c.any(), activity, &rival)
				time.Sleep(25 * time.Millisecond)
			}
			if rival.id != "" {
				rivalOrders.Add(1)
			}
		})
	}
	all.Wait()
	for deadline := time.Now().Add(settleBound); rivalOrders.Load() == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("no unit of an expired order went to anybody")
			break
		}
	}
	over.Store(true)
	rivalry.Wait()
	if t.Failed() {
		t.FailNow()
	}
	t.Logf("%d paid, %d refunds due, %d orders of rivals", paid.Load(), refunds.Load(), rivalOrders.Load())
	c.becomes(t, activity, account{
		Total: stock, Available: stock - paid.Load(), Sold: paid.Load(),
		Ledger: ledger{Paid: paid.Load(), RefundDue: refunds.Load(), Expired: idlers + rivalOrders.Load()},
	})
}

// payUntilAnswered repeats a payment whose outcome is unknown.
func (c *cell) payUntilAnswered(o order, payment string) (order, error) {
	deadline := time.Now().Add(settleBound)
	for {
		a := c.pay(c.any(), o.UserID, o.OrderID, payment)
		if a.status != 0 && a.status != http.StatusServiceUnavailable {
			return a.order, a.check(http.StatusOK)
		}
		if time.Now().After(deadline) {
			return order{}, fmt.Errorf("payment of %s after %s: status %d, %v", o.OrderID, settleBound, a.status, a.err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// testPayAgainstCancel: of a payment and a cancellation at the same moment one
// wins, and the other hears of it.
// covers P2
func testPayAgainstCancel(t *testing.T, c *cell) {
	const stock = 100
	activity := c.sell(t, sale{total: stock})
	var paid, cancelled atomic.Int64
	atOnce(t, stock, 25, func(i int) {
		one := attempts("b"+strconv.Itoa(i)+"-", 1)
		c.try(t, c.any(), activity, &one[0])
		o, err := c.placed(c.any(), one[0].buyer, one[0].id)
		if err != nil {
			t.Error(err)
			return
		}
		var pay, cancel answer
		first, second := c.any(), c.any()
		var both sync.WaitGroup
		both.Go(func() { pay = c.pay(first, o.UserID, o.OrderID, "p-1") })
		both.Go(func() { cancel = c.cancel(second, o.UserID, o.OrderID) })
		both.Wait()
		winner, loser, status := pay, cancel, "paid"
		if cancel.status == http.StatusOK {
			winner, loser, status = cancel, pay, "cancelled"
			cancelled.Add(1)
		} else {
			paid.Add(1)
		}
		if err := winner.check(http.StatusOK); err != nil || winner.order.Status != status {
			t.Errorf("winner %s: %v: %s", status, err, winner.body)
		}
		if err := loser.isClosedAs(status); err != nil {
			t.Errorf("loser against %s: %v", status, err)
		}
		if a := c.find(c.any(), o.UserID, o.OrderID, ""); a.check(http.StatusOK) != nil || a.order.Status != status {
			t.Errorf("%s, then: %s (%v)", status, a.body, a.err)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	t.Logf("%d paid, %d cancelled", paid.Load(), cancelled.Load())
	c.becomes(t, activity, account{
		Total: stock, Available: cancelled.Load(), Sold: paid.Load(),
		Ledger: ledger{Paid: paid.Load(), Cancelled: cancelled.Load()},
	})
}
