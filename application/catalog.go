package application

import (
	"context"
	"errors"
	"sync"
	"time"

	"seckill/domain"
)

const (
	catalogAge = time.Second // how old a cached activity may be
	catalogMax = 10_000      // entries; unknown ids count too
)

// catalog remembers for a second which activities exist, so that a crowd in
// front of a sale that is not ready does not reach the ledger one by one.
type catalog struct {
	activities domain.Activities
	clock      domain.Clock

	mu      sync.Mutex
	entries map[domain.ActivityID]catalogEntry
}

type catalogEntry struct {
	activity domain.Activity // zero: there is none
	until    time.Time
}

func newCatalog(activities domain.Activities, clock domain.Clock) *catalog {
	return &catalog{activities: activities, clock: clock, entries: map[domain.ActivityID]catalogEntry{}}
}

func (c *catalog) find(ctx context.Context, id domain.ActivityID) (domain.Activity, error) {
	now := c.clock.Now()
	c.mu.Lock()
	entry, ok := c.entries[id]
	c.mu.Unlock()
	if !ok || now.After(entry.until) {
		activity, err := c.activities.Activity(ctx, id)
		if err != nil && !errors.Is(err, domain.ErrNotFound) {
			return domain.Activity{}, err
		}
		entry = catalogEntry{activity: activity, until: now.Add(catalogAge)}
		c.mu.Lock()
		if len(c.entries) >= catalogMax {
			clear(c.entries)
		}
		c.entries[id] = entry
		c.mu.Unlock()
	}
	if entry.activity.ID == 0 {
		return domain.Activity{}, domain.ErrNotFound
	}
	return entry.activity, nil
}

func (c *catalog) knows(ctx context.Context, sale domain.SaleID) (bool, error) {
	activity, err := c.find(ctx, sale.Activity)
	if errors.Is(err, domain.ErrNotFound) {
		return false, nil
	}
	_, ok := activity.SKU(sale.SKU)
	return ok, err
}

// forget drops an activity that this process has just changed.
func (c *catalog) forget(id domain.ActivityID) {
	c.mu.Lock()
	delete(c.entries, id)
	c.mu.Unlock()
}
