package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

type letter struct {
	ID      int64  `json:"id"`
	OrderID string `json:"orderId"`
	Payload string `json:"payload"`
	Reason  string `json:"reason"`
}

func (c *cell) letters() ([]letter, error) {
	a := c.operate(c.any(), http.MethodGet, "dead-letters", nil)
	if err := a.check(http.StatusOK); err != nil {
		return nil, err
	}
	var list struct {
		DeadLetters []letter `json:"deadLetters"`
	}
	err := json.Unmarshal(a.body, &list)
	return list.DeadLetters, err
}

// saleKey finds a sale's key in Redis, and partition the start of all keys of
// the sale's partition.
func (c *cell) saleKey(t *testing.T, client *redis.Client, activity int64) (key, partition string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), requestBound)
	defer cancel()
	end := fmt.Sprintf("sale:%d:%d", activity, sku)
	keys, err := client.Keys(ctx, c.prefix+":{*}:"+end).Result()
	if err != nil || len(keys) != 1 {
		t.Fatalf("keys of sale %d: %v %v", activity, keys, err)
	}
	return keys[0], strings.TrimSuffix(keys[0], end)
}

// testPoison puts entries into the queue that no consumer can read. Each
// becomes one dead letter, and the orders behind it go on.
// covers Q4 Q6
func testPoison(t *testing.T, c *cell) {
	activity := c.sell(t, sale{total: 20})
	client := c.redis.Client(t)
	_, partition := c.saleKey(t, client, activity)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	name := fmt.Sprintf("%d:%d", activity, sku)
	mark := fmt.Sprintf("poison-%d-", activity)
	entries := [][]string{
		{"garbage", "\xff\x00'; --", "mark", mark + "0"},
		{"sale", name, "mark", mark + "1"},
		{"sale", name, "epoch", "1", "time", "1", "units", "1", "count", "1", "orders", "junk", "mark", mark + "2"},
		{"sale", name, "epoch", "1", "time", "1", "units", "1000000", "count", "1", "orders", fmt.Sprintf("SK%d-%d-x\n1000000|ann|", activity, sku), "mark", mark + "3"},
		{"sale", "7:99999999999999999999", "epoch", "1", "time", "1", "units", "1", "count", "1", "orders", "x\n1|ann|", "mark", mark + "4"},
	}
	for i, fields := range entries {
		before := c.grab(c.any(), grab{ActivityID: activity, UserID: fmt.Sprintf("before-%d", i)}).want(t, http.StatusAccepted)
		for range 2 { // a producer that repeats itself
			if err := client.XAdd(ctx, &redis.XAddArgs{Stream: partition + "queue", Values: fields}).Err(); err != nil {
				t.Fatal(err)
			}
		}
		c.take(t, c.any(), activity, fmt.Sprintf("after-%d", i))
		if _, err := c.placed(c.any(), fmt.Sprintf("before-%d", i), before.order.OrderID); err != nil {
			t.Fatal(err)
		}
	}

	var mine []letter
	eventually(t, settleBound, func() error {
		all, err := c.letters()
		mine = nil
		for _, l := range all {
			if strings.Contains(l.Payload, mark) {
				mine = append(mine, l)
			}
		}
		if err == nil && len(mine) != len(entries) {
			err = fmt.Errorf("%d dead letters for %d kinds of poison: %+v", len(mine), len(entries), all)
		}
		return err
	})
	c.becomes(t, activity, account{Total: 20, Available: 10, Held: 10, Ledger: ledger{Pending: 10}})
	for i, l := range mine {
		if !strings.Contains(l.Payload, fmt.Sprintf("%s%d", mark, i)) || l.Reason == "" || l.OrderID != "" {
			t.Errorf("dead letter %+v", l)
		}
		path := fmt.Sprintf("dead-letters/%d/", l.ID)
		// There is no order in it that could be placed.
		c.operate(c.any(), http.MethodPost, path+"replay", nil).want(t, http.StatusConflict)
		c.operate(c.any(), http.MethodPost, path+"discard", nil).want(t, http.StatusNoContent)
		c.operate(c.any(), http.MethodPost, path+"discard", nil).want(t, http.StatusNotFound)
	}
	all, err := c.letters()
	if err != nil || strings.Contains(fmt.Sprint(all), mark) {
		t.Fatalf("after the discard: %+v %v", all, err)
	}
	if rest, err := client.XLen(ctx, partition+"queue").Result(); err != nil || rest != 0 {
		t.Fatalf("%d entries are left in the queue (%v)", rest, err)
	}
	c.becomes(t, activity, account{Total: 20, Available: 10, Held: 10, Ledger: ledger{Pending: 10}})
}

// testOverAdmission queues orders that the hot store never admitted. The ledger
// is the last gate: they end as rejected, for their buyers to see.
// covers Q7 N2
func testOverAdmission(t *testing.T, c *cell) {
	activity := c.sell(t, sale{total: 3})
	client := c.redis.Client(t)
	key, partition := c.saleKey(t, client, activity)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	epoch, err := client.HGet(ctx, key, "epoch").Result()
	if err != nil {
		t.Fatal(err)
	}
	rejected := func(buyer, reason string) {
		t.Helper()
		id := fmt.Sprintf("SK%d-%d-forged%s", activity, sku, buyer)
		err := client.XAdd(ctx, &redis.XAddArgs{Stream: partition + "queue", Values: []string{
			"sale", fmt.Sprintf("%d:%d", activity, sku), "epoch", epoch, "time", fmt.Sprint(time.Now().UnixMilli()),
			"units", "1", "count", "1", "orders", id + "\n1|" + buyer + "|",
		}}).Err()
		if err != nil {
			t.Fatal(err)
		}
		o, err := c.placed(c.any(), buyer, id)
		if err != nil || o.Status != "rejected" || o.Reason == nil || *o.Reason != reason {
			t.Fatalf("over-admitted order: %v %+v", err, o)
		}
		c.pay(c.any(), buyer, id, "p-1").closedAs(t, "rejected")
		c.cancel(c.any(), buyer, id).closedAs(t, "rejected")
	}
	c.take(t, c.any(), activity, "ann")
	rejected("ann", "limit_reached")
	c.take(t, c.any(), activity, "bob")
	c.take(t, c.any(), activity, "cyd")
	rejected("dan", "sold_out")
	c.becomes(t, activity, account{Total: 3, Held: 3, Ledger: ledger{Pending: 3, Rejected: 2}})
}
