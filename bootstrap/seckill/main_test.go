package main

import (
	"os"
	"testing"

	"go.uber.org/fx"

	"seckill/test/harness"
)

// programEnv makes the test's own executable the program, with a double of that
// name in the engine that drill starts. So a broken engine ends a real process
// with a real exit code, and no build of the program knows about it.
const programEnv = "SECKILL_TEST_DOUBLE"

func TestMain(m *testing.M) {
	name, ok := os.LookupEnv(programEnv)
	if !ok {
		harness.Main(m)
	}
	var engine []fx.Option
	if name != honest {
		engine = append(engine, doubles[name])
	}
	os.Exit(execute(command(engine...)))
}
