package load

// Watcher hears how far a long piece of work is. Its methods may be called from
// many goroutines.
type Watcher interface {
	// Stage begins a stage of so many steps; 0: nobody knows.
	Stage(name string, steps int64)
	// Step tells how many steps of the stage are done.
	Step(done int64)
}

// Unwatched is a Watcher that nobody listens to.
type Unwatched struct{}

// Stage implements Watcher.
func (Unwatched) Stage(string, int64) {}

// Step implements Watcher.
func (Unwatched) Step(int64) {}
