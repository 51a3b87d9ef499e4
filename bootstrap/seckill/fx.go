package main

import (
	"go.uber.org/dig"
	"go.uber.org/fx/fxevent"
)

// quiet drops the story of the wiring: what fails comes back as an error.
type quiet struct{}

func (quiet) LogEvent(fxevent.Event) {}

// plain takes the wiring's words off an error, down to what a constructor said.
func plain(err error) error { return dig.RootCause(err) }
