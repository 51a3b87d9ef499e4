package domain

import (
	"errors"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)

// covers S3
func TestGate(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		state State
		at    time.Duration // after StartsAt; the window is one hour
		want  Verdict
	}{
		{Open, -ms, NotStarted},
		{Open, 0, Accepted},
		{Open, time.Hour - ms, Accepted},
		{Open, time.Hour, SaleEnded},
		{Ready, 0, NotStarted},
		{Draft, 0, NotStarted},
		{Ready, time.Hour, SaleEnded},
		{Paused, 0, SalePaused},
		{Paused, -ms, SalePaused},
		{Paused, time.Hour, SaleEnded},
		{Closed, 0, SaleEnded},
		{Closed, -ms, SaleEnded},
		{Archived, 0, SaleEnded},
	} {
		gate := Gate{State: c.state, StartsAt: noon, EndsAt: noon.Add(time.Hour)}
		if got := gate.Judge(noon.Add(c.at)); got != c.want {
			t.Errorf("%s at %v: %s, want %s", c.state, c.at, got, c.want)
		}
	}
}

func TestCommands(t *testing.T) {
	possible := map[string]map[State]State{
		"open":    {Ready: Open, Paused: Open, Closed: Open, Open: Open},
		"pause":   {Open: Paused, Paused: Paused},
		"resume":  {Paused: Open, Open: Open},
		"close":   {Ready: Closed, Open: Closed, Paused: Closed, Closed: Closed},
		"archive": {Draft: Archived, Closed: Archived, Archived: Archived},
		"explode": {},
	}
	for command, from := range possible {
		for _, state := range []State{Draft, Ready, Open, Paused, Closed, Archived} {
			next, ok := state.Next(command)
			want, possible := from[state]
			if ok != possible || ok && next != want {
				t.Errorf("%s from %s: %s, %v", command, state, next, ok)
			}
		}
	}
}

func TestActivityBounds(t *testing.T) {
	good := func() Activity {
		return Activity{
			ID: 1, Name: "a", StartsAt: noon, EndsAt: noon.Add(time.Hour), PaymentWindow: time.Minute,
			SKUs: []SKU{{ID: 1, Total: 1, PerUserLimit: 1, Segments: 1}},
		}
	}
	if err := good().Validate(); err != nil {
		t.Fatal(err)
	}
	for field, spoil := range map[string]func(*Activity){
		"activityId":        func(a *Activity) { a.ID = 0 },
		"name":              func(a *Activity) { a.Name = "line\nbreak" },
		"startsAt":          func(a *Activity) { a.StartsAt = time.Time{} },
		"endsAt":            func(a *Activity) { a.EndsAt = a.StartsAt },
		"paymentWindow":     func(a *Activity) { a.PaymentWindow = -time.Second },
		"skus":              func(a *Activity) { a.SKUs = nil },
		"skus.skuId":        func(a *Activity) { a.SKUs = append(a.SKUs, a.SKUs[0]) },
		"skus.total":        func(a *Activity) { a.SKUs[0].Total = MaxInteger + 1 },
		"skus.perUserLimit": func(a *Activity) { a.SKUs[0].PerUserLimit = 0 },
		"skus.price":        func(a *Activity) { a.SKUs[0].Price = -1 },
		"skus.segments":     func(a *Activity) { a.SKUs[0].Segments = 0 },
	} {
		activity := good()
		spoil(&activity)
		var bad *FieldError
		if err := activity.Validate(); !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("spoilt %s: %v", field, err)
		}
	}
}

// covers N1
func TestConservation(t *testing.T) {
	for _, c := range []struct {
		level Level
		want  bool
	}{
		{Level{Total: 6, Available: 1, Held: 2, Sold: 3}, true},
		{Level{Total: 7, Available: 1, Held: 2, Sold: 3}, false},
		{Level{Total: 0, Available: -1, Held: 1}, false},
	} {
		if c.level.Balanced() != c.want {
			t.Errorf("%+v: balanced is %v", c.level, !c.want)
		}
	}
	sound := Tally{Total: 5, Reserved: 2, Pending: 2, Sold: 3, Paid: 3}
	if !sound.Balanced() {
		t.Error("a sound tally is not balanced")
	}
	oversold := Tally{Total: 4, Reserved: 2, Pending: 2, Sold: 3, Paid: 3}
	if oversold.Balanced() {
		t.Error("an oversold tally is balanced")
	}
}
