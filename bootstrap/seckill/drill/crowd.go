package drill

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"seckill/bootstrap/seckill/load"
)

// crowd is the list of who asks in which order, and what they were told.
//
// The first buyers ask twice at once, before all others and while there is stock
// for all of them, so that one of each pair must hear that the limit is reached.
// This also opens the connections, and is not measured. Then every other buyer
// asks once, and what requests are left go round all buyers again.
type crowd struct {
	buyers, twice int64
	start         time.Time

	mu       sync.Mutex
	done     int64
	retried  int64
	answers  map[answer]int64
	accepted []grabbed
	limited  map[string]bool // buyers who heard that their limit is reached
	soldOut  time.Duration   // since start: when the first buyer heard it; 0: nobody did
	errors   map[string]int64
}

// maxTwice bounds how many buyers ask twice at the beginning.
const maxTwice = 1000

// answer is what a grab came to.
type answer int

const (
	accepted answer = iota
	soldOut
	limitReached
	rejected // any other refusal
	unknown  // no answer that says what happened
)

// grabbed is an accepted grab.
type grabbed struct {
	buyer, order string
	sent         time.Duration // since start: when it was first sent
}

func newCrowd(config Config) *crowd {
	return &crowd{
		buyers: config.Buyers,
		twice:  min(max(config.Stock/10, 1), maxTwice, config.Buyers, config.Requests/4),
		start:  time.Now(), answers: map[answer]int64{}, limited: map[string]bool{}, errors: map[string]int64{},
	}
}

// buyer is who sends the request.
func (c *crowd) buyer(n int64) int64 {
	if n < 2*c.twice {
		return n / 2
	}
	n -= 2 * c.twice
	if once := c.buyers - c.twice; n >= once {
		return (n - once) % c.buyers
	}
	return c.twice + n
}

// asked is how many buyers the first so many requests come from.
func (c *crowd) asked(requests int64) int64 {
	if requests < 2*c.twice {
		return (requests + 1) / 2
	}
	return min(c.buyers, requests-c.twice)
}

// grab sends one request of the crowd, again as long as its outcome is unknown
// and there are tries left: the same request id makes that safe.
func (d *drill) grab(ctx context.Context, _ int, n int64) bool {
	c := d.crowd
	buyer := "drill-" + strconv.FormatInt(c.buyer(n), 10)
	request := strconv.FormatInt(n, 10)
	sent := time.Since(c.start)
	var said said
	var err error
	var got answer
	var retried int64
	for try := 0; ; try++ {
		said, err = d.service.grab(ctx, n+int64(try), d.Activity, buyer, request)
		if got = classify(said, err); got != unknown || try >= d.Retries || !pause(ctx) {
			break
		}
		retried++
	}
	heard := time.Since(c.start)

	c.mu.Lock()
	defer c.mu.Unlock()
	c.done++
	c.retried += retried
	c.answers[got]++
	d.Watch.Step(c.done)
	switch got {
	case accepted:
		c.accepted = append(c.accepted, grabbed{buyer, said.OrderID, sent})
	case soldOut:
		if c.soldOut == 0 {
			c.soldOut = heard
		}
	case limitReached:
		c.limited[buyer] = true
	case rejected, unknown:
		c.note(said, err)
	}
	return got != unknown
}

// note keeps what was said instead of an outcome; only a few kinds of it.
func (c *crowd) note(said said, err error) {
	text := fmt.Sprintf("status %d: %.200s", said.status, said.body)
	if err != nil {
		text = err.Error()
	}
	if _, known := c.errors[text]; known || len(c.errors) < maxNamed {
		c.errors[text]++
	}
}

func classify(said said, err error) answer {
	code := 99 // none of the contract's
	if said.Code != nil {
		code = *said.Code
	}
	switch {
	case err != nil:
		return unknown
	case said.status == http.StatusAccepted && code == 1 && said.OrderID != "":
		return accepted
	case said.status == http.StatusConflict && code == 0 && said.Reason == "sold_out":
		return soldOut
	case said.status == http.StatusConflict && code == -2 && said.Reason == "limit_reached":
		return limitReached
	case said.status >= 400 && said.status < 500 && said.Reason != "":
		return rejected
	}
	return unknown
}

// count puts what the crowd was told into figures.
func (c *crowd) count(result *Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	result.Requests = c.done
	result.Accepted, result.SoldOut, result.LimitReached = c.answers[accepted], c.answers[soldOut], c.answers[limitReached]
	result.Rejected, result.Errors, result.Retried = c.answers[rejected], c.answers[unknown], c.retried
	result.messages = c.errors
	result.asked = c.asked(result.Requests)
	result.twice = min(c.twice, result.Requests/2)
	orders, buyers := map[string]int64{}, map[string]int64{}
	for _, a := range c.accepted {
		orders[a.order]++
		buyers[a.buyer]++
		if c.soldOut > 0 && a.sent > c.soldOut {
			result.soldOutEarly++
		}
	}
	result.Distinct = int64(len(orders))
	result.winners = int64(len(buyers))
	for buyer := range c.limited {
		if buyers[buyer] == 0 {
			result.limitedLosers++
		}
	}
}

// poll asks for every accepted order until it has left the queue.
func (d *drill) poll(ctx context.Context, result *Result) {
	var mu sync.Mutex
	seen := map[string]bool{}
	err := d.each(ctx, func(ctx context.Context, n int64, a grabbed) error {
		status, err := d.await(ctx, n, a)
		mu.Lock()
		defer mu.Unlock()
		twice := seen[a.order]
		seen[a.order] = true
		switch {
		case err != nil:
			return err
		case status == "rejected":
			result.OrdersRejected++
		case status == "pending_payment" && !twice:
			result.Orders++
		}
		return nil
	})
	if err != nil {
		result.find("%v", err)
	}
}

// await waits until the order has left the queue, and wants it to be what was
// grabbed.
func (d *drill) await(ctx context.Context, n int64, a grabbed) (orderStatus, error) {
	for {
		got, err := d.service.order(ctx, n, a.buyer, a.order)
		err = want(http.StatusOK)(got, err)
		switch {
		case err == nil && (got.OrderID != a.order || got.UserID != a.buyer || got.ActivityID != d.Activity || got.Quantity != 1):
			return "", fmt.Errorf("order %s of %s: the service shows another one: %.300s", a.order, a.buyer, got.body)
		case err == nil && got.Status != "queued":
			return got.Status, nil
		case err == nil:
			err = errors.New("still queued")
		}
		if errors.Is(err, errNotFound) || !pause(ctx) {
			return "", fmt.Errorf("order %s of %s: %w", a.order, a.buyer, err)
		}
	}
}

// maxNamed is how many faults of a kind are named.
const maxNamed = 5

// each does something with every accepted grab, at most so many at a time, and
// names a few of those that failed.
func (d *drill) each(ctx context.Context, do func(ctx context.Context, n int64, a grabbed) error) error {
	list := d.crowd.accepted
	var mu sync.Mutex
	var failures []error
	var done, failed int64
	load.Run(ctx, load.Plan{Calls: int64(len(list)), Callers: min(d.Callers, 64)}, func(ctx context.Context, _ int, n int64) bool {
		err := do(ctx, n, list[n])
		mu.Lock()
		defer mu.Unlock()
		done++
		d.Watch.Step(done)
		if err != nil {
			if failed++; failed <= maxNamed {
				failures = append(failures, err)
			}
		}
		return true
	})
	if rest := int64(len(list)) - done; rest > 0 {
		failures = append(failures, fmt.Errorf("%d orders were not reached in time", rest))
	}
	if more := failed - int64(len(failures)); more > 0 {
		failures = append(failures, fmt.Errorf("and %d more", more))
	}
	return errors.Join(failures...)
}
