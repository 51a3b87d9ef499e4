package sqlstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"seckill/domain"
	"seckill/test/harness"
)

// aSale makes a sale and n orders of it.
func aSale(t *testing.T, s *Store, n int) []domain.Order {
	t.Helper()
	a := domain.Activity{
		ID: 1001, Name: "a", StartsAt: time.Unix(1, 0), EndsAt: time.Unix(2, 0), PaymentWindow: time.Hour,
		SKUs: []domain.SKU{{ID: 2001, Name: "s", Total: 1000, PerUserLimit: 1, Segments: 1}},
	}
	if err := s.Save(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	orders := make([]domain.Order, n)
	for i := range orders {
		orders[i] = domain.Order{
			ID: domain.NewOrderID(a.Sale(2001), fmt.Sprintf("x%06d", i)), Sale: a.Sale(2001),
			Buyer: domain.BuyerID(fmt.Sprint("b", i)), Request: "r", Quantity: 1,
		}
	}
	return orders
}

// covers Q5: the connection breaks at the commit, and nobody knows whether it
// took place. Both answers to that are tried.
func TestUnknownCommitIsRunAgain(t *testing.T) {
	for _, name := range []string{"mariadb", "postgres"} {
		for _, committed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/committed=%v", name, committed), func(t *testing.T) {
				direct := databases[name](t)
				base := migrated(t, Config{URL: direct})
				orders := aSale(t, base, 40)
				between := newBreaker(t, direct)
				s, err := Open(t.Context(), Config{URL: between.url})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()

				between.arm(committed)
				placed, err := s.Place(t.Context(), orders)
				if err != nil {
					t.Fatal(err)
				}
				between.mustHaveBroken(t)
				for _, p := range placed {
					if p.Order.Status != domain.Pending || p.Fresh == committed {
						t.Fatalf("order %s: %s %s, fresh %v", p.Order.ID, p.Order.Status, p.Order.Reason, p.Fresh)
					}
				}

				between.arm(committed)
				e, err := s.Pay(t.Context(), orders[0].ID, "p")
				if err != nil || e.Order.Status != domain.Paid {
					t.Fatalf("pay: %+v %v", e, err)
				}
				between.mustHaveBroken(t)

				a := domain.Activity{ID: 1002, Name: "b", StartsAt: time.Unix(1, 0), EndsAt: time.Unix(2, 0), PaymentWindow: time.Hour}
				between.arm(committed)
				if err := s.Save(t.Context(), a); err != nil {
					t.Fatalf("create: %v", err)
				}
				between.mustHaveBroken(t)
				if err := s.Save(t.Context(), a); !errors.Is(err, domain.ErrConflict) {
					t.Errorf("created twice: %v", err)
				}

				account, err := base.Tally(t.Context(), orders[0].Sale)
				if err != nil || !account.Balanced() || account.Pending != 39 || account.Paid != 1 {
					t.Errorf("account %+v %v", account, err)
				}
			})
		}
	}
}

// breaker stands between a store and its server and breaks the connection at
// the next COMMIT: before the server hears it, or before the client hears back.
type breaker struct {
	url    string
	target string
	mode   atomic.Int32 // 0 passes everything
}

const (
	breakBefore = 1
	breakAfter  = 2
)

func newBreaker(t *testing.T, direct string) *breaker {
	t.Helper()
	parsed, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	b := &breaker{target: parsed.Host}
	parsed.Host = listener.Addr().String()
	b.url = parsed.String()
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go b.serve(client)
		}
	}()
	return b
}

func (b *breaker) arm(committed bool) {
	if committed {
		b.mode.Store(breakAfter)
	} else {
		b.mode.Store(breakBefore)
	}
}

func (b *breaker) mustHaveBroken(t *testing.T) {
	t.Helper()
	if b.mode.Load() != 0 {
		t.Fatal("no commit came by")
	}
}

func (b *breaker) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", b.target)
	if err != nil {
		return
	}
	defer server.Close()
	var deaf atomic.Bool
	answered := make(chan struct{}, 1)
	go func() {
		defer client.Close()
		buffer := make([]byte, 64<<10)
		for {
			n, err := server.Read(buffer)
			if deaf.Load() {
				answered <- struct{}{}
				return
			}
			if err != nil {
				return
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		if mode := b.mode.Load(); mode != 0 && isCommit(buffer[:n]) {
			b.mode.Store(0)
			if mode == breakAfter {
				deaf.Store(true)
				_, _ = server.Write(buffer[:n])
				<-answered
			}
			return
		}
		if _, err := io.Copy(server, bytes.NewReader(buffer[:n])); err != nil {
			return
		}
	}
}

// isCommit looks for the statement, and not for READ COMMITTED.
func isCommit(packet []byte) bool {
	packet = bytes.ToUpper(packet)
	return bytes.Contains(packet, []byte("COMMIT")) && !bytes.Contains(packet, []byte("COMMITTED"))
}

// covers N6: a database that is gone is an error of the call, in bounded time,
// and no rejection; and the store works again without a restart.
func TestDatabaseGoneAndBack(t *testing.T) {
	for name, start := range map[string]func(testing.TB) *harness.SQLServer{"mariadb": harness.MariaDB, "postgres": harness.Postgres} {
		t.Run(name, func(t *testing.T) {
			server := start(t)
			s := migrated(t, Config{URL: server.URL})
			orders := aSale(t, s, 10)
			if _, err := s.Place(t.Context(), orders[:5]); err != nil {
				t.Fatal(err)
			}
			server.Kill()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			begin := time.Now()
			if _, err := s.Place(ctx, orders); !errors.Is(err, domain.ErrUnavailable) {
				t.Errorf("place: %v", err)
			}
			if _, err := s.Find(ctx, orders[0].ID); !errors.Is(err, domain.ErrUnavailable) {
				t.Errorf("find: %v", err)
			}
			if err := s.Ping(ctx); !errors.Is(err, domain.ErrUnavailable) {
				t.Errorf("ping: %v", err)
			}
			if took := time.Since(begin); took > 6*time.Second {
				t.Errorf("took %v", took)
			}
			server.Restart()
			placed, err := s.Place(t.Context(), orders)
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range placed {
				if p.Order.Status != domain.Pending || p.Fresh != (i >= 5) {
					t.Errorf("order %d: %s, fresh %v", i, p.Order.Status, p.Fresh)
				}
			}
		})
	}
}

// A database that hangs ends with the context, whatever it was doing.
func TestHangingDatabaseEndsWithTheContext(t *testing.T) {
	server := harness.MariaDB(t)
	s := migrated(t, Config{URL: server.URL})
	orders := aSale(t, s, 3)
	server.Pause()
	defer server.Resume()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err := s.Place(ctx, orders)
	if !errors.Is(err, domain.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v", err)
	}
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("took %v", took)
	}
}

// Two processes on one SQLite file: the second waits for the first, and fails
// with the context when that takes too long.
func TestSQLiteBusyFile(t *testing.T) {
	address := databases["sqlite"](t)
	first, second := migrated(t, Config{URL: address}), migrated(t, Config{URL: address})
	orders := aSale(t, first, 3)
	tx, err := first.pools[0].Begin()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := second.Place(ctx, orders); !errors.Is(err, domain.ErrUnavailable) {
		t.Errorf("error is %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	placed, err := second.Place(t.Context(), orders)
	if err != nil || placed[2].Order.Status != domain.Pending {
		t.Errorf("%+v %v", placed, err)
	}
	if found, err := first.Find(t.Context(), orders[2].ID); err != nil || len(found) != 1 {
		t.Errorf("the first does not see it: %v %v", found, err)
	}
}
