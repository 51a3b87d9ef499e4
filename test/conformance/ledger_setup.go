package conformance

import (
	"reflect"
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
		a.State = domain.Open
		l.must(l.Save(l.ctx(), a))
		a.State = domain.Draft
		l.stored(a)
	},
	"SaveChangesAndKeepsTheState": func(l ledgerTest) {
		a := l.activity(10, 2)
		l.must(l.Save(l.ctx(), a))
		l.must(l.SetState(l.ctx(), a.ID, domain.Draft, domain.Ready))
		a.Name, a.StartsAt, a.EndsAt = "other", a.StartsAt.Add(time.Hour), a.EndsAt.Add(2*time.Hour)
		a.PaymentWindow = 90 * time.Second
		a.SKUs[0] = domain.SKU{ID: 2001, Name: "x", Price: 1, Total: 20, PerUserLimit: 3, Segments: 1}
		a.SKUs = append(a.SKUs, domain.SKU{ID: 2002, Name: "y", Price: 2, Total: 30, PerUserLimit: 4, Segments: 1})
		l.must(l.Save(l.ctx(), a))
		a.State = domain.Ready
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
			a := l.activity(10, 2)
			l.must(l.Save(l.ctx(), a))
			mine[a.ID] = true
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
		a := l.activity(10, 2)
		l.must(l.Save(l.ctx(), a))
		l.must(l.SetState(l.ctx(), a.ID, domain.Draft, domain.Ready))
		l.fails(l.SetState(l.ctx(), a.ID, domain.Draft, domain.Open), domain.ErrConflict)
		l.must(l.SetState(l.ctx(), a.ID, domain.Ready, domain.Ready))
		a.State = domain.Ready
		l.stored(a)
	},
	// covers N7
	"EpochGrows": func(l ledgerTest) {
		s := l.sale(10, 2)
		s.pending(s.order("7", 2))
		for want := s.epoch + 1; want < s.epoch+4; want++ {
			epoch, err := l.BeginEpoch(l.ctx(), s.SaleID, domain.Fence{})
			l.must(err)
			if epoch != want || s.tally().Epoch != want {
				l.Fatalf("epoch %d, account says %d, want %d", epoch, s.tally().Epoch, want)
			}
		}
	},
	"FencesAreApart": func(l ledgerTest) {
		key := ledgerText(domain.Order{ID: domain.NewOrderID(domain.SaleID{Activity: ledgerActivityID()}, "k")})[:20]
		for want := int64(1); want < 5; want++ {
			for _, key := range []string{"a:" + key, "A:" + key} {
				got, err := l.NextFence(l.ctx(), key)
				l.must(err)
				if got != want {
					l.Fatalf("number %d of %s, want %d", got, key, want)
				}
			}
		}
		// A number nobody minted a newer one for is good, whatever it is.
		s := l.sale(1, 1)
		_, err := l.BeginEpoch(l.ctx(), s.SaleID, domain.Fence{Key: "never:" + key, Number: 1})
		l.must(err)
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
