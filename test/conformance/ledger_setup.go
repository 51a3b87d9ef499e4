package conformance

import (
	"reflect"
	"strings"
	"time"

	"seckill/domain"
)

// stored reads an activity and demands that it is as given.
func (l ledgerTest) stored(want domain.Activity) {
	l.Helper()
	got, err := l.Activity(l.ctx(), want.ID)
	l.must(err)
	if !reflect.DeepEqual(got, want) {
		l.Fatalf("activity\n got %+v\nwant %+v", got, want)
	}
}

var ledgerSetupTests = map[string]func(ledgerTest){
	"SaveCreatesADraft": func(l ledgerTest) {
		a := l.activity(10, 2)
		a.SKUs = append(a.SKUs, domain.SKU{ID: 2002, Name: "", Total: domain.MaxInteger, PerUserLimit: domain.MaxInteger, Price: domain.MaxInteger, Segments: 1})
		l.stored(l.create(a))
	},
	"CreatesNothingTwice": func(l ledgerTest) {
		a := l.create(l.activity(10, 2))
		again := a
		again.State, again.Name = "", "another"
		l.fails(l.Save(l.ctx(), again), domain.ErrConflict)
		l.must(l.SetState(l.ctx(), a.ID, domain.Draft, domain.Archived))
		l.fails(l.Save(l.ctx(), again), domain.ErrConflict)
		a.State = domain.Archived
		l.stored(a)
	},
	"SaveChangesNothingInAnotherState": func(l ledgerTest) {
		a := l.create(l.activity(10, 2))
		l.must(l.SetState(l.ctx(), a.ID, domain.Draft, domain.Ready))
		kept := a
		kept.State = domain.Ready
		for _, state := range []domain.State{domain.Draft, domain.Open, domain.Paused, domain.Closed, domain.Archived} {
			changed := a
			changed.State, changed.Name = state, "other"
			changed.SKUs = []domain.SKU{a.SKUs[0], {ID: 2002, Name: "y", Price: 2, Total: 30, PerUserLimit: 4, Segments: 1}}
			changed.SKUs[0].Total = 20
			l.fails(l.Save(l.ctx(), changed), domain.ErrConflict)
			l.stored(kept)
		}
		missing := l.activity(10, 2)
		missing.State = domain.Draft
		l.fails(l.Save(l.ctx(), missing), domain.ErrConflict)
		_, err := l.Activity(l.ctx(), missing.ID)
		l.fails(err, domain.ErrNotFound)
	},
	"EditStockChangesTheTotalAndRecordsIt": func(l ledgerTest) {
		a := l.create(l.activity(10, 2))
		l.must(l.SetState(l.ctx(), a.ID, domain.Draft, domain.Ready))
		sale := a.Sale(a.SKUs[0].ID)
		total := func(want int64) {
			l.Helper()
			got, err := l.Activity(l.ctx(), a.ID)
			l.must(err)
			if got.SKUs[0].Total != want {
				l.Fatalf("total is %d, want %d", got.SKUs[0].Total, want)
			}
		}
		more := domain.StockEdit{Sale: sale, Delta: 5, Reason: "a second pallet", Key: "k-1"}
		for range 3 {
			made, err := l.EditStock(l.ctx(), more, domain.Fence{})
			l.must(err)
			if !made.Same(more) || made.Total != 15 || made.At.IsZero() {
				l.Fatalf("edit is %+v", made)
			}
			total(15)
		}
		other := more
		other.Delta = 6
		_, err := l.EditStock(l.ctx(), other, domain.Fence{})
		l.fails(err, domain.ErrConflict)
		for _, delta := range []int64{-15, -16, domain.MaxInteger} {
			_, err = l.EditStock(l.ctx(), domain.StockEdit{Sale: sale, Delta: delta, Reason: "x", Key: "k-2"}, domain.Fence{})
			l.fails(err, domain.ErrUnbalanced)
		}
		total(15)
		fewer := domain.StockEdit{Sale: sale, Delta: -14, Reason: "a broken pallet", Key: "k-2"}
		_, err = l.EditStock(l.ctx(), fewer, domain.Fence{})
		l.must(err)
		total(1)
		edits, err := l.StockEdits(l.ctx(), sale)
		l.must(err)
		if len(edits) != 2 || !edits[0].Same(fewer) || !edits[1].Same(more) || edits[0].Total != 1 {
			l.Fatalf("edits are %+v", edits)
		}
		_, err = l.EditStock(l.ctx(), domain.StockEdit{Sale: domain.SaleID{Activity: 1, SKU: 1}, Delta: 1, Reason: "x", Key: "k"}, domain.Fence{})
		l.fails(err, domain.ErrNotFound)
		_, err = l.EditStock(l.ctx(), domain.StockEdit{Sale: sale, Delta: 1, Reason: "x", Key: "k-3"}, domain.Fence{Key: "nobody", Number: 1})
		l.fails(err, domain.ErrFenced)
		// What a save has read before the edit does not undo it.
		stale := a
		stale.State = domain.Ready
		l.fails(l.Save(l.ctx(), stale), domain.ErrConflict)
		total(1)
	},
	"EditStockLeavesWhatIsReserved": func(l ledgerTest) {
		s := l.sale(10, 9)
		l.place(s.order("alice", 7))
		_, err := l.EditStock(l.ctx(), domain.StockEdit{Sale: s.SaleID, Delta: -4, Reason: "x", Key: "k"}, domain.Fence{})
		l.fails(err, domain.ErrUnbalanced)
		_, err = l.EditStock(l.ctx(), domain.StockEdit{Sale: s.SaleID, Delta: -3, Reason: "x", Key: "k"}, domain.Fence{})
		l.must(err)
	},
	"SaveChangesAndKeepsTheState": func(l ledgerTest) {
		a := l.create(l.activity(10, 2))
		l.must(l.SetState(l.ctx(), a.ID, domain.Draft, domain.Ready))
		a.State = domain.Ready
		a.Name, a.StartsAt, a.EndsAt = "other", a.StartsAt.Add(time.Hour), a.EndsAt.Add(2*time.Hour)
		a.PaymentWindow = 90 * time.Second
		a.SKUs[0] = domain.SKU{ID: 2001, Name: "x", Price: 1, Total: a.SKUs[0].Total, PerUserLimit: 3, Segments: 1}
		a.SKUs = append(a.SKUs, domain.SKU{ID: 2002, Name: "y", Price: 2, Total: 30, PerUserLimit: 4, Segments: 1})
		l.must(l.Save(l.ctx(), a))
		l.stored(a)
		a.SKUs = a.SKUs[1:]
		l.must(l.Save(l.ctx(), a))
		l.stored(a)
	},
	"SavedWindowGoesForNewOrders": func(l ledgerTest) {
		s := l.sale(10, 5)
		s.activity.PaymentWindow = 90 * time.Second
		l.must(l.Save(l.ctx(), s.activity))
		o := s.pending(s.order("7", 1))
		if window := o.ExpiresAt.Sub(o.CreatedAt); window != 90*time.Second {
			l.Errorf("window %v", window)
		}
	},
	// covers S13
	"TotalNeverBelowWhatIsOut": func(l ledgerTest) {
		s := l.sale(10, 5)
		o := s.pending(s.order("7", 3))
		s.pending(s.order("8", 2))
		_, err := l.Pay(l.ctx(), o.ID, "p")
		l.must(err)
		s.activity.SKUs[0].Total = 4
		l.fails(l.Save(l.ctx(), s.activity), domain.ErrUnbalanced)
		if total := s.tally().Total; total != 10 {
			l.Errorf("total %d", total)
		}
		s.activity.SKUs[0].Total = 5
		l.must(l.Save(l.ctx(), s.activity))
		l.wants(s.place(s.order("9", 1))[0], domain.Rejected, domain.ReasonSoldOut)
		s.activity.SKUs[0].Total = 6
		l.must(l.Save(l.ctx(), s.activity))
		s.pending(s.order("9", 1))
	},
	"SKUWithOrdersStays": func(l ledgerTest) {
		s := l.sale(10, 5)
		o := s.pending(s.order("7", 1))
		_, err := l.Cancel(l.ctx(), o.ID)
		l.must(err)
		a := s.activity
		a.SKUs = []domain.SKU{{ID: 2002, Name: "other", Total: 1, PerUserLimit: 1, Segments: 1}}
		l.fails(l.Save(l.ctx(), a), domain.ErrConflict)
		got, err := l.Activity(l.ctx(), a.ID)
		l.must(err)
		if len(got.SKUs) != 1 || got.SKUs[0].ID != 2001 {
			l.Errorf("SKUs %+v", got.SKUs)
		}
	},
	"NoSuchActivity": func(l ledgerTest) {
		id := ledgerActivityID()
		_, err := l.Activity(l.ctx(), id)
		l.fails(err, domain.ErrNotFound)
		l.fails(l.SetState(l.ctx(), id, domain.Draft, domain.Ready), domain.ErrNotFound)
		_, err = l.BeginEpoch(l.ctx(), domain.SaleID{Activity: id, SKU: 1}, domain.Fence{})
		l.fails(err, domain.ErrNotFound)
	},
	"ActivitiesPageByID": func(l ledgerTest) {
		mine := map[domain.ActivityID]bool{}
		for range 5 {
			mine[l.create(l.activity(10, 2)).ID] = true
		}
		for after := domain.ActivityID(0); ; {
			page, err := l.Activities(l.ctx(), after, 3)
			l.must(err)
			if len(page) == 0 {
				break
			}
			if len(page) > 3 {
				l.Fatalf("page of %d", len(page))
			}
			for _, a := range page {
				if a.ID <= after {
					l.Fatalf("%d after %d", a.ID, after)
				}
				if mine[a.ID] && (len(a.SKUs) != 1 || a.Name != "秒杀 ⚡") {
					l.Errorf("activity %+v", a)
				}
				after = a.ID
				delete(mine, a.ID)
			}
		}
		if len(mine) != 0 {
			l.Errorf("not listed: %v", mine)
		}
	},
	"SetStateComparesFirst": func(l ledgerTest) {
		a := l.create(l.activity(10, 2))
		l.must(l.SetState(l.ctx(), a.ID, domain.Draft, domain.Ready))
		l.fails(l.SetState(l.ctx(), a.ID, domain.Draft, domain.Open), domain.ErrConflict)
		l.must(l.SetState(l.ctx(), a.ID, domain.Ready, domain.Ready))
		a.State = domain.Ready
		l.stored(a)
	},
	// covers N7
	"EpochGrows": func(l ledgerTest) {
		s := l.sale(10, 2)
		placed := s.pending(s.order("7", 2)).CreatedAt // by the same clock
		for want := s.epoch + 1; want < s.epoch+4; want++ {
			epoch, err := l.BeginEpoch(l.ctx(), s.SaleID, domain.Fence{})
			l.must(err)
			if epoch != want || s.tally().Epoch != want {
				l.Fatalf("epoch %d, account says %d, want %d", epoch, s.tally().Epoch, want)
			}
			read, since, err := l.Epoch(l.ctx(), s.SaleID)
			l.must(err)
			if read != want || since.Before(placed) || since.After(placed.Add(time.Minute)) {
				l.Fatalf("epoch %d began at %s, after an order of %s", read, since, placed)
			}
		}
		_, _, err := l.Epoch(l.ctx(), domain.SaleID{Activity: ledgerActivityID(), SKU: 1})
		l.fails(err, domain.ErrNotFound)
	},
	// covers L5: a sale's numbers grow although the granularity of its lock changes.
	"FencesGrowOverAllKeys": func(l ledgerTest) {
		word, last := ledgerWord(), int64(0)
		for range 3 {
			// Keys compare byte-wise, and as long as they may be.
			for _, key := range []string{"a:" + word, "A:" + word, "a:" + word + ":0", strings.Repeat("k", 191-len(word)) + word} {
				got, err := l.NextFence(l.ctx(), key)
				l.must(err)
				if got <= last {
					l.Fatalf("number %d of %s after %d", got, key, last)
				}
				last = got
			}
		}
	},
	// covers L5
	"FencesOfOtherKeysStayGood": func(l ledgerTest) {
		s, word := l.sale(1, 1), ledgerWord()
		mine, err := l.NextFence(l.ctx(), "a:"+word)
		l.must(err)
		other, err := l.NextFence(l.ctx(), "A:"+word)
		l.must(err)
		_, err = l.BeginEpoch(l.ctx(), s.SaleID, domain.Fence{Key: "a:" + word, Number: mine})
		l.must(err)
		_, err = l.BeginEpoch(l.ctx(), s.SaleID, domain.Fence{Key: "A:" + word, Number: other})
		l.must(err)
		// A number counts for its own key only.
		_, err = l.BeginEpoch(l.ctx(), s.SaleID, domain.Fence{Key: "A:" + word, Number: mine})
		l.fails(err, domain.ErrFenced)
	},
	// covers L5: a lease whose number this ledger does not know proves nothing.
	"FenceFromElsewhereIsRefused": func(l ledgerTest) {
		s, word := l.sale(1, 1), ledgerWord()
		known, err := l.NextFence(l.ctx(), "a:"+word)
		l.must(err)
		for _, fence := range []domain.Fence{
			{Key: "never:" + word, Number: 1},
			{Key: "never:" + word, Number: domain.MaxInteger},
			{Key: "a:" + word, Number: known + 1},
			{Key: "a:" + word, Number: 0},
			{Key: "", Number: known},
		} {
			_, err := l.BeginEpoch(l.ctx(), s.SaleID, fence)
			l.fails(err, domain.ErrFenced)
			_, err = l.Expire(l.ctx(), s.SaleID, 10, fence)
			l.fails(err, domain.ErrFenced)
		}
		if epoch := s.tally().Epoch; epoch != s.epoch {
			l.Errorf("epoch %d", epoch)
		}
	},
	// covers Q10
	"TheFirstValueHolds": func(l ledgerTest) {
		name := "partitions:" + ledgerWord()
		for i, value := range []string{"16", "8", "16"} {
			got, err := l.Agree(l.ctx(), name, value)
			l.must(err)
			if got != "16" {
				l.Errorf("call %d: %q holds, want 16", i, got)
			}
		}
	},
}
