//go:build !race

package harness

// Race reports whether the test binary was built with the race detector.
const Race = false
