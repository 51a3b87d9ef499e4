package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/domain"
)

// History runs one random history against several worlds side by side and
// compares every answer: verdicts, replays, stock before and after, errors,
// levels, holds, and the intents that come out of the queue. Times are left
// out. After every step the conservation law is checked in every world.
//
// The same seed makes the same history. A difference is reported with the seed
// and the last steps, and ends the test.
//
// covers S5, S12, N1
func History(t testing.TB, seed int64, steps int, worlds ...StockWorld) {
	t.Helper()
	h := &history{
		TB:     t,
		seed:   seed,
		random: rand.New(rand.NewPCG(uint64(seed), 0)),
		worlds: worlds,
		queued: make([][]domain.Delivery, len(worlds)),
	}
	for range 2 {
		h.accounts = append(h.accounts, h.newAccount())
	}
	for h.step = 1; h.step <= steps; h.step++ {
		h.next()
		h.checkAccounts()
	}
	h.receive()
	h.ack()
	h.checkAccounts()
}

// history is what the generator must know to choose a next step. What is right
// it does not know: the worlds tell each other.
type history struct {
	testing.TB
	seed     int64
	random   *rand.Rand
	worlds   []StockWorld
	accounts []*account
	queued   [][]domain.Delivery // received and not acknowledged, per world
	received int                 // intents among them
	step     int
	minted   int
	trail    []string
}

// account is one sale of the history.
type account struct {
	sale   domain.SaleID
	epoch  int64
	fence  int64
	total  int64
	claims []domain.Claim // that were ever made
	loaded bool           // neither sealed nor archived
}

const (
	historyBuyers   = 6
	historyRequests = 5
	historyTrail    = 25  // steps that a report shows
	historyMemory   = 100 // claims that are repeated after a preheat
)

func (h *history) next() {
	a := h.accounts[h.random.IntN(len(h.accounts))]
	if !a.loaded {
		h.reload(a, nil)
		return
	}
	switch n := h.random.IntN(100); {
	case n < 30:
		h.reserve(a, 1)
	case n < 42:
		h.reserve(a, 2+h.random.IntN(8))
	case n < 58:
		h.release(a)
	case n < 66:
		h.settle(a)
	case n < 73:
		h.reacquire(a)
	case n < 78:
		h.setGate(a)
	case n < 83:
		h.receive()
	case n < 87:
		h.ack()
	case n < 90:
		h.requeue(a)
	case n < 94:
		h.adopt(a)
	case n < 95:
		if h.random.IntN(2) == 0 {
			h.correct(a)
		} else {
			h.edit(a)
		}
	case n < 96:
		h.fenced(a)
	case n < 97:
		h.archive(a)
	case n < 99:
		h.preheat(a)
	default:
		h.rebuild(a)
	}
}

func (h *history) newAccount() *account {
	// Not from the history's seed: worlds that share a server must not meet an
	// earlier run's sale.
	a := &account{sale: domain.SaleID{
		Activity: domain.ActivityID(1 + rand.Int64N(domain.MaxInteger)),
		SKU:      domain.SKUID(1 + rand.Int64N(domain.MaxInteger)),
	}}
	h.reload(a, nil)
	return a
}

func (h *history) mint(a *account) domain.OrderID {
	h.minted++
	return domain.NewOrderID(a.sale, fmt.Sprintf("h%07d", h.minted))
}

// claim makes a new claim, or one that was made before.
func (h *history) claim(a *account) domain.Claim {
	if len(a.claims) > 0 && h.random.IntN(6) == 0 {
		return h.known(a)
	}
	c := domain.Claim{
		Order:    h.mint(a),
		Buyer:    domain.BuyerID(fmt.Sprint("b", h.random.IntN(historyBuyers))),
		Quantity: 1 + h.random.Int64N(3),
	}
	switch h.random.IntN(4) {
	case 0: // a new request
		c.Request = domain.RequestID(fmt.Sprint("n", h.minted))
	case 1: // one that was perhaps used, for this quantity or another
		c.Request = domain.RequestID(fmt.Sprint("r", h.random.IntN(historyRequests)))
	}
	a.claims = append(a.claims, c)
	return c
}

// known is a claim that was made before, recent ones more often.
func (h *history) known(a *account) domain.Claim {
	n := len(a.claims)
	if h.random.IntN(2) == 0 {
		return a.claims[n-1-h.random.IntN(min(n, 12))]
	}
	return a.claims[h.random.IntN(n)]
}

// hold is the id of a hold that exists, or existed, or never will.
func (h *history) hold(a *account) domain.OrderID {
	if len(a.claims) == 0 || h.random.IntN(15) == 0 {
		c := h.claim(a)
		return c.Order
	}
	id := h.known(a).Order
	if h.random.IntN(4) == 0 {
		return id.Late()
	}
	return id
}

func (h *history) holds(a *account) []domain.OrderID {
	ids := make([]domain.OrderID, 1+h.random.IntN(4))
	for i := range ids {
		ids[i] = h.hold(a)
	}
	return ids
}

func (h *history) reserve(a *account, n int) {
	claims := make([]domain.Claim, n)
	for i := range claims {
		claims[i] = h.claim(a)
	}
	h.compare(fmt.Sprintf("Reserve %+v", claims), func(w StockWorld) (any, error) {
		outcomes, err := w.Stock.Reserve(h.Context(), a.sale, claims)
		return withoutTimes(outcomes...), err
	})
}

// reacquire is the way of a late payment, which may fail and come again.
func (h *history) reacquire(a *account) {
	if len(a.claims) == 0 {
		return
	}
	c := h.known(a)
	if h.random.IntN(2) == 0 {
		h.releaseAll(a, c.Order)
	}
	h.takeAgain(a, c)
	for h.random.IntN(3) == 0 {
		h.releaseAll(a, c.Order.Late())
		h.takeAgain(a, c)
	}
}

func (h *history) takeAgain(a *account, c domain.Claim) {
	h.compare(fmt.Sprintf("Reacquire %+v", c), func(w StockWorld) (any, error) {
		outcome, err := w.Stock.Reacquire(h.Context(), a.sale, c)
		all := withoutTimes(outcome)
		// While the first hold has its units the contract asks for a refusal,
		// but not for a certain one.
		first, _ := w.Stock.Hold(h.Context(), a.sale, c.Order)
		if (first.State == domain.Held || first.State == domain.Sold) && all[0].Verdict != domain.Accepted {
			all[0].Verdict = domain.LimitReached
		}
		return all, err
	})
}

func (h *history) release(a *account) { h.releaseAll(a, h.holds(a)...) }

func (h *history) releaseAll(a *account, ids ...domain.OrderID) {
	h.compare(fmt.Sprintf("Release %v", ids), func(w StockWorld) (any, error) {
		return anyOf(w.Stock.Release(h.Context(), a.sale, ids...))
	})
	h.compareHolds(a, ids)
}

func (h *history) settle(a *account) {
	ids := h.holds(a)
	h.compare(fmt.Sprintf("Settle %v", ids), func(w StockWorld) (any, error) {
		return anyOf(w.Stock.Settle(h.Context(), a.sale, ids...))
	})
	h.compareHolds(a, ids)
}

func (h *history) setGate(a *account) {
	kind := h.random.IntN(20)
	limit := 1 + h.random.Int64N(8)
	a.fence += h.random.Int64N(2)
	h.compare(fmt.Sprintf("SetGate kind %d, limit %d, fence %d", kind, limit, a.fence), func(w StockWorld) (any, error) {
		return nil, w.Stock.SetGate(h.Context(), a.sale, gateOf(w, kind, limit), a.fence)
	})
}

// gateOf makes a gate relative to the world's own clock; most kinds are open.
func gateOf(w StockWorld, kind int, limit int64) domain.Gate {
	now := w.Now().Truncate(time.Millisecond)
	gate := domain.Gate{
		State:        domain.Open,
		StartsAt:     now.Add(-time.Hour),
		EndsAt:       now.Add(time.Hour),
		PerUserLimit: limit,
	}
	switch kind {
	case 0:
		gate.State = domain.Paused
	case 1:
		gate.State = domain.Closed
	case 2:
		gate.State = domain.Ready
	case 3:
		gate.StartsAt = now.Add(30 * time.Minute)
	case 4:
		gate.EndsAt = now.Add(-30 * time.Minute)
	}
	return gate
}

// receive takes everything that waits. Entries may hold different numbers of
// intents in different worlds, so the intents are compared.
func (h *history) receive() {
	depths := h.compare("Depth", func(w StockWorld) (any, error) {
		depth, err := w.Queue.Depth(h.Context())
		return depth.Orders, err
	})
	waiting := int(depths.(int64)) - h.received
	world := 0
	h.compare(fmt.Sprintf("Receive %d", waiting), func(w StockWorld) (any, error) {
		deliveries, err := collectIntents(h.Context(), w.Queue, waiting)
		h.queued[world] = append(h.queued[world], deliveries...)
		world++
		perSale := map[domain.SaleID][]domain.Intent{}
		for _, intent := range intentsOf(deliveries) {
			intent.At = time.Time{}
			perSale[intent.Sale] = append(perSale[intent.Sale], intent)
		}
		return perSale, err
	})
	h.received += waiting
}

func (h *history) ack() {
	world := 0
	h.compare(fmt.Sprintf("Ack %d", h.received), func(w StockWorld) (any, error) {
		err := w.Queue.Ack(h.Context(), h.queued[world]...)
		h.queued[world] = nil
		world++
		return nil, err
	})
	h.received = 0
}

func (h *history) requeue(a *account) {
	var ids []domain.OrderID
	for _, id := range h.holds(a) {
		if id = id.Order(); !slices.Contains(ids, id) { // second holds have no intent
			ids = append(ids, id)
		}
	}
	h.compare(fmt.Sprintf("Requeue %v", ids), func(w StockWorld) (any, error) {
		return anyOf(w.Stock.Requeue(h.Context(), a.sale, ids...))
	})
}

func (h *history) adopt(a *account) {
	c := h.claim(a)
	if h.random.IntN(2) == 0 {
		c = h.known(a) // mostly one that was released by now, or is a tombstone
	}
	if h.random.IntN(5) == 0 {
		c.Order = c.Order.Late()
	}
	if c.Request != "" {
		c.Request = domain.RequestID(fmt.Sprint("a", h.minted)) // the ledger has one order per request
	}
	hold := domain.Hold{
		Order: c.Order, Buyer: c.Buyer, Request: c.Request, Quantity: c.Quantity,
		State: domain.Held, CreatedAt: h.worlds[0].Now(),
	}
	if h.random.IntN(3) == 0 {
		hold.State = domain.Sold
	}
	h.compare(fmt.Sprintf("Adopt %s %+v", hold.State, c), func(w StockWorld) (any, error) {
		return anyOf(w.Stock.Adopt(h.Context(), a.sale, hold, a.fence))
	})
	h.compareHolds(a, []domain.OrderID{hold.Order})
}

func (h *history) correct(a *account) {
	shift := h.random.Int64N(2)
	h.compare(fmt.Sprintf("Correct, seen off by %d", shift), func(w StockWorld) (any, error) {
		seen, err := w.Stock.Level(h.Context(), a.sale)
		if err != nil {
			return nil, err
		}
		seen.Available += shift
		audit, err := w.Stock.Correct(h.Context(), a.sale, seen, a.fence)
		if err != nil {
			return nil, err
		}
		return h.balanced(audit, nil)
	})
}

// edit changes the total by a few units, sometimes on a wrong view of it.
func (h *history) edit(a *account) {
	seen, change := a.total+h.random.Int64N(5)/4, h.random.Int64N(7)-3
	edited := h.compare(fmt.Sprintf("SetTotal %d to %d", seen, a.total+change), func(w StockWorld) (any, error) {
		err := w.Stock.SetTotal(h.Context(), a.sale, seen, a.total+change, a.fence)
		return err == nil, err
	})
	if edited == true {
		a.total += change
	}
}

// fenced tries every guarded write with an older number.
func (h *history) fenced(a *account) {
	if a.fence == 0 {
		return
	}
	// A refused Seal may or may not have left its number: make sure of it.
	h.setGate(a)
	old := a.fence - 1
	hold := domain.Hold{Order: h.mint(a), Buyer: "b0", Quantity: 1, State: domain.Held, CreatedAt: h.worlds[0].Now()}
	h.compare(fmt.Sprintf("all writes with the old fence %d", old), func(w StockWorld) (any, error) {
		ctx := h.Context()
		_, adopted := w.Stock.Adopt(ctx, a.sale, hold, old)
		return []string{
			errorName(w.Stock.Seal(ctx, a.sale, old, true)),
			errorName(w.Stock.SetGate(ctx, a.sale, gateOf(w, 0, 1), old)),
			errorName(w.Stock.Archive(ctx, a.sale, old)),
			errorName(adopted),
		}, nil
	})
}

func (h *history) archive(a *account) {
	archived := h.compare("Archive", func(w StockWorld) (any, error) {
		err := w.Stock.Archive(h.Context(), a.sale, a.fence)
		return err == nil, err
	})
	if archived == true {
		a.loaded = false
		h.compareAbsence(a)
	}
}

// preheat seals and loads anew if that is allowed, with some of the sold and
// released holds.
func (h *history) preheat(a *account) {
	a.fence++
	sealed := h.compare("Seal", func(w StockWorld) (any, error) {
		err := w.Stock.Seal(h.Context(), a.sale, a.fence, false)
		return err == nil, err
	})
	if sealed != true {
		return
	}
	a.loaded = false
	h.compareAbsence(a)
	if h.random.IntN(4) > 0 { // else a later step loads it
		h.reload(a, h.surviving(a, domain.Sold, domain.Released))
	}
}

// rebuild seals by force and loads what the first world holds. The queue is
// emptied first: what becomes of an earlier epoch's entries is an adapter's own.
func (h *history) rebuild(a *account) {
	h.receive()
	h.ack()
	a.fence++
	survivors := h.surviving(a, domain.Held, domain.Sold, domain.Released)
	h.compare("Seal by force", func(w StockWorld) (any, error) {
		return nil, w.Stock.Seal(h.Context(), a.sale, a.fence, true)
	})
	a.loaded = false
	h.compareAbsence(a)
	h.reload(a, survivors)
}

// surviving lists most of the holds in some states, by the first world. As in
// a ledger, a buyer's request id belongs to one order, and there are no tombstones.
func (h *history) surviving(a *account, states ...domain.HoldState) []domain.Hold {
	var found []domain.Hold
	seen := map[string]bool{}
	for _, c := range a.claims {
		for _, id := range []domain.OrderID{c.Order, c.Order.Late()} {
			hold, err := h.worlds[0].Stock.Hold(h.Context(), a.sale, id)
			asked := fmt.Sprint(hold.Buyer, " ", hold.Request)
			if err != nil || hold.Buyer == "" || !slices.Contains(states, hold.State) ||
				seen[string(id)] || seen[asked] || h.random.IntN(8) == 0 {
				continue
			}
			seen[string(id)] = true
			seen[asked] = hold.Request != ""
			found = append(found, hold)
		}
	}
	return found
}

func (h *history) reload(a *account, holds []domain.Hold) {
	a.claims = a.claims[max(0, len(a.claims)-historyMemory):]
	a.epoch++
	a.total = 1 + h.random.Int64N(60)
	limit := 1 + h.random.Int64N(8)
	what := fmt.Sprintf("Preheat total %d, limit %d, epoch %d, holds %+v", a.total, limit, a.epoch, holds)
	loaded := h.compare(what, func(w StockWorld) (any, error) {
		if err := w.Stock.Seal(h.Context(), a.sale, a.fence, true); err != nil {
			return nil, err
		}
		err := w.Stock.Preheat(h.Context(), domain.Load{
			Sale: a.sale, Epoch: a.epoch, Gate: gateOf(w, 9, limit), Total: a.total, Holds: holds, Fence: a.fence,
		})
		return err == nil, err
	})
	if a.loaded = loaded == true; !a.loaded {
		h.compareAbsence(a)
	}
}

// compare asks every world and demands the same answer, which it returns.
func (h *history) compare(what string, ask func(StockWorld) (any, error)) any {
	h.Helper()
	h.trail = append(h.trail, fmt.Sprintf("%4d  %s", h.step, what))
	var first any
	var firstErr string
	for i, w := range h.worlds {
		answer, err := ask(w)
		name := errorName(err)
		if strings.HasPrefix(name, "other:") {
			h.fail("world %d answers with the error %v", i, err)
		}
		if i == 0 {
			first, firstErr = answer, name
			h.trail[len(h.trail)-1] += fmt.Sprintf("\n        → %+v %s", answer, name)
			continue
		}
		if name != firstErr || !reflect.DeepEqual(answer, first) {
			h.fail("world 0 answers %+v %s\nworld %d answers %+v %s", first, firstErr, i, answer, name)
		}
	}
	return first
}

// fail reports the end of the history and how to repeat it.
func (h *history) fail(format string, args ...any) {
	h.Helper()
	from := max(0, len(h.trail)-historyTrail)
	h.Fatalf("seed %d, step %d: %s\nlast steps:\n%s",
		h.seed, h.step, fmt.Sprintf(format, args...), strings.Join(h.trail[from:], "\n"))
}

// checkAccounts compares the accounts and demands balance, sale by sale, and
// compares the listing of holds now and then.
func (h *history) checkAccounts() {
	h.Helper()
	for _, a := range h.accounts {
		if !a.loaded {
			continue
		}
		h.quietly(func() {
			h.compare("Audit", func(w StockWorld) (any, error) {
				return h.balanced(w.Stock.Audit(h.Context(), a.sale))
			})
		})
		if h.step%20 == 0 {
			h.quietly(func() { h.compareListing(a) })
		}
	}
}

// balanced demands the conservation law of an audit.
func (h *history) balanced(audit domain.Audit, err error) (any, error) {
	h.Helper()
	if err == nil && !audit.Balanced() {
		h.fail("a world does not balance: %+v", audit)
	}
	audit.Buyers = nil // balanced: there are none
	return audit, err
}

// quietly keeps checks out of the trail unless they fail.
func (h *history) quietly(check func()) {
	before := len(h.trail)
	check()
	h.trail = h.trail[:before]
}

func (h *history) compareListing(a *account) {
	h.Helper()
	h.compare("Holds", func(w StockWorld) (any, error) {
		holds, err := listAllHolds(h.Context(), w.Stock, a.sale)
		for id, hold := range holds {
			hold.CreatedAt = time.Time{}
			holds[id] = hold
		}
		return holds, err
	})
}

func (h *history) compareHolds(a *account, ids []domain.OrderID) {
	h.Helper()
	for _, id := range ids {
		h.compare("Hold "+string(id), func(w StockWorld) (any, error) {
			hold, err := w.Stock.Hold(h.Context(), a.sale, id)
			hold.CreatedAt = time.Time{}
			return hold, err
		})
	}
}

// compareAbsence asks for a sale that is sealed or archived.
func (h *history) compareAbsence(a *account) {
	h.Helper()
	c := domain.Claim{Order: h.mint(a), Buyer: "b0", Quantity: 1}
	h.compare("Reserve and Level while absent", func(w StockWorld) (any, error) {
		outcomes, err := w.Stock.Reserve(h.Context(), a.sale, []domain.Claim{c})
		if err != nil {
			return nil, err
		}
		_, err = w.Stock.Level(h.Context(), a.sale)
		return withoutTimes(outcomes...), err
	})
}

// withoutTimes strips what may differ: the moment, and the suffix of a second hold.
func withoutTimes(outcomes ...domain.Outcome) []domain.Outcome {
	all := slices.Clone(outcomes)
	for i := range all {
		all[i].StartsAt = time.Time{}
		all[i].Order = all[i].Order.Order()
	}
	return all
}

func anyOf[T any](value T, err error) (any, error) { return value, err }

// errorName is the sentinel that an error is, so that worlds can word it.
func errorName(err error) string {
	if err == nil {
		return ""
	}
	for _, sentinel := range []error{
		domain.ErrInvalid, domain.ErrNotFound, domain.ErrNotReady, domain.ErrHasHolds, domain.ErrUnbalanced,
		domain.ErrState, domain.ErrConflict, domain.ErrFenced,
	} {
		if errors.Is(err, sentinel) {
			return sentinel.Error()
		}
	}
	if errors.Is(err, context.Canceled) {
		return "other: cancelled"
	}
	return "other: " + err.Error()
}
