package memory_test

import (
	"testing"
	"time"

	"seckill/adapters/memory"
	"seckill/domain"
	"seckill/test/conformance"
)

// wallClock is the machine's clock.
type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

func openWorld(partitions int) func(t *testing.T) conformance.StockWorld {
	return func(*testing.T) conformance.StockWorld {
		const reclaim = 30 * time.Millisecond
		stock := memory.NewStock(wallClock{}, memory.WithPartitions(partitions), memory.WithBackoff(reclaim, time.Second))
		return conformance.StockWorld{Stock: stock, Queue: stock.Queue(), Now: wallClock{}.Now, Reclaim: reclaim}
	}
}

var _ domain.Clock = wallClock{}

func TestStock(t *testing.T) {
	conformance.Stock(t, openWorld(1))
	conformance.StockAtEveryMoment(t, openWorld(1))
}

func TestStockWithSeveralPartitions(t *testing.T) { conformance.Stock(t, openWorld(5)) }

func TestQueue(t *testing.T) { conformance.Queue(t, openWorld(1)) }

func TestQueueWithSeveralPartitions(t *testing.T) { conformance.Queue(t, openWorld(5)) }
