// Package drill rehearses a sale against a running service, over HTTP alone:
// it makes an activity, preheats and opens it, sends a crowd, and then wants
// every number to agree.
package drill

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"seckill/bootstrap/seckill/load"
)

const sku = 2001 // of the drill's activity

// Config says what to rehearse and where.
type Config struct {
	Targets []string // base URLs of buyers' listeners, taken in turn
	Admin   string   // base URL of an operators' listener
	Token   string   // of the operators

	Activity int64 // id of a new activity
	Stock    int64 // units on sale, one per buyer
	Buyers   int64
	Requests int64
	Callers  int           // requests at the same time
	Rate     float64       // requests per second; 0: as fast as the callers come back
	Retries  int           // how often a grab without an answer, or with 503, is sent again under its request id
	For      time.Duration // bound of the load

	AllowErrors int64         // grabs that may stay without an answer
	Settle      time.Duration // bound of the queue's way into the ledger
	Keep        bool          // leave the orders and the hot keys behind

	// Watch hears how far the drill is. Default: nobody listens.
	Watch load.Watcher
}

// cleanTime bounds the end of a drill that was interrupted.
const cleanTime = 10 * time.Second

// Run is the whole drill. An error says that it could not be carried through;
// what it found out until then is in the result. The activity is closed at the
// end, also after an error.
//
// A drill that finds no fault also takes its orders back and archives the
// activity, unless Keep is set: the ledger keeps cancelled orders, the hot store
// nothing. One that finds a fault leaves all as it is, to be looked into.
func Run(ctx context.Context, config Config) (*Result, error) {
	if config.Watch == nil {
		config.Watch = load.Unwatched{}
	}
	d := &drill{Config: config, service: newService(config), crowd: newCrowd(config)}
	defer d.service.close()
	result := &Result{Config: config}
	if err := d.open(ctx); err != nil {
		return result, err
	}
	err := d.rehearse(ctx, result)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	err = errors.Join(err, d.service.command(closing, d.Activity, "close"))
	if err != nil {
		return result, err
	}
	result.judge()
	if len(result.Findings) > 0 || d.Keep {
		return result, nil
	}
	return result, d.clean(ctx, result)
}

type drill struct {
	Config
	service *service
	crowd   *crowd
}

// open puts the activity on sale. Its orders have a day to be paid, so that
// none expires in the middle.
func (d *drill) open(ctx context.Context) error {
	d.Watch.Stage("preheat", 0)
	path := fmt.Sprintf("activities/%d", d.Activity)
	if there, err := d.service.operate(ctx, http.MethodGet, path, nil); err == nil {
		return fmt.Errorf("activity %d is there already (%s): choose another id", d.Activity, there.State)
	} else if !errors.Is(err, errNotFound) {
		return fmt.Errorf("operators' listener: %w", err)
	}
	now := time.Now()
	_, err := d.service.operate(ctx, http.MethodPut, path, map[string]any{
		"name": "Drill", "startsAt": now.Add(-time.Hour).Format(time.RFC3339), "endsAt": now.Add(24 * time.Hour).Format(time.RFC3339),
		"paymentWindow": "24h",
		"skus":          []any{map[string]any{"skuId": sku, "name": "Drill", "total": d.Stock, "perUserLimit": 1, "price": 100}},
	})
	if err != nil {
		return fmt.Errorf("save activity %d: %w", d.Activity, err)
	}
	for _, command := range []string{"preheat", "open"} {
		if err := d.service.command(ctx, d.Activity, command); err != nil {
			return err
		}
	}
	return nil
}

// rehearse sends the crowd and reads the account afterwards.
func (d *drill) rehearse(ctx context.Context, result *Result) error {
	watching, stop := context.WithCancel(ctx)
	peak := d.watchQueue(watching)
	first := 2 * d.crowd.twice
	d.Watch.Stage("ask twice", first)
	load.Run(ctx, load.Plan{Calls: first, Callers: d.Callers, For: d.For}, d.grab)
	d.Watch.Stage("load", d.Requests)
	plan := load.Plan{Calls: d.Requests - first, Callers: d.Callers, Rate: d.Rate, For: d.For}
	result.measured = load.Run(ctx, plan, func(ctx context.Context, caller int, n int64) bool {
		return d.grab(ctx, caller, first+n)
	})
	stop()
	result.QueuePeak = <-peak
	d.crowd.count(result)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("stopped in the middle of the load: %w", err)
	}

	d.Watch.Stage("poll orders", int64(len(d.crowd.accepted)))
	settling, cancel := context.WithTimeout(ctx, d.Settle)
	defer cancel()
	d.poll(settling, result)
	d.Watch.Stage("reconcile", 0)
	if err := d.settle(ctx, settling, result); err != nil {
		return fmt.Errorf("reconcile activity %d: %w", d.Activity, err)
	}
	return ctx.Err()
}

// watchEvery is how often the queue is looked at while the load runs.
const watchEvery = 200 * time.Millisecond

// watchQueue finds the longest queue until ctx ends.
func (d *drill) watchQueue(ctx context.Context) <-chan int64 {
	found := make(chan int64, 1)
	go func() {
		var peak int64
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for ctx.Err() == nil {
			// A report that fails under the load is no finding: the last one counts.
			if account, err := d.service.account(ctx, d.Activity, false); err == nil {
				peak = max(peak, account.Queued)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
		found <- peak
	}()
	return found
}

// settle waits until nothing is on its way, then has the service count record
// by record. What is still on its way at the end of settling is in the account.
func (d *drill) settle(ctx, settling context.Context, result *Result) error {
	for {
		account, err := d.service.account(ctx, d.Activity, false)
		if err != nil {
			return err
		}
		result.Account = account
		if account.Balanced && account.Queued == 0 || !pause(settling) {
			break
		}
	}
	account, err := d.service.account(ctx, d.Activity, true)
	if err == nil {
		result.Account = account
	}
	return err
}

// pause waits a moment; it returns false when ctx has ended.
func pause(ctx context.Context) bool {
	timer := time.NewTimer(100 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// clean cancels every order, wants the units back on sale, and archives.
func (d *drill) clean(ctx context.Context, result *Result) error {
	accepted := d.crowd.accepted
	d.Watch.Stage("cancel orders", int64(len(accepted)))
	cleaning, cancel := context.WithTimeout(ctx, d.Settle)
	defer cancel()
	failed := d.each(cleaning, func(ctx context.Context, n int64, a grabbed) error {
		return d.service.cancel(ctx, n, a.buyer, a.order)
	})
	d.Watch.Stage("archive", 0)
	if err := errors.Join(failed, d.settle(ctx, cleaning, &Result{})); err != nil {
		return fmt.Errorf("clean up activity %d: %w", d.Activity, err)
	}
	account, err := d.service.account(ctx, d.Activity, false)
	if err != nil {
		return fmt.Errorf("clean up activity %d: %w", d.Activity, err)
	}
	if account.Available != d.Stock || account.Ledger.Cancelled != result.Accepted || !account.Balanced {
		result.find("after all orders were cancelled, %d of %d units are available, %d of %d orders cancelled, balanced: %t",
			account.Available, d.Stock, account.Ledger.Cancelled, result.Accepted, account.Balanced)
		return nil
	}
	return d.service.command(ctx, d.Activity, "archive")
}
