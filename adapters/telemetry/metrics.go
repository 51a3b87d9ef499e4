// Package telemetry counts what the engine does, for Prometheus.
package telemetry

import (
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"seckill/application"
	"seckill/domain"
)

var _ application.Observer = (*Metrics)(nil)

// Metrics is the set of metrics of one engine. Durations are in seconds.
type Metrics struct {
	registry  *prometheus.Registry
	grabs     *prometheus.CounterVec
	byVerdict [domain.UnknownSale + 1]prometheus.Counter // of grabs: looking one up by name costs more than counting
	grabTime  prometheus.Histogram
	batchSize prometheus.Histogram
	batchTime prometheus.Histogram
	drift     *prometheus.GaugeVec
	notReady  prometheus.Counter
	buried    prometheus.Counter
	lockAsked *prometheus.CounterVec
	lockWait  prometheus.Histogram
	lockHold  prometheus.Histogram
}

// New makes the metrics, in a registry of their own.
func New() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		grabs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "seckill_grabs_total", Help: "Grabs answered by the hot store, by outcome.",
		}, []string{"outcome"}),
		grabTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "seckill_grab_seconds", Help: "Time from a grab's call to its outcome.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
		}),
		batchSize: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "seckill_persist_orders", Help: "Orders in one ledger batch.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 10),
		}),
		batchTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "seckill_persist_seconds", Help: "Time of one ledger batch.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15),
		}),
		drift: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "seckill_drift_units", Help: "Units that hot store, queue and ledger disagreed by when last seen to disagree.",
		}, []string{"sale"}),
		notReady: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "seckill_not_ready_total", Help: "Grabs of a known sale that the hot store does not hold.",
		}),
		buried: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "seckill_dead_letters_total", Help: "Orders that could not be placed.",
		}),
		lockAsked: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "seckill_lock_asked_total", Help: "Attempts to get a lock, by outcome: obtained, busy or failed.",
		}, []string{"outcome"}),
		lockWait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "seckill_lock_wait_seconds", Help: "Time until a lock was obtained or given up.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 14),
		}),
		lockHold: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "seckill_lock_hold_seconds", Help: "Time that a lock was held.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
		}),
	}
	for verdict := domain.Accepted; int(verdict) < len(m.byVerdict); verdict++ {
		m.byVerdict[verdict] = m.grabs.WithLabelValues(verdict.String())
	}
	m.registry.MustRegister(m.grabs, m.grabTime, m.batchSize, m.batchTime, m.drift, m.notReady, m.buried,
		m.lockAsked, m.lockWait, m.lockHold, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler serves the metrics in Prometheus' text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Grabbed implements application.Observer.
func (m *Metrics) Grabbed(verdict domain.Verdict, took time.Duration) {
	if verdict > 0 && int(verdict) < len(m.byVerdict) {
		m.byVerdict[verdict].Inc()
	} else {
		m.grabs.WithLabelValues(verdict.String()).Inc()
	}
	m.grabTime.Observe(took.Seconds())
	if verdict == domain.NotReady {
		m.notReady.Inc()
	}
}

// Placed implements application.Observer.
func (m *Metrics) Placed(orders int, took time.Duration) {
	m.batchSize.Observe(float64(orders))
	m.batchTime.Observe(took.Seconds())
}

// Drifted implements application.Observer.
func (m *Metrics) Drifted(sale domain.SaleID, units int64) {
	m.drift.WithLabelValues(sale.String()).Set(float64(units))
}

// Buried implements application.Observer.
func (m *Metrics) Buried() { m.buried.Inc() }

// LockAsked counts an attempt to get a lock; err is nil when it was obtained.
func (m *Metrics) LockAsked(wait time.Duration, err error) {
	outcome := "obtained"
	switch {
	case errors.Is(err, domain.ErrBusy):
		outcome = "busy"
	case err != nil:
		outcome = "failed"
	}
	m.lockAsked.WithLabelValues(outcome).Inc()
	m.lockWait.Observe(wait.Seconds())
}

// LockHeld counts a lease that has ended.
func (m *Metrics) LockHeld(hold time.Duration) { m.lockHold.Observe(hold.Seconds()) }

// Queue adds gauges of the order queue, read when the metrics are.
func (m *Metrics) Queue(depth func() (domain.Depth, error)) {
	gauge := func(name, help string, value func(domain.Depth) float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			d, err := depth()
			if err != nil {
				return -1
			}
			return value(d)
		}))
	}
	gauge("seckill_queue_orders", "Orders in the queue that are not acknowledged; -1: unknown.",
		func(d domain.Depth) float64 { return float64(d.Orders) })
	gauge("seckill_queue_age_seconds", "Age of the oldest of them; -1: unknown.",
		func(d domain.Depth) float64 { return d.Oldest.Seconds() })
}
