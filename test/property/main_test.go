// Package property drives whole engines with random sequences of all that can
// happen to them: grabs and their repeats, deliveries, payments, cancellations,
// expiry, operators' commands, deaths of the process and losses of the hot store.
// After each step the engine is held against a model, and against promises that
// hold whatever the model says. A sequence that fails is made shorter and shown,
// with the seed that repeats it.
package property

import (
	"testing"

	"seckill/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
