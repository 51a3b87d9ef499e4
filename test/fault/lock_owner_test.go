package fault

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/adapters/redislock"
	"seckill/adapters/sqlstore"
	"seckill/domain"
	"seckill/test/harness"
)

const (
	lockKey = "1001:2001"
	lockTTL = 2 * time.Second
)

var lockSale = domain.SaleID{Activity: 1001, SKU: 2001}

// lockPlace is where the owners of a test meet.
type lockPlace struct {
	Redis    string // host:port
	Prefix   string
	Database string // URL
}

// newLockPlace makes a ledger with one sale.
func newLockPlace(t *testing.T, server *harness.RedisServer, database *harness.SQLServer) lockPlace {
	t.Helper()
	place := lockPlace{Redis: server.Addr, Prefix: rand.Text() + ":", Database: database.NewDatabase(t)}
	if err := sqlstore.Migrate(t.Context(), sqlstore.Config{URL: place.Database}, nil); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	err := place.ledger(t).Save(t.Context(), domain.Activity{
		ID: lockSale.Activity, Name: "frozen",
		StartsAt: now, EndsAt: now.Add(time.Hour), PaymentWindow: domain.DefaultPayWindow,
		SKUs: []domain.SKU{{ID: lockSale.SKU, Name: "frozen", Total: 100, PerUserLimit: 1, Segments: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return place
}

func (p lockPlace) client() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: p.Redis, ContextTimeoutEnabled: true, ReadTimeout: lockPatience})
}

func (p lockPlace) lock(client *redis.Client, fences domain.Fences) *redislock.Lock {
	return redislock.New(redislock.Config{Client: client, Prefix: p.Prefix, Fences: fences})
}

func (p lockPlace) ledger(t *testing.T) *sqlstore.Store {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: p.Database, MaxOpen: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// awaitLeaseEnd waits until Redis has no lease of anybody.
func (p lockPlace) awaitLeaseEnd(t *testing.T, client *redis.Client) {
	t.Helper()
	lockEventually(t, "the end of the lease", func() bool {
		keys, err := client.Keys(t.Context(), p.Prefix+"lock:*").Result()
		return err == nil && len(keys) == 0
	})
}

// commands is the Redis list through which a test tells an owner what to do.
func (p lockPlace) commands() string { return p.Prefix + "commands" }

// What a test tells an owner.
const (
	lockWrite = "write" // once, into the ledger
	lockEnd   = "end"   // the work
)

// lockRole is how an owner works. All but the restless one do as they are told.
type lockRole string

const (
	lockStubborn lockRole = "stubborn" // pays no heed to its context
	lockUnfenced lockRole = "unfenced" // nor does it pass on its fence
	lockObedient lockRole = "obedient" // stops with its context
	lockRestless lockRole = "restless" // stubborn, writes until it is fenced, then asks for the lock again
)

// lockEntry is what an owner reports of a write, or of its end.
type lockEntry struct {
	Outcome lockOutcome
	Epoch   int64 // what the write made of it
	Fence   int64
	Error   string
}

type lockOutcome string

const (
	lockWritten lockOutcome = "written"
	lockFenced  lockOutcome = "fenced"
	lockFailed  lockOutcome = "failed"
	lockLost    lockOutcome = "lease lost" // Do ended with it
	lockKept    lockOutcome = "lease kept" // Do ended without error
)

// lockAttempt writes once into the ledger: it raises the epoch of the sale, so
// the ledger itself numbers the writes that it accepts.
func lockAttempt(ctx context.Context, ledger domain.Activities, fence domain.Fence) lockEntry {
	epoch, err := ledger.BeginEpoch(ctx, lockSale, fence)
	switch {
	case err == nil:
		return lockEntry{Outcome: lockWritten, Epoch: epoch, Fence: fence.Number}
	case errors.Is(err, domain.ErrFenced):
		return lockEntry{Outcome: lockFenced, Fence: fence.Number}
	}
	return lockEntry{Outcome: lockFailed, Fence: fence.Number, Error: err.Error()}
}

// lockOwner is an owner of the lock in another process.
type lockOwner struct {
	process *harness.Process
	place   lockPlace
	client  *redis.Client
}

const (
	lockOwnerVariable = "SECKILL_TEST_LOCK_OWNER"
	lockReportPrefix  = "lock owner: "
)

// lockOrders is what the other process gets to know.
type lockOrders struct {
	Role  lockRole
	Place lockPlace
}

// startLockOwner runs TestLockOwner in another process.
func startLockOwner(t *testing.T, place lockPlace, role lockRole, client *redis.Client) *lockOwner {
	t.Helper()
	orders, err := json.Marshal(lockOrders{role, place})
	if err != nil {
		t.Fatal(err)
	}
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	process := harness.Start(t, path,
		[]string{"-test.run=^TestLockOwner$", "-test.timeout=10m"},
		[]string{lockOwnerVariable + "=" + string(orders)})
	return &lockOwner{process, place, client}
}

func (o *lockOwner) tell(t *testing.T, command string) {
	t.Helper()
	if err := o.client.RPush(t.Context(), o.place.commands(), command).Err(); err != nil {
		t.Fatal(err)
	}
}

// report is what the owner has reported so far.
func (o *lockOwner) report(t *testing.T) []lockEntry {
	t.Helper()
	var entries []lockEntry
	for line := range strings.Lines(o.process.Stdout.String()) {
		text, ours := strings.CutPrefix(line, lockReportPrefix)
		if !ours || !strings.HasSuffix(text, "\n") {
			continue
		}
		var entry lockEntry
		if err := json.Unmarshal([]byte(text), &entry); err != nil {
			t.Fatalf("report %q: %v", text, err)
		}
		entries = append(entries, entry)
	}
	return entries
}

// await returns the report once it has that many entries.
func (o *lockOwner) await(t *testing.T, entries int) (report []lockEntry) {
	t.Helper()
	lockEventually(t, fmt.Sprintf("report %d of the owner", entries), func() bool {
		report = o.report(t)
		return len(report) >= entries
	})
	return report
}

// written is what the ledger has accepted from the owner, as it reports.
func (o *lockOwner) written(t *testing.T) (written []lockEntry) {
	t.Helper()
	for _, entry := range o.report(t) {
		if entry.Outcome == lockWritten {
			written = append(written, entry)
		}
	}
	return written
}

// awaitWrites waits until the ledger has accepted more writes of the owner.
func (o *lockOwner) awaitWrites(t *testing.T, more int) {
	t.Helper()
	want := len(o.written(t)) + more
	lockEventually(t, fmt.Sprintf("%d more writes of the owner", more), func() bool { return len(o.written(t)) >= want })
}

func lockEventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for start := time.Now(); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Since(start) > lockPatience {
			t.Fatalf("waited %v for %s", lockPatience, what)
		}
	}
}

// TestLockOwner is no test: it is the other process of TestLock.
func TestLockOwner(t *testing.T) {
	text := os.Getenv(lockOwnerVariable)
	if text == "" {
		return
	}
	var orders lockOrders
	if err := json.Unmarshal([]byte(text), &orders); err != nil {
		t.Fatal(err)
	}
	client, ledger := orders.Place.client(), orders.Place.ledger(t)
	lock := orders.Place.lock(client, ledger)
	// Longer than any test that is its parent; that one ends this process.
	for start := time.Now(); time.Since(start) < 5*time.Minute; {
		err := lock.Do(t.Context(), lockKey, lockTTL, func(ctx context.Context, lease domain.Lease) error {
			if orders.Role == lockRestless {
				return lockWriteOn(ledger, lease.Fence)
			}
			return lockObey(ctx, client, ledger, orders, lease.Fence)
		})
		if orders.Role == lockRestless {
			continue
		}
		switch {
		case err == nil:
			lockReport(lockEntry{Outcome: lockKept})
		case errors.Is(err, domain.ErrLeaseLost):
			lockReport(lockEntry{Outcome: lockLost})
		default:
			lockReport(lockEntry{Outcome: lockFailed, Error: err.Error()})
		}
		return
	}
}

// lockObey does what it is told.
func lockObey(ctx context.Context, client *redis.Client, ledger domain.Activities, orders lockOrders, fence domain.Fence) error {
	if orders.Role == lockUnfenced {
		fence = domain.Fence{}
	}
	for {
		if orders.Role == lockObedient && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		// The background is what makes an owner stubborn.
		command, err := client.BLPop(context.Background(), time.Second, orders.Place.commands()).Result()
		switch {
		case errors.Is(err, redis.Nil):
		case err != nil:
			return err
		case command[1] == lockWrite:
			lockReport(lockAttempt(context.Background(), ledger, fence))
		default:
			return nil
		}
	}
}

// lockWriteOn writes until a write is not accepted.
func lockWriteOn(ledger domain.Activities, fence domain.Fence) error {
	for {
		entry := lockAttempt(context.Background(), ledger, fence)
		lockReport(entry)
		if entry.Outcome != lockWritten {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
}

func lockReport(entry lockEntry) {
	text, err := json.Marshal(entry)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s%s\n", lockReportPrefix, text)
}
