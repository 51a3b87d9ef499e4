package bench

import (
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seckill/adapters/memory"
	"seckill/adapters/sqlstore"
	"seckill/adapters/system"
	"seckill/domain"
)

// oversells says "accepted" to the first claim that is sold out.
type oversells struct {
	domain.Stock
	done atomic.Bool
}

func (s *oversells) Reserve(ctx context.Context, sale domain.SaleID, claims []domain.Claim) ([]domain.Outcome, error) {
	outcomes, err := s.Stock.Reserve(ctx, sale, claims)
	if err == nil && outcomes[0].Verdict == domain.SoldOut && s.done.CompareAndSwap(false, true) {
		outcomes[0] = domain.Outcome{Verdict: domain.Accepted, Order: claims[0].Order}
	}
	return outcomes, err
}

// undersells has one unit less than it should.
type undersells struct{ domain.Stock }

func (s undersells) Preheat(ctx context.Context, load domain.Load) error {
	load.Total--
	return s.Stock.Preheat(ctx, load)
}

// hasty tells the first callers that it is sold out, as many as there are.
type hasty struct {
	domain.Stock
	calls atomic.Int64
}

func (s *hasty) Reserve(ctx context.Context, sale domain.SaleID, claims []domain.Claim) ([]domain.Outcome, error) {
	if s.calls.Add(1) <= 16 {
		return []domain.Outcome{{Verdict: domain.SoldOut}}, nil
	}
	return s.Stock.Reserve(ctx, sale, claims)
}

// silent never answers.
type silent struct{ domain.Stock }

func (s silent) Reserve(ctx context.Context, _ domain.SaleID, _ []domain.Claim) ([]domain.Outcome, error) {
	<-ctx.Done()
	return nil, domain.ErrUnavailable
}

// miscounts leaves the account unbalanced.
type miscounts struct{ domain.Stock }

func (s miscounts) Audit(ctx context.Context, sale domain.SaleID) (domain.Audit, error) {
	audit, err := s.Stock.Audit(ctx, sale)
	audit.HeldUnits++
	return audit, err
}

// TestCheckTells: strategies that sell wrongly are found out; honest ones are not.
// covers O3
func TestCheckTells(t *testing.T) {
	ledger := sqlstore.Config{URL: "sqlite://" + filepath.ToSlash(filepath.Join(t.TempDir(), "ledger.db"))}
	if err := sqlstore.Migrate(t.Context(), ledger, t.Logf); err != nil {
		t.Fatal(err)
	}
	r, err := open(t.Context(), Config{Ledger: ledger, First: 1, Callers: 16, Stock: 40, Grabs: 1000, Budget: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	for name, c := range map[string]struct {
		stock    func(domain.Stock) domain.Stock
		finding  string // "": none
		accepted int64
		oversold int64
		stranded int64
	}{
		"honest":     {func(s domain.Stock) domain.Stock { return s }, "", 40, 0, 0},
		"oversells":  {func(s domain.Stock) domain.Stock { return &oversells{Stock: s} }, "oversold by 1: 41 grabs accepted", 41, 1, 0},
		"undersells": {func(s domain.Stock) domain.Stock { return undersells{s} }, "only 39 of 40 units", 39, 0, 0},
		"hasty":      {func(s domain.Stock) domain.Stock { return &hasty{Stock: s} }, "", 40, 0, 40},
		"miscounts":  {func(s domain.Stock) domain.Stock { return miscounts{s} }, "not balanced", 40, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := *r // next counts sales
			s := strategy{name: name, mode: single, open: func(*rig, string) (domain.Stock, error) {
				return c.stock(memory.NewStock(system.Clock{})), nil
			}}
			entry := Entry{PerSecond: 1e6}
			findings, err := own.check(t.Context(), s, &entry)
			if err != nil {
				t.Fatal(err)
			}
			if said := strings.Join(findings, "\n"); said == "" != (c.finding == "") || !strings.Contains(said, c.finding) {
				t.Errorf("says %q, want %q", said, c.finding)
			}
			if entry.Stock != 40 || entry.Accepted != c.accepted || entry.Oversold != c.oversold || entry.FalseSoldOut != c.stranded {
				t.Errorf("%+v", entry)
			}
		})
	}
	t.Run("silent", func(t *testing.T) {
		s := strategy{name: "silent", open: func(*rig, string) (domain.Stock, error) { return silent{memory.NewStock(system.Clock{})}, nil }}
		patient := *r // on a busy machine, callers may begin late
		patient.Budget = 500 * time.Millisecond
		run, err := patient.race(t.Context(), s)
		if err != nil || !strings.Contains(run.fault, "no grab won") || run.Errors != 16 || run.PerSecond != 0 {
			t.Errorf("%+v %v", run, err)
		}
	})
	t.Run("median", func(t *testing.T) {
		got := median([]timed{{Entry: Entry{PerSecond: 30, Errors: 1}}, {Entry: Entry{PerSecond: 10, Errors: 2}}, {Entry: Entry{PerSecond: 20, Errors: 4}}})
		if got.PerSecond != 20 || got.Errors != 7 || middle([]float64{3, 1, 2, 4}) != 2 {
			t.Errorf("%+v", got)
		}
	})
}
