package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"sync"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// Proxy stands between a client and a server on this machine, and does harm to
// what goes through it.
type Proxy struct {
	Addr  string // host:port for the client
	t     testing.TB
	proxy *toxiproxy.Proxy

	mu     sync.Mutex
	toxics int
}

// NewProxy starts a proxy in front of a server; it ends with the test.
func NewProxy(t testing.TB, server string) *Proxy {
	t.Helper()
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	p := &Proxy{t: t, proxy: toxiproxy.NewProxy(api, "proxy", FreeAddr(t), server)}
	if err := p.proxy.Start(); err != nil {
		t.Fatal(err)
	}
	p.Addr = p.proxy.Listen
	t.Cleanup(p.proxy.Stop)
	return p
}

// ProxyURL starts a proxy in front of the server of a database's URL, and
// returns the URL that leads through it.
func ProxyURL(t testing.TB, databaseURL string) (*Proxy, string) {
	t.Helper()
	address, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	p := NewProxy(t, address.Host)
	address.Host = p.Addr
	return p, address.String()
}

// Harm adds a toxic of a type, with its attributes, to one direction ("upstream"
// is to the server, "downstream" from it). What it returns takes it away again.
//
// Useful ones: latency {latency, jitter: ms}; timeout {timeout: ms until the
// connection is closed, 0 never}, which swallows everything; reset_peer {timeout:
// ms}; bandwidth {rate: kB/s}; limit_data {bytes}.
func (p *Proxy) Harm(kind, direction string, attributes map[string]int64) (heal func()) {
	p.t.Helper()
	p.mu.Lock()
	p.toxics++
	name := fmt.Sprint(kind, p.toxics)
	p.mu.Unlock()
	text, err := json.Marshal(map[string]any{
		"name": name, "type": kind, "stream": direction, "toxicity": 1, "attributes": attributes,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.proxy.Toxics.AddToxicJson(bytes.NewReader(text)); err != nil {
		p.t.Fatal(err)
	}
	return func() {
		if err := p.proxy.Toxics.RemoveToxic(p.t.Context(), name); err != nil {
			p.t.Error(err)
		}
	}
}

// Cut closes all connections and refuses new ones, until Mend.
func (p *Proxy) Cut() { p.proxy.Stop() }

// Redirect sends new connections to another server, and closes those that there
// are.
func (p *Proxy) Redirect(server string) {
	p.t.Helper()
	if err := p.proxy.Update(&toxiproxy.Proxy{Listen: p.Addr, Upstream: server, Enabled: true}); err != nil {
		p.t.Fatal(err)
	}
}

// Mend lets connections through again.
func (p *Proxy) Mend() {
	p.t.Helper()
	if err := p.proxy.Start(); err != nil {
		p.t.Fatal(err)
	}
}
