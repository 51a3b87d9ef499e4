package application

import (
	"context"
	"errors"
	"sync"
	"time"

	"seckill/domain"
)

const (
	catalogAge  = time.Second // how old a cached activity may be
	catalogMax  = 10_000      // entries; unknown ids count too
	catalogWait = time.Second // for the ledger; a failure is remembered as long
)

// catalog remembers activities for a second, unknown ones too, and asks the
// ledger once for all who ask at the same moment. So a crowd in front of a sale
// that is not ready costs the ledger one question a second.
type catalog struct {
	activities domain.Activities
	clock      domain.Clock

	mu      sync.Mutex
	entries map[domain.ActivityID]*catalogEntry
}

type catalogEntry struct {
	mu       sync.Mutex // held while the ledger is asked
	activity domain.Activity
	err      error
	until    time.Time
}

func newCatalog(activities domain.Activities, clock domain.Clock) *catalog {
	return &catalog{activities: activities, clock: clock, entries: map[domain.ActivityID]*catalogEntry{}}
}

// find returns an activity; fresh says that this call has asked the ledger.
func (c *catalog) find(ctx context.Context, id domain.ActivityID) (activity domain.Activity, fresh bool, err error) {
	entry := c.entry(id)
	entry.mu.Lock()
	defer entry.mu.Unlock()
	if now := c.clock.Now(); now.After(entry.until) {
		ctx, cancel := context.WithTimeout(ctx, catalogWait)
		defer cancel()
		age := catalogAge
		entry.activity, entry.err = c.activities.Activity(ctx, id)
		if entry.err != nil && !errors.Is(entry.err, domain.ErrNotFound) {
			age = catalogWait // so that those who waited share the failure
		}
		entry.until, fresh = c.clock.Now().Add(age), true
	}
	return entry.activity, fresh, entry.err
}

func (c *catalog) entry(id domain.ActivityID) *catalogEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := c.entries[id]
	if entry == nil {
		if len(c.entries) >= catalogMax {
			clear(c.entries)
		}
		entry = &catalogEntry{}
		c.entries[id] = entry
	}
	return entry
}

// forget drops an activity that this process has just changed.
func (c *catalog) forget(id domain.ActivityID) {
	c.mu.Lock()
	delete(c.entries, id)
	c.mu.Unlock()
}
