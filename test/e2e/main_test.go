// Package e2e drives the real program from outside, over HTTP and its command
// line, on every pair of hot store and ledger.
package e2e

import (
	"testing"

	"seckill/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
