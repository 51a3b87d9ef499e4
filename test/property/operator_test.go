package property

import (
	"errors"
	"fmt"

	"pgregory.net/rapid"

	"seckill/domain"
)

func (m *machine) command(t *rapid.T) {
	m.give(t, rapid.SampledFrom([]string{"pause", "resume", "close"}).Draw(t, "command"))
}

func (m *machine) open(t *rapid.T) { m.give(t, "open") }

func (m *machine) give(t *rapid.T, command string) {
	next, possible := m.state.Next(command)
	_, err := m.SetState(ctx, m.id, command)
	if !possible {
		if !errors.Is(err, domain.ErrState) {
			t.Fatalf("%s from %s: %v", command, m.state, err)
		}
		return
	}
	m.ok(t, err)
	m.state = next
}

// preheat is refused while anything is held or queued; else it loads what the
// ledger has, and adds nothing.
func (m *machine) preheat(t *rapid.T) {
	_, err := m.Preheat(ctx, m.id)
	if m.busy() {
		if m.reach("preheat refused"); !errors.Is(err, domain.ErrHasHolds) {
			t.Fatalf("preheat of a busy activity: %v", err)
		}
		return
	}
	m.reach("preheated")
	m.ok(t, err)
	if m.state == domain.Closed {
		m.state = domain.Ready
	}
	for _, sale := range m.sales {
		m.reload(sale)
	}
}

// edit adds units or withdraws free ones, and sometimes is told twice.
func (m *machine) edit(t *rapid.T) {
	sale := m.sales[rapid.IntRange(0, len(m.sales)-1).Draw(t, "sale")]
	delta := rapid.SampledFrom([]int64{-3, -2, -1, 1, 2}).Draw(t, "delta")
	times := rapid.IntRange(1, 2).Draw(t, "times")
	m.edits++
	edit := domain.StockEdit{Sale: sale.id, Delta: delta, Reason: "property", Key: domain.RequestID(fmt.Sprint("e", m.edits))}
	most := max(0, min(sale.total-1, m.level(sale).Available))
	for range times {
		made, err := m.EditStock(ctx, edit)
		if -delta > most {
			var refused *domain.WithdrawalError
			if m.reach("withdrawal refused"); !errors.As(err, &refused) || refused.Most != most {
				t.Fatalf("edit by %d: %v, want at most %d", delta, err, most)
			}
			continue
		}
		if err != nil || made.Total != sale.total+delta || made.Delta != delta {
			t.Fatalf("edit by %d of %d: %+v, %v", delta, sale.total, made, err)
		}
		m.reach("edited")
	}
	if -delta <= most {
		sale.total += delta
	}
}

// reconcile finds nothing to repair, whatever is on its way.
func (m *machine) reconcile(t *rapid.T) {
	report, err := m.Reconcile(ctx, m.id, true)
	m.ok(t, err)
	for _, sale := range report.Sales {
		if !sale.Balanced || len(sale.Repairs) > 0 {
			t.Fatalf("reconcile: %+v", sale)
		}
	}
}
