package conformance

import (
	"slices"
	"strings"
	"time"

	"seckill/domain"
)

// letter makes a dead letter of an order that was never placed.
func (s *ledgerSale) letter(buyer domain.BuyerID) domain.DeadLetter {
	o := s.order(buyer, 2)
	return domain.DeadLetter{
		Intent: domain.Intent{
			Order: o.ID, Sale: o.Sale, Buyer: o.Buyer, Request: "r-1", Quantity: o.Quantity, Epoch: o.Epoch,
			At: time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC),
		},
		Payload: "payload of " + string(o.ID),
		Reason:  "does not fit",
	}
}

// letterOf finds the one letter with the payload.
func (l ledgerTest) letterOf(payload string) domain.DeadLetter {
	l.Helper()
	var found []domain.DeadLetter
	for after := int64(0); ; {
		page, err := l.Letters(l.ctx(), after, 50)
		l.must(err)
		if len(page) == 0 {
			break
		}
		for _, letter := range page {
			if letter.ID <= after {
				l.Fatalf("letter %d after %d", letter.ID, after)
			}
			after = letter.ID
			if letter.Payload == payload {
				found = append(found, letter)
			}
		}
	}
	if len(found) != 1 {
		l.Fatalf("%d letters with this payload, want 1", len(found))
	}
	return found[0]
}

var ledgerLetterTests = map[string]func(ledgerTest){
	// covers Q6
	"BuryReleasesTheHold": func(l ledgerTest) {
		s := l.sale(10, 5)
		letter := s.letter("7")
		for range 3 {
			l.must(l.Bury(l.ctx(), letter))
		}
		got := l.letterOf(letter.Payload)
		if got.Intent != letter.Intent || got.Reason != letter.Reason || got.CreatedAt.IsZero() {
			l.Errorf("letter %+v, want %+v", got, letter)
		}
		one, err := l.Letter(l.ctx(), got.ID)
		l.must(err)
		if one != got {
			l.Errorf("letter %+v, listed %+v", one, got)
		}
		e := s.effectOf(letter.Intent.Order, domain.Rejected)
		if e.Settles() || e.Order.Reason != domain.ReasonDeadLetter || e.Order.Quantity != 2 {
			l.Errorf("effect %+v", e)
		}
		if t := s.tally(); t.Releasing != 2 {
			l.Errorf("releasing %d", t.Releasing)
		}
	},
	// covers N2
	"FindAnswersForALetter": func(l ledgerTest) {
		s := l.sale(10, 5)
		letter := s.letter("7")
		l.must(l.Bury(l.ctx(), letter))
		placed := s.pending(s.order("8", 1))
		found, err := l.Find(l.ctx(), letter.Intent.Order, placed.ID)
		l.must(err)
		if len(found) != 2 {
			l.Fatalf("found %d, want 2", len(found))
		}
		o := l.find(letter.Intent.Order)
		if o.Status != domain.Rejected || o.Reason != domain.ReasonDeadLetter || o.Buyer != "7" ||
			o.Quantity != 2 || o.Sale != s.SaleID || o.Hold != o.ID || o.ClosedAt.IsZero() {
			l.Errorf("order %+v", o)
		}
		s.counts(domain.Tally{Pending: 1})
	},
	// covers Q6
	"EntryThatIsNoOrder": func(l ledgerTest) {
		payload := "\x00\xff not utf-8 " + string(ledgerText(domain.Order{ID: "x"})) + time.Now().String()
		letter := domain.DeadLetter{Payload: payload, Reason: "cannot be decoded: \xff\x00 秒杀"}
		l.must(l.Bury(l.ctx(), letter))
		l.must(l.Bury(l.ctx(), letter))
		got := l.letterOf(payload)
		if got.Intent != (domain.Intent{}) || !strings.Contains(got.Reason, "秒杀") {
			l.Errorf("letter %+v", got)
		}
		l.must(l.Discard(l.ctx(), got.ID))
		_, err := l.Letter(l.ctx(), got.ID)
		l.fails(err, domain.ErrNotFound)
	},
	// covers Q6: an intent no column can hold must be buried all the same.
	"EntryThatNoOrderCanBe": func(l ledgerTest) {
		s := l.sale(10, 5)
		letter := s.letter("7")
		letter.Intent.Buyer = domain.BuyerID(strings.Repeat("名", 3000))
		letter.Reason = strings.Repeat("long ", 5000)
		l.must(l.Bury(l.ctx(), letter))
		l.must(l.Bury(l.ctx(), letter))
		got := l.letterOf(letter.Payload)
		if got.Intent.Order != letter.Intent.Order || got.Intent.Sale != s.SaleID {
			l.Errorf("letter %+v", got)
		}
		if e := s.effectOf(letter.Intent.Order, domain.Rejected); e.Order.Quantity != 2 {
			l.Errorf("effect %+v", e)
		}
		if o := l.find(letter.Intent.Order); o.Status != domain.Rejected {
			l.Errorf("order %+v", o)
		}
		l.must(l.Discard(l.ctx(), got.ID))
	},
	"NoSuchLetter": func(l ledgerTest) {
		_, err := l.Letter(l.ctx(), 1<<40)
		l.fails(err, domain.ErrNotFound)
		l.fails(l.Discard(l.ctx(), 1<<40), domain.ErrNotFound)
		l.must(l.Revive(l.ctx(), 1<<40))
	},
	// covers Q6 N2
	"DiscardRecordsTheRejection": func(l ledgerTest) {
		s := l.sale(10, 5)
		letter := s.letter("7")
		l.must(l.Bury(l.ctx(), letter))
		id := l.letterOf(letter.Payload).ID
		before := len(s.effects())
		l.must(l.Discard(l.ctx(), id))
		l.fails(l.Discard(l.ctx(), id), domain.ErrNotFound)
		o := l.find(letter.Intent.Order)
		if o.Status != domain.Rejected || o.Reason != domain.ReasonDeadLetter || o.Request != "r-1" {
			l.Errorf("order %+v", o)
		}
		s.counts(domain.Tally{Rejected: 2})
		if after := len(s.effects()); after != before {
			l.Errorf("%d effects, were %d", after, before)
		}
		// It is decided: neither placed nor buried again.
		p := s.place(domain.Order{ID: o.ID, Sale: o.Sale, Buyer: o.Buyer, Quantity: 1, Epoch: s.epoch})[0]
		l.wants(p, domain.Rejected, domain.ReasonDeadLetter)
		l.must(l.Bury(l.ctx(), letter))
		l.noLetter(letter.Payload)
	},
	"DiscardWhenTheRequestHasAnotherOrder": func(l ledgerTest) {
		s := l.sale(10, 5)
		letter := s.letter("7")
		l.must(l.Bury(l.ctx(), letter))
		other := s.order("7", 1)
		other.Request = letter.Intent.Request
		s.pending(other)
		l.must(l.Discard(l.ctx(), l.letterOf(letter.Payload).ID))
		s.counts(domain.Tally{Pending: 1, Rejected: 2})
	},
	// covers Q6: replay under a second hold, then the letter goes.
	"ReplayAndRevive": func(l ledgerTest) {
		s := l.sale(10, 5)
		letter := s.letter("7")
		l.must(l.Bury(l.ctx(), letter))
		o := s.order("7", 2)
		o.ID, o.Hold = letter.Intent.Order, letter.Intent.Order.Late()
		s.pending(o)
		id := l.letterOf(letter.Payload).ID
		l.must(l.Revive(l.ctx(), id))
		l.must(l.Revive(l.ctx(), id))
		l.noLetter(letter.Payload)
		if got := l.find(o.ID); got.Status != domain.Pending || got.Hold != o.ID.Late() {
			l.Errorf("order %+v", got)
		}
	},
	// covers Q5 Q6: the entry comes again although its letter has been buried,
	// and its hold has been released.
	"BuriedIsDecided": func(l ledgerTest) {
		s := l.sale(10, 5)
		early := s.orders(2)
		letter := s.letter("7")
		l.must(l.Bury(l.ctx(), letter))
		o := s.order("7", 2)
		o.ID, o.Request = letter.Intent.Order, letter.Intent.Request
		for n := range 2 {
			for i, p := range s.place(early[n], o, s.order("9", 1)) {
				if i != 1 {
					l.wants(p, domain.Pending, "")
					continue
				}
				l.wants(p, domain.Rejected, domain.ReasonDeadLetter)
				if p.Fresh || p.Order.Hold != o.ID || p.Order.Buyer != "7" || p.Order.ClosedAt.IsZero() {
					l.Errorf("fresh %v, order %+v", p.Fresh, p.Order)
				}
			}
		}
		// Neither does an epoch that is over take the letter's place.
		_, err := l.BeginEpoch(l.ctx(), s.SaleID, domain.Fence{})
		l.must(err)
		placed := s.place(o, s.order("10", 1))
		l.wants(placed[0], domain.Rejected, domain.ReasonDeadLetter)
		l.wants(placed[1], domain.Rejected, domain.ReasonStaleEpoch)
		s.counts(domain.Tally{Pending: 4, Rejected: 1})
		l.letterOf(letter.Payload)
		s.effectOf(o.ID, domain.Rejected)
		if n := len(s.effects()); n != 2 {
			l.Errorf("%d effects, want one of the letter and one of the stale order", n)
		}
	},
	// covers Q6: what refuses a replay is told as it is.
	"ReplayIsRefused": func(l ledgerTest) {
		s := l.sale(1, 5)
		letter := s.letter("7")
		l.must(l.Bury(l.ctx(), letter))
		o := s.order("7", 2)
		o.ID, o.Hold = letter.Intent.Order, letter.Intent.Order.Late()
		l.wants(s.place(o)[0], domain.Rejected, domain.ReasonSoldOut)
		s.effectOf(o.Hold, domain.Rejected)
	},
	// covers Q4 Q6: a letter is about its own order, and about its first hold.
	"LetterBetweenTheOrdersOfABatch": func(l ledgerTest) {
		s := l.sale(100, 5)
		before := s.orders(3)
		letter, late := s.letter("7"), s.letter("8")
		l.must(l.Bury(l.ctx(), letter))
		l.must(l.Bury(l.ctx(), late))
		replayed := s.order("8", 2)
		replayed.ID, replayed.Hold = late.Intent.Order, late.Intent.Order.Late()
		after := s.orders(3)
		for _, p := range s.place(slices.Concat(after, before, []domain.Order{replayed})...) {
			l.wants(p, domain.Pending, "")
			if !p.Fresh {
				l.Errorf("order %s is not fresh", p.Order.ID)
			}
		}
		s.counts(domain.Tally{Pending: 8})
	},
	// covers Q5: a decided order keeps its hold.
	"NothingToBuryOnceItIsPlaced": func(l ledgerTest) {
		s := l.sale(10, 5)
		letter := s.letter("7")
		o := s.order("7", 2)
		o.ID = letter.Intent.Order
		s.pending(o)
		l.must(l.Bury(l.ctx(), letter))
		l.noLetter(letter.Payload)
		if n := len(s.effects()); n != 0 {
			l.Errorf("%d effects on a hold that has an order", n)
		}
	},
}

func (l ledgerTest) noLetter(payload string) {
	l.Helper()
	for after := int64(0); ; {
		page, err := l.Letters(l.ctx(), after, 50)
		l.must(err)
		if len(page) == 0 {
			return
		}
		for _, letter := range page {
			after = letter.ID
			if letter.Payload == payload {
				l.Fatalf("letter %d is there", letter.ID)
			}
		}
	}
}
