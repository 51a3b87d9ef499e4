package application

import (
	"log/slog"
	"sync/atomic"
	"time"

	"seckill/domain"
)

// Accept says when a grab is answered.
type Accept string

// The accept modes.
const (
	// AcceptQueued answers as soon as the hold and its queue entry exist. It
	// is for durable queues.
	AcceptQueued Accept = "queued"
	// AcceptCommitted answers when the ledger has committed the order, so that
	// an accepted order survives the loss of the hot store.
	AcceptCommitted Accept = "committed"
)

// Ports are the adapters that the engine works with.
type Ports struct {
	Stock       domain.Stock
	Queue       domain.OrderQueue
	Orders      domain.Orders
	Outbox      domain.Outbox
	DeadLetters domain.DeadLetters
	Activities  domain.Activities
	Lock        domain.Lock
	Clock       domain.Clock
	IDs         domain.IDs
	// Continuity is nil for a hot store that cannot lose anything by itself.
	Continuity domain.Continuity
}

// Config is what can be set about the use cases. The zero value of a field
// means its default.
type Config struct {
	// Accept is AcceptQueued by default.
	Accept Accept
	// AcceptWait bounds how long a grab waits for the commit with
	// AcceptCommitted. Default 5 s. After it the outcome is unknown.
	AcceptWait time.Duration
	// LockTTL is the lease of preheat, expiry, reconcile and relay. Default
	// 3 s; a watchdog renews it for as long as the work runs.
	LockTTL time.Duration
	// LockPerActivity makes one lock key per activity instead of per sale.
	LockPerActivity bool
	// MaxAttempts is from which delivery on an order that alone cannot be
	// placed becomes a dead letter. Default 5. An outage of the ledger buries
	// nothing, however long it is.
	MaxAttempts int
	// PlaceAtOnce bounds the ledger transactions of one Persist that run at a
	// time. Default DefaultPlaceAtOnce.
	PlaceAtOnce int
	// MaxSegments is how many segments the hot store may split a sale into.
	// Default domain.MaxSegments.
	MaxSegments int
	// DrainWait bounds how long a rebuild of a hot store that may have lost data
	// waits for what its queue still has; the rest is rejected. Default 15 s.
	DrainWait time.Duration
	// Grace is how long reconcile lets a difference between the stores stand
	// before it counts as drift. Default 2 s.
	Grace time.Duration
	// Log receives everything the engine has to say. Default: slog.Default().
	Log *slog.Logger
	// Observer counts what happens. Default: nobody counts.
	Observer Observer
}

// Observer counts what the engine does; a metrics adapter implements it. Its
// methods must not block.
type Observer interface {
	// Grabbed is called once per grab that the hot store answered.
	Grabbed(verdict domain.Verdict, took time.Duration)
	// Placed is called once per ledger batch.
	Placed(orders int, took time.Duration)
	// Drifted is called after each comparison of a sale's stores, with the
	// units that they disagree by: 0 when all is well, at least 1 when not.
	Drifted(sale domain.SaleID, units int64)
	// Buried is called when an order is given up; again if its delivery comes
	// back before it is acknowledged.
	Buried()
}

type unobserved struct{}

func (unobserved) Grabbed(domain.Verdict, time.Duration) {}
func (unobserved) Placed(int, time.Duration)             {}
func (unobserved) Drifted(domain.SaleID, int64)          {}
func (unobserved) Buried()                               {}

// Engine is the flash-sale engine: all use cases. Its methods may be called
// from many goroutines.
type Engine struct {
	Ports
	cfg     Config
	log     *slog.Logger
	watch   Observer
	catalog *catalog
	events  *events
	waits   *waits
	soldOut *soldOut
	doubts  atomic.Pointer[domain.Doubts] // nil: the hot store is trusted
}

// New puts an engine together. It starts nothing: the workers drive it.
func New(ports Ports, cfg Config) *Engine {
	if cfg.Accept == "" {
		cfg.Accept = AcceptQueued
	}
	if cfg.AcceptWait == 0 {
		cfg.AcceptWait = 5 * time.Second
	}
	if cfg.LockTTL == 0 {
		cfg.LockTTL = 3 * time.Second
	}
	if cfg.MaxAttempts == 0 {
		cfg.MaxAttempts = 5
	}
	if cfg.PlaceAtOnce == 0 {
		cfg.PlaceAtOnce = DefaultPlaceAtOnce
	}
	if cfg.MaxSegments == 0 {
		cfg.MaxSegments = domain.MaxSegments
	}
	if cfg.DrainWait == 0 {
		cfg.DrainWait = 15 * time.Second
	}
	if cfg.Grace == 0 {
		cfg.Grace = 2 * time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Observer == nil {
		cfg.Observer = unobserved{}
	}
	return &Engine{
		Ports:   ports,
		cfg:     cfg,
		log:     cfg.Log,
		watch:   cfg.Observer,
		catalog: newCatalog(ports.Activities, ports.Clock),
		events:  &events{},
		waits:   newWaits(ports.Orders, cfg.Log),
		soldOut: &soldOut{},
	}
}

// lockKey is the key that guards the work on a sale.
func (e *Engine) lockKey(sale domain.SaleID) string {
	if e.cfg.LockPerActivity {
		return "activity:" + domain.SaleID{Activity: sale.Activity}.String()
	}
	return "sale:" + sale.String()
}
