package drill

import (
	"fmt"

	"seckill/bootstrap/seckill/load"
)

// Result is what a drill found out.
type Result struct {
	Config  Config
	Account Account // after the load, when all has settled

	Requests     int64
	Accepted     int64
	SoldOut      int64
	LimitReached int64
	Rejected     int64 // any other refusal
	Errors       int64 // no answer that says what happened
	Retried      int64 // requests that were sent once more

	QueuePeak      int64 // units
	Distinct       int64 // order ids among the accepted grabs
	Orders         int64 // of the accepted grabs, those that became an order that waits for its payment
	OrdersRejected int64 // those that the ledger rejected

	// Findings are the numbers that do not agree, a line each. None: all do.
	Findings []string

	measured      load.Measured
	asked         int64            // buyers who asked
	twice         int64            // buyers who asked twice while there was stock
	winners       int64            // buyers with an accepted grab
	limitedLosers int64            // buyers who heard "limit reached" and have nothing
	soldOutEarly  int64            // accepted grabs that were sent after somebody heard "sold out"
	messages      map[string]int64 // what was said in place of an outcome
}

func (r *Result) find(format string, args ...any) {
	r.Findings = append(r.Findings, fmt.Sprintf(format, args...))
}

// judge compares every number with every other that says the same. A grab whose
// outcome is unknown may hold a unit or not: what is allowed to stay unknown
// widens the range of what is right by as much.
func (r *Result) judge() {
	stock, a := r.Config.Stock, r.Account
	open := min(r.Errors, r.Config.AllowErrors)
	equal := func(what string, got, want int64) {
		if got != want {
			r.find("%s: %d instead of %d", what, got, want)
		}
	}
	within := func(what string, got, low, high int64) {
		switch {
		case low == high:
			equal(what, got, low)
		case got < low || got > high:
			r.find("%s: %d instead of %d to %d", what, got, low, high)
		}
	}

	equal("requests that were sent", r.Requests, r.Config.Requests)
	equal("answers", r.Accepted+r.SoldOut+r.LimitReached+r.Rejected+r.Errors, r.Requests)
	if r.Errors > r.Config.AllowErrors {
		r.find("errors: %d, allowed are %d", r.Errors, r.Config.AllowErrors)
	}
	equal("refusals other than sold out and limit reached", r.Rejected, 0)

	if r.Accepted > stock {
		r.find("oversold: %d grabs accepted of %d units", r.Accepted, stock)
	}
	due := min(stock, r.asked)
	within("accepted grabs", r.Accepted, due-open, due)
	equal("distinct order ids", r.Distinct, r.Accepted)
	equal("buyers with an accepted grab", r.winners, r.Accepted)
	if r.LimitReached < r.twice-open {
		r.find("limit reached: %d answers, but %d buyers asked twice while there was stock", r.LimitReached, r.twice)
	}
	within("buyers who heard \"limit reached\" and have nothing", r.limitedLosers, 0, open)
	if losers := r.asked - due; r.SoldOut < losers-open {
		r.find("sold out: %d answers, but %d buyers cannot have got a unit", r.SoldOut, losers)
	}
	equal("grabs accepted although another buyer had heard \"sold out\" before", r.soldOutEarly, 0)

	equal("accepted grabs that became an order", r.Orders, r.Accepted)
	equal("orders that the ledger rejected", r.OrdersRejected, 0)

	equal("total units", a.Total, stock)
	equal("available + held + sold", a.Available+a.Held+a.Sold, stock)
	within("held + sold", a.Held+a.Sold, r.Accepted, r.Accepted+open)
	equal("unpaid and paid orders in the ledger", a.Ledger.Pending+a.Ledger.Paid, a.Held+a.Sold)
	equal("rejected orders in the ledger", a.Ledger.Rejected, 0)
	equal("expired, cancelled and refunded orders in the ledger", a.Ledger.Expired+a.Ledger.Cancelled+a.Ledger.RefundDue, 0)
	equal("still queued", a.Queued, 0)
	equal("drift", a.Drift, 0)
	if !a.Balanced {
		r.find("the service says that the account is not balanced: %s", orElse(a.Problem, "the figures above tell why"))
	}
	if len(r.Findings) > 0 {
		for text, n := range r.messages {
			r.find("%d times: %s", n, text)
		}
	}
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// Figures are the drill's numbers as they are written to a file.
type Figures struct {
	Requests     int64   `json:"requests"`
	Accepted     int64   `json:"accepted"`
	SoldOut      int64   `json:"soldOut"`
	LimitReached int64   `json:"limitReached"`
	Rejected     int64   `json:"rejected"`
	Errors       int64   `json:"errors"`
	Total        int64   `json:"total"`
	Available    int64   `json:"available"`
	Held         int64   `json:"held"`
	Sold         int64   `json:"sold"`
	QueuePeak    int64   `json:"queuePeak"`
	Orders       int64   `json:"orders"`
	Balanced     bool    `json:"balanced"`
	PerSecond    float64 `json:"perSecond"` // answered grabs
	P50Ms        float64 `json:"p50Ms"`
	P99Ms        float64 `json:"p99Ms"`

	Loop           string   `json:"loop"` // open or closed
	Retried        int64    `json:"retried"`
	OrdersRejected int64    `json:"ordersRejected"`
	P50CorrectedMs float64  `json:"p50CorrectedMs"`
	P99CorrectedMs float64  `json:"p99CorrectedMs"`
	MaxMs          float64  `json:"maxMs"`
	ActivityID     int64    `json:"activityId"`
	Findings       []string `json:"findings"`
}

// Figures are the numbers. In an open loop latencies count from the moment when
// a request was due, and the corrected ones are the same.
func (r *Result) Figures() Figures {
	f := Figures{
		Requests: r.Requests, Accepted: r.Accepted, SoldOut: r.SoldOut, LimitReached: r.LimitReached,
		Rejected: r.Rejected, Errors: r.Errors,
		Total: r.Account.Total, Available: r.Account.Available, Held: r.Account.Held, Sold: r.Account.Sold,
		QueuePeak: r.QueuePeak, Orders: r.Orders, Balanced: r.Account.Balanced,
		PerSecond: load.Round(r.measured.PerSecond()), Loop: r.Loop(), Retried: r.Retried, OrdersRejected: r.OrdersRejected,
		ActivityID: r.Config.Activity, Findings: append([]string{}, r.Findings...),
	}
	if latency := r.measured.Latency; latency != nil {
		corrected := r.corrected()
		f.P50Ms, f.P99Ms, f.MaxMs = load.Round(latency.Milliseconds(50)), load.Round(latency.Milliseconds(99)), load.Round(latency.MaxMilliseconds())
		f.P50CorrectedMs, f.P99CorrectedMs = load.Round(corrected.Milliseconds(50)), load.Round(corrected.Milliseconds(99))
	}
	return f
}

// Loop says which kind of load it was.
func (r *Result) Loop() string {
	if r.Config.Rate > 0 {
		return "open"
	}
	return "closed"
}

// Percentile is the latency that so many percent of the answered grabs did not
// exceed, as measured and corrected for coordinated omission.
func (r *Result) Percentile(percent float64) (measured, corrected float64) {
	if r.measured.Latency == nil {
		return 0, 0
	}
	return r.measured.Latency.Milliseconds(percent), r.corrected().Milliseconds(percent)
}

func (r *Result) corrected() *load.Latency {
	if r.Config.Rate > 0 {
		return r.measured.Latency // counted from the moment when each was due
	}
	return r.measured.Latency.Corrected()
}
