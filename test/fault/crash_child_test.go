package fault

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"seckill/application"
	"seckill/bootstrap"
	"seckill/domain"
	"seckill/test/harness"
	"seckill/test/history"
)

const (
	crashVariable = "SECKILL_TEST_CRASH"
	crashPrefix   = "crash: "
	crashDone     = "done"

	// What a sale of the scenario has and who wants it.
	crashTotal  = 60
	crashBuyers = 24
	crashEdits  = 12
	// crashSKUs are the SKUs of an activity, so that loading one passes every
	// point of it so often.
	crashSKUs = 10
)

// crashTask is what the process that is to crash gets to know.
type crashTask struct {
	Config bootstrap.Config
	First  domain.ActivityID // and the next one
	Point  string
	Hit    int
}

// crashLine is one line of its report: a call that begins, or one that returned.
type crashLine struct {
	Begun bool
	Call  history.Call
	Edit  *domain.StockEdit `json:",omitempty"`
}

// TestCrashChild is no test: it is the process that crashes.
func TestCrashChild(t *testing.T) {
	text := os.Getenv(crashVariable)
	if text == "" {
		t.Skip("only for TestCrashMatrix")
	}
	var task crashTask
	if err := json.Unmarshal([]byte(text), &task); err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, config: task.Config, history: history.New(), log: &harness.Buffer{}}
	k := &killer{point: task.Point, hit: task.Hit}
	r.start(k.decorate())
	c := &crasher{rig: r}
	c.live(task.First)
	r.stop()
	c.say(crashDone)
}

// crasher plays the whole life of two sales and reports each call.
type crasher struct {
	*rig
	mu sync.Mutex
}

func (c *crasher) say(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Println(crashPrefix + line)
}

func (c *crasher) report(line crashLine) {
	text, err := json.Marshal(line)
	c.must(err)
	c.say(string(text))
}

// call reports before and after; what the history recorded last of this kind and
// key is the answer.
func (c *crasher) call(begun history.Call, do func() history.Call) {
	begun.Result = history.Unknown
	c.report(crashLine{Begun: true, Call: begun})
	c.report(crashLine{Call: do()})
}

// crashActivity describes the sale with an id; the second one is to be paid soon.
func crashActivity(id, first domain.ActivityID) domain.Activity {
	now := time.Now()
	a := domain.Activity{
		ID: id, Name: "crash", StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour), PaymentWindow: time.Hour,
	}
	if id != first {
		a.PaymentWindow = time.Millisecond
	}
	for n := range crashSKUs {
		a.SKUs = append(a.SKUs, domain.SKU{ID: domain.SKUID(2001 + n), Name: "crash", Total: crashTotal, PerUserLimit: 1, Segments: 1})
	}
	return a
}

func (c *crasher) live(first domain.ActivityID) {
	ctx := c.t.Context()
	for id := first; id < first+2; id++ {
		for range 5 { // an operator who is not sure
			_, err := c.SaveActivity(ctx, crashActivity(id, first))
			c.must(err)
		}
		_, err := c.Preheat(ctx, id)
		c.must(err)
		_, err = c.SetState(ctx, id, "open")
		c.must(err)
	}
	paid := domain.SaleID{Activity: first, SKU: 2001}
	late := domain.SaleID{Activity: first + 1, SKU: 2001}

	// Half of the buyers come together, the others one by one.
	var together sync.WaitGroup
	orders := make([]domain.OrderID, crashBuyers)
	for i := range crashBuyers {
		if i < crashBuyers/2 {
			together.Go(func() { orders[i] = c.grab(paid, i) })
			continue
		}
		orders[i] = c.grab(paid, i)
		c.placed(orders[i])
	}
	together.Wait()
	for i, id := range orders {
		c.placed(id)
		switch {
		case i%2 == 0:
			c.pay(id, i)
		case i < crashBuyers-2:
			c.cancel(id, i)
		}
	}
	for i := range crashBuyers / 2 { // one after the other: each is a sweep of its own
		id := c.grab(late, i)
		c.eventually("expiry", func() error {
			order, err := c.Order(ctx, id, buyerOf(i))
			if err == nil && order.Status != domain.Expired {
				err = fmt.Errorf("order is %s", order.Status)
			}
			return err
		})
		c.pay(id, i)
	}
	for n := range crashEdits {
		c.edit(crashEdit(paid, n))
	}
	for range 4 {
		for _, command := range []string{"pause", "resume"} {
			_, err := c.SetState(ctx, first, command)
			c.must(err)
		}
	}
	_, err := c.Reconcile(ctx, first, true)
	c.must(err)
}

func buyerOf(i int) domain.BuyerID { return domain.BuyerID(fmt.Sprint("crash-", i)) }

// crashEdit is the n-th edit: three units come, two go.
func crashEdit(sale domain.SaleID, n int) domain.StockEdit {
	edit := domain.StockEdit{Sale: sale, Delta: 3, Reason: "crash", Key: domain.RequestID(fmt.Sprint("edit-", n))}
	if n%2 == 1 {
		edit.Delta = -2
	}
	return edit
}

func crashGrab(sale domain.SaleID, i int) application.GrabRequest {
	return application.GrabRequest{Sale: sale, Buyer: buyerOf(i), Request: domain.RequestID(fmt.Sprint("r-", i)), Quantity: 1}
}

func (c *crasher) grab(sale domain.SaleID, i int) (id domain.OrderID) {
	req := crashGrab(sale, i)
	c.call(history.Call{Kind: history.Grab, Sale: sale, Buyer: req.Buyer, Request: req.Request, Quantity: 1}, func() history.Call {
		h := history.New()
		outcome, err := h.Grab(c.t.Context(), c.Engine, req)
		c.must(err)
		id = outcome.Order
		return h.Calls()[0]
	})
	return id
}

func (c *crasher) pay(id domain.OrderID, i int) {
	payment := domain.PaymentID(fmt.Sprint("p-", i))
	c.call(history.Call{Kind: history.Pay, Sale: id.Sale(), Buyer: buyerOf(i), Order: id, Payment: payment}, func() history.Call {
		h := history.New()
		_, err := h.Pay(c.t.Context(), c.Engine, id, buyerOf(i), payment)
		c.must(err)
		return h.Calls()[0]
	})
}

func (c *crasher) cancel(id domain.OrderID, i int) {
	c.call(history.Call{Kind: history.Cancel, Sale: id.Sale(), Buyer: buyerOf(i), Order: id}, func() history.Call {
		h := history.New()
		_, err := h.Cancel(c.t.Context(), c.Engine, id, buyerOf(i))
		c.must(err)
		return h.Calls()[0]
	})
}

func (c *crasher) edit(edit domain.StockEdit) {
	c.report(crashLine{Begun: true, Edit: &edit})
	_, err := c.EditStock(c.t.Context(), edit)
	c.must(err)
}

// placed waits until the ledger has an order.
func (c *crasher) placed(id domain.OrderID) {
	c.eventually("a placed order", func() error {
		order, err := c.AwaitOrder(c.t.Context(), id, "", time.Second)
		if err == nil && order.Status == domain.Queued {
			err = fmt.Errorf("order %s is queued", id)
		}
		return err
	})
}
