package fault

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"seckill/domain"
	"seckill/test/harness"
)

// lockPatience bounds everything that has to happen sooner or later.
const lockPatience = 60 * time.Second

// The lock on a real Redis and the ledger in a real database, with an owner in
// another process that is frozen (SIGSTOP) past its lease. covers L1 L4 L5
func TestLock(t *testing.T) {
	for _, ledger := range []struct {
		name  string
		start func(testing.TB) *harness.SQLServer
	}{
		{"mariadb", harness.MariaDB},
		{"postgres", harness.Postgres},
	} {
		t.Run(ledger.name, func(t *testing.T) {
			t.Parallel()
			redis, database := harness.Redis(t), ledger.start(t)
			for _, part := range []struct {
				name string
				role lockRole
				run  func(t *testing.T, s *lockScene)
			}{
				{"a frozen owner is fenced", lockStubborn, lockFrozenOwnerIsFenced},
				{"without a fence it writes", lockUnfenced, lockUnfencedOwnerWrites},
				{"an obedient one stops by itself", lockObedient, lockFrozenOwnerNotices},
				{"owners never overlap", lockRestless, lockOwnersNeverOverlap},
			} {
				t.Run(part.name, func(t *testing.T) {
					part.run(t, newLockScene(t, newLockPlace(t, redis, database), part.role))
				})
			}
		})
	}
}

// lockScene is an owner in another process and a successor in this one.
type lockScene struct {
	place  lockPlace
	owner  *lockOwner
	lock   domain.Lock
	ledger domain.Activities
	epoch  func(t *testing.T) int64 // of the sale, by the ledger
	freeze func(t *testing.T)       // the owner until after its lease
	thaw   func()
}

func newLockScene(t *testing.T, place lockPlace, role lockRole) *lockScene {
	t.Helper()
	client, ledger := place.client(), place.ledger(t)
	t.Cleanup(func() { _ = client.Close() })
	owner := startLockOwner(t, place, role, client)
	return &lockScene{
		place: place, owner: owner, lock: place.lock(client, ledger), ledger: ledger,
		epoch: func(t *testing.T) int64 {
			tally, err := ledger.Tally(t.Context(), lockSale)
			if err != nil {
				t.Fatal(err)
			}
			return tally.Epoch
		},
		freeze: func(t *testing.T) {
			owner.process.Signal(syscall.SIGSTOP)
			place.awaitLeaseEnd(t, client)
		},
		thaw: func() { owner.process.Signal(syscall.SIGCONT) },
	}
}

// A frozen owner that pays no heed to its context writes nothing after its
// successor: the ledger refuses it. covers L5
func lockFrozenOwnerIsFenced(t *testing.T, s *lockScene) {
	for range 3 {
		s.owner.tell(t, lockWrite)
	}
	before := s.owner.await(t, 3)
	for i, entry := range before {
		if entry.Outcome != lockWritten || entry.Epoch != int64(i+1) {
			t.Fatalf("write %d before the freeze: %+v", i, entry)
		}
	}

	s.freeze(t)
	err := s.lock.Do(t.Context(), lockKey, lockTTL, func(ctx context.Context, lease domain.Lease) error {
		if lease.Fence.Number <= before[0].Fence {
			t.Errorf("fence %d after %d", lease.Fence.Number, before[0].Fence)
		}
		write := func(want int64) {
			entry := lockAttempt(ctx, s.ledger, lease.Fence)
			if entry.Outcome != lockWritten || entry.Epoch != want {
				t.Errorf("successor's write: %+v, want epoch %d", entry, want)
			}
		}
		write(4)
		for range 5 {
			s.owner.tell(t, lockWrite)
		}
		s.thaw()
		for _, entry := range s.owner.await(t, 8)[3:] {
			if entry.Outcome != lockFenced {
				t.Errorf("frozen owner's write after the successor's: %+v, want it fenced", entry)
			}
		}
		write(5)
		return nil
	})
	if err != nil {
		t.Errorf("successor: %v", err)
	}

	s.owner.tell(t, lockEnd)
	if end := s.owner.await(t, 9)[8]; end.Outcome != lockLost {
		t.Errorf("end of the frozen owner: %+v, want its lease lost", end)
	}
	if epoch := s.epoch(t); epoch != 5 {
		t.Errorf("epoch %d after 5 accepted writes", epoch)
	}
}

// The same without a fence: it is the fence that refuses, and not the context,
// the lock or anything else. covers L5
func lockUnfencedOwnerWrites(t *testing.T, s *lockScene) {
	s.owner.tell(t, lockWrite)
	s.owner.await(t, 1)
	s.freeze(t)
	err := s.lock.Do(t.Context(), lockKey, lockTTL, func(context.Context, domain.Lease) error {
		s.owner.tell(t, lockWrite)
		s.thaw()
		if entry := s.owner.await(t, 2)[1]; entry.Outcome != lockWritten {
			t.Errorf("unguarded write of the frozen owner: %+v", entry)
		}
		return nil
	})
	if err != nil {
		t.Errorf("successor: %v", err)
	}
}

// A frozen owner that heeds its context stops by itself, without a successor.
// covers L4
func lockFrozenOwnerNotices(t *testing.T, s *lockScene) {
	s.owner.tell(t, lockWrite)
	s.owner.await(t, 1)
	s.freeze(t)
	s.thaw()
	if end := s.owner.await(t, 2)[1]; end.Outcome != lockLost {
		t.Errorf("end of the frozen owner: %+v, want its lease lost", end)
	}
	if epoch := s.epoch(t); epoch != 1 {
		t.Errorf("epoch %d after one write", epoch)
	}
}

// Two owners take turns because one is frozen at arbitrary moments, also in the
// middle of a write. In the order in which the ledger accepted the writes, the
// fencing numbers never go down: the owners do not overlap. covers L1 L5
func lockOwnersNeverOverlap(t *testing.T, s *lockScene) {
	const turns, mostRounds = 3, 15
	var mine []lockEntry
	taken := 0
	for round := 0; taken < turns && round < mostRounds; round++ {
		s.owner.awaitWrites(t, 10)
		time.Sleep(rand.N(10 * time.Millisecond))
		s.freeze(t)
		err := s.lock.Do(t.Context(), lockKey, lockTTL, func(ctx context.Context, lease domain.Lease) error {
			s.thaw()
			for range 20 {
				if entry := lockAttempt(ctx, s.ledger, lease.Fence); entry.Outcome == lockWritten {
					mine = append(mine, entry)
				}
			}
			taken++
			return nil
		})
		// An owner frozen inside a transaction keeps its rows locked: nobody
		// gets a fence until it goes on.
		if err != nil && !errors.Is(err, domain.ErrUnavailable) {
			t.Errorf("round %d: %v", round, err)
		}
		s.thaw()
	}
	if taken < turns {
		t.Errorf("the successor got %d turns, want %d", taken, turns)
	}
	s.owner.awaitWrites(t, 1)
	s.owner.process.Kill(t)

	history := append(s.owner.written(t), mine...)
	slices.SortFunc(history, func(a, b lockEntry) int { return cmp.Compare(a.Epoch, b.Epoch) })
	changes := 0
	for i := 1; i < len(history); i++ {
		before, after := history[i-1], history[i]
		if after.Epoch == before.Epoch || after.Fence < before.Fence {
			t.Errorf("epoch %d by fence %d, then epoch %d by fence %d", before.Epoch, before.Fence, after.Epoch, after.Fence)
		}
		if after.Fence != before.Fence {
			changes++
		}
	}
	t.Logf("%d writes, %d changes of owner", len(history), changes)
	if changes < 2*turns {
		t.Errorf("%d changes of owner in %d turns", changes, turns)
	}
}
