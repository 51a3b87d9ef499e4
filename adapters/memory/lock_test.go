package memory_test

import (
	"testing"
	"time"

	"seckill/adapters/memory"
	"seckill/domain"
	"seckill/test/conformance"
)

// covers L1 L2 L3 L5 L6 L7
func TestLock(t *testing.T) {
	conformance.Lock(t, func(t *testing.T) conformance.LockWorld {
		const wait = 200 * time.Millisecond
		fences := conformance.NewLockFences()
		return conformance.LockWorld{
			Nodes:  []domain.Lock{memory.NewLock(fences, wait)},
			Wait:   wait,
			Fences: fences,
		}
	})
}
