package conformance

import (
	"testing"
	"time"

	"seckill/domain"
)

// StockWorld is a hot store under test, with the queue that it feeds.
type StockWorld struct {
	Stock domain.Stock
	Queue domain.OrderQueue
	// Now reads the clock that the store judges windows by.
	Now func() time.Time
	// Reclaim is the queue's backoff after a first delivery. Keep it small, for
	// example 50 ms: the suites wait for it.
	Reclaim time.Duration
}

// Stock holds every strategy of the port domain.Stock to the same contract. It
// has no switches: a strategy either keeps the contract or fails.
//
// open is called once per sub-test and returns a world that nothing else uses.
// After every sub-test the conservation law is checked on each sale it made.
func Stock(t *testing.T, open func(t *testing.T) StockWorld) {
	for _, group := range []struct {
		name  string
		tests []stockTest
	}{
		{"preheat", preheatTests},
		{"gate", gateTests},
		{"claims", claimTests},
		{"replay", replayTests},
		{"release and settle", releaseTests},
		{"reacquire", reacquireTests},
		{"queue", intentTests},
		{"rebuild", rebuildTests},
		{"fence", fenceTests},
		{"edit", editTests},
		{"audit", auditTests},
		{"crowd", crowdTests},
	} {
		t.Run(group.name, func(t *testing.T) { runStockTests(t, open, group.tests) })
	}
}

// StockAtEveryMoment holds a strategy to the account being whole whenever it is
// read, also while grabs are under way. It is a suite of its own because a
// strategy that takes first and puts back later cannot promise that; all others
// do.
func StockAtEveryMoment(t *testing.T, open func(t *testing.T) StockWorld) {
	runStockTests(t, open, momentTests)
}

// stockTest is one sentence of the contract.
type stockTest struct {
	name string
	run  func(s *stockStage)
}

func runStockTests(t *testing.T, open func(t *testing.T) StockWorld, tests []stockTest) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &stockStage{T: t, StockWorld: open(t)}
			test.run(s)
			s.checkConservation()
		})
	}
}
