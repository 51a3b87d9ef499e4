package domain

import (
	"strings"
	"time"
)

// State is where an activity stands.
type State string

// The states of an activity. Only Open admits grabs.
const (
	Draft    State = "draft"    // configured; the hot store knows nothing of it
	Ready    State = "ready"    // preheated, not opened yet
	Open     State = "open"     // grabs are admitted inside the window
	Paused   State = "paused"   // stopped for a while
	Closed   State = "closed"   // stopped; it may be opened again until it is archived
	Archived State = "archived" // its hot keys are gone
)

// Bounds of an activity.
const (
	MaxSKUs          = 100
	MaxActivityName  = 200 // characters
	DefaultPayWindow = 30 * time.Minute
	MaxPayWindow     = 30 * 24 * time.Hour
	MaxSegments      = 64 // of one sale's stock
)

// Activity is a time window with one or more SKUs.
type Activity struct {
	ID            ActivityID
	Name          string
	State         State
	StartsAt      time.Time // first moment of the window
	EndsAt        time.Time // first moment after the window
	PaymentWindow time.Duration
	SKUs          []SKU
}

// SKU is what one sale of an activity sells.
type SKU struct {
	ID           SKUID
	Name         string
	Price        int64 // minor units
	Total        int64 // units
	PerUserLimit int64 // units per buyer, cumulative
	Segments     int   // partitions that the hot store may split the stock over
}

// Sale is the id of one of the activity's sales.
func (a Activity) Sale(sku SKUID) SaleID { return SaleID{a.ID, sku} }

// SKU finds one of the activity's SKUs.
func (a Activity) SKU(id SKUID) (SKU, bool) {
	for _, s := range a.SKUs {
		if s.ID == id {
			return s, true
		}
	}
	return SKU{}, false
}

// Gate is what the hot store needs to judge whether a grab of the SKU may pass.
func (a Activity) Gate(sku SKU) Gate {
	return Gate{State: a.State, StartsAt: a.StartsAt, EndsAt: a.EndsAt, PerUserLimit: sku.PerUserLimit}
}

// Validate names the first field that is out of bounds.
func (a Activity) Validate() error {
	switch {
	case a.ID < 1 || a.ID > MaxInteger:
		return Invalid("activityId", "must be an integer from 1 to %d", int64(MaxInteger))
	case strings.TrimSpace(a.Name) == "" || len([]rune(a.Name)) > MaxActivityName || strings.ContainsFunc(a.Name, isControl):
		return Invalid("name", "must have 1 to %d printable characters", MaxActivityName)
	case a.StartsAt.IsZero():
		return Invalid("startsAt", "is missing")
	case a.EndsAt.IsZero():
		return Invalid("endsAt", "is missing")
	case a.StartsAt.Year() < 2000 || a.StartsAt.Year() > 9999:
		return Invalid("startsAt", "must lie between the years 2000 and 9999")
	case !a.StartsAt.Before(a.EndsAt):
		return Invalid("endsAt", "must be after startsAt")
	case a.EndsAt.Year() > 9999:
		return Invalid("endsAt", "must lie between the years 2000 and 9999")
	case a.PaymentWindow < time.Millisecond || a.PaymentWindow > MaxPayWindow:
		return Invalid("paymentWindow", "must be from 1ms to %s", MaxPayWindow)
	case len(a.SKUs) == 0 || len(a.SKUs) > MaxSKUs:
		return Invalid("skus", "must hold 1 to %d entries", MaxSKUs)
	}
	seen := map[SKUID]bool{}
	for _, s := range a.SKUs {
		if err := s.validate(); err != nil {
			return err
		}
		if seen[s.ID] {
			return Invalid("skus.skuId", "appears twice")
		}
		seen[s.ID] = true
	}
	return nil
}

func (s SKU) validate() error {
	switch {
	case s.ID < 1 || s.ID > MaxInteger:
		return Invalid("skus.skuId", "must be an integer from 1 to %d", int64(MaxInteger))
	case len([]rune(s.Name)) > MaxActivityName || strings.ContainsFunc(s.Name, isControl):
		return Invalid("skus.name", "must have at most %d printable characters", MaxActivityName)
	case s.Total < 1 || s.Total > MaxInteger:
		return Invalid("skus.total", "must be an integer from 1 to %d", int64(MaxInteger))
	case s.PerUserLimit < 1 || s.PerUserLimit > MaxInteger:
		return Invalid("skus.perUserLimit", "must be an integer from 1 to %d", int64(MaxInteger))
	case s.Price < 0 || s.Price > MaxInteger:
		return Invalid("skus.price", "must be an integer from 0 to %d", int64(MaxInteger))
	case s.Segments < 1 || s.Segments > MaxSegments:
		return Invalid("skus.segments", "must be an integer from 1 to %d", MaxSegments)
	}
	return nil
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// transitions lists, for each operator command, the states it may start from
// and the state it leads to. A command on an activity that is already in its
// target state does nothing.
var transitions = map[string]struct {
	from []State
	to   State
}{
	"open":    {[]State{Ready, Paused, Closed}, Open},
	"pause":   {[]State{Open}, Paused},
	"resume":  {[]State{Paused}, Open},
	"close":   {[]State{Ready, Open, Paused}, Closed},
	"archive": {[]State{Draft, Closed}, Archived},
}

// Next is the state that command leads to; false when the command is not
// possible from here.
func (s State) Next(command string) (State, bool) {
	t := transitions[command]
	if s == t.to {
		return s, true
	}
	for _, from := range t.from {
		if s == from {
			return t.to, true
		}
	}
	return s, false
}
