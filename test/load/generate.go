package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// plan is one run of the generator. It is closed loop: every connection sends
// its next grab when it has the answer to the last one.
type plan struct {
	Addr        string        `json:"addr"`
	Connections int           `json:"connections"`
	For         time.Duration `json:"for"`
	Requests    int64         `json:"requests"` // ends the run earlier; 0: only the time does
	Activity    int64         `json:"activity"`
	SKU         int64         `json:"sku"`
	Buyer       int64         `json:"buyer"` // number of the first buyer; each grab has the next one
	RequestIDs  bool          `json:"requestIds"`
	Want        string        `json:"want"` // "accepted" or "sold_out": what every answer must say
}

// run is what came of a plan. Latencies are from the start of the write to the
// end of the answer.
type result struct {
	Requests int64         `json:"requests"`
	Wrong    int64         `json:"wrong"` // answers that say something else than wanted
	Example  string        `json:"example,omitempty"`
	Took     time.Duration `json:"took"`
	P50      time.Duration `json:"p50"`
	P99      time.Duration `json:"p99"`
	CPU      time.Duration `json:"cpu"` // of the generator itself
}

func (r result) perSecond() float64 { return float64(r.Requests) / r.Took.Seconds() }

// generateCommand is the load generator, a process of its own. It says "ready"
// when all connections are open, "end" with the last answer, then the result.
func generateCommand(flags *flag.FlagSet) func(context.Context) error {
	text := flags.String("plan", "", "the plan, JSON")
	return func(context.Context) error {
		var plan plan
		if err := json.Unmarshal([]byte(*text), &plan); err != nil {
			return err
		}
		result, err := generate(plan, func() { fmt.Println("ready") })
		fmt.Println("end")
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(result)
	}
}

// generate runs a plan in this process. The time is measured here, since that
// is what this program is for.
func generate(plan plan, ready func()) (result, error) {
	check, err := checkFor(plan.Want)
	if err != nil {
		return result{}, err
	}
	connections := make([]*connection, plan.Connections)
	for i := range connections {
		if connections[i], err = connect(plan.Addr, plan); err != nil {
			return result{}, err
		}
		defer connections[i].conn.Close()
	}
	ready()
	var (
		all     = make([]latencies, plan.Connections)
		next    atomic.Int64
		wrong   atomic.Int64
		example atomic.Pointer[string]
		failed  atomic.Pointer[error]
		running sync.WaitGroup
		start   = time.Now()
		cpu     = ownCPU()
	)
	fail := func(text string) {
		wrong.Add(1)
		example.CompareAndSwap(nil, &text)
	}
	for i, c := range connections {
		running.Go(func() {
			for failed.Load() == nil {
				before := time.Now()
				turn := next.Add(1)
				if before.Sub(start) >= plan.For || plan.Requests > 0 && turn > plan.Requests {
					return
				}
				status, body, err := c.grab(firstBuyer + plan.Buyer + turn)
				if err != nil {
					failed.Store(&err)
					return
				}
				all[i].add(time.Since(before))
				if !check(status, body) {
					fail(fmt.Sprintf("%d %s", status, body))
				}
			}
		})
	}
	running.Wait()
	took, spent := time.Since(start), ownCPU()-cpu
	if err := failed.Load(); err != nil {
		return result{}, fmt.Errorf("a connection failed: %w", *err)
	}
	merged := merge(all)
	r := result{
		Requests: int64(len(merged)), Wrong: wrong.Load(), Took: took, CPU: spent,
		P50: merged.percentile(50), P99: merged.percentile(99),
	}
	if text := example.Load(); text != nil {
		r.Example = *text
	}
	return r, nil
}

func checkFor(want string) (func(int, []byte) bool, error) {
	switch want {
	case "accepted":
		begin, end := []byte(`{"code":1,"orderId":"SK`), []byte(`","status":"queued"}`)
		return func(status int, body []byte) bool {
			return status == 202 && bytes.HasPrefix(body, begin) && bytes.HasSuffix(body, end)
		}, nil
	case "sold_out":
		reason, code := []byte(`"reason":"sold_out"`), []byte(`"code":0`)
		return func(status int, body []byte) bool {
			return status == 409 && bytes.Contains(body, reason) && bytes.Contains(body, code)
		}, nil
	}
	return nil, errors.New("want must be accepted or sold_out")
}
