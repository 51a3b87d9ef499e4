package e2e

import (
	"slices"
	"testing"
)

type scenario struct {
	name string
	test func(*testing.T, *cell)
}

var scenarios = []scenario{
	{"crowd", testCrowd},
	{"pay", testPay},
	{"cancel", testCancel},
	{"expiry", testExpiry},
	{"late payment", testLatePayment},
	{"pay against expiry", testPayAgainstExpiry},
	{"pay against cancel", testPayAgainstCancel},
	{"same request", testSameRequest},
	{"one request at once", testOneRequestAtOnce},
	{"gate", testGate},
	{"window", testWindow},
	{"impossible commands", testImpossibleCommands},
	{"not ready", testNotReady},
	{"edit", testEdit},
	{"sold out", testSoldOutIsNoticed},
}

// queueScenarios reach into the queue, so they need one that can be reached.
var queueScenarios = []scenario{
	{"poison", testPoison},
	{"over-admission", testOverAdmission},
}

// TestMatrix runs the life of sales on every pair of stores. A pair's
// scenarios share its processes and keep apart by activity.
// covers O1
func TestMatrix(t *testing.T) {
	for _, p := range pairings {
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			c := serving(t, p)
			list := scenarios
			if c.redis != nil {
				list = slices.Concat(scenarios, queueScenarios)
			}
			for _, s := range list {
				t.Run(s.name, func(t *testing.T) { s.test(t, c) })
			}
		})
	}
}
