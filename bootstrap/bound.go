package bootstrap

// Bound is where the listeners of HTTP are, for an addr that leaves the port to
// the system ("127.0.0.1:0"). It is filled in once the application has started.
type Bound struct {
	Buyers string // host:port
	Admin  string // host:port
}

func newBound() *Bound { return &Bound{} }
