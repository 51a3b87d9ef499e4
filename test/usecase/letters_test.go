package usecase

import (
	"errors"
	"testing"

	"seckill/domain"
)

// covers Q6
func TestDeadLetterReplay(t *testing.T) {
	s := open(t, options{total: 1})
	id := s.grab("a")
	deliveries, err := s.Queue.Receive(ctx, 0, 1)
	if err != nil || len(deliveries) != 1 {
		t.Fatalf("%d deliveries, %v", len(deliveries), err)
	}
	// As if the ledger had refused this order alone, again and again.
	if err := s.DeadLetters.Bury(ctx, domain.DeadLetter{Intent: deliveries[0].Intents[0], Payload: "{}", Reason: "bad"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Queue.Ack(ctx, deliveries...); err != nil {
		t.Fatal(err)
	}
	if order := s.wantStatus(id, domain.Rejected); order.Reason != domain.ReasonDeadLetter {
		t.Errorf("reason is %s", order.Reason)
	}
	letters, err := s.ListDeadLetters(ctx, 0, 10)
	if err != nil || len(letters) != 1 || letters[0].Intent.Order != id {
		t.Fatalf("%+v, %v", letters, err)
	}
	order, err := s.Replay(ctx, letters[0].ID)
	if err != nil || order.ID != id || order.Status != domain.Pending {
		t.Fatalf("%+v, %v", order, err)
	}
	if _, err := s.Replay(ctx, letters[0].ID); !errors.Is(err, domain.ErrNotFound) {
		t.Errorf("replayed twice: %v", err)
	}
	s.relayAll()
	s.wantLevel(0, 1, 0)
	s.must(s.Pay(ctx, id, "a", "p"))
	s.wantLevel(0, 0, 1)
}

// relayAll applies what waits in the outbox, of any age.
func (s *shop) relayAll() {
	s.t.Helper()
	effects, err := s.Outbox.Effects(ctx, 0, 0, 100)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range effects {
		if _, err := s.Stock.Release(ctx, f.Order.Sale, f.Hold); err != nil {
			s.t.Fatal(err)
		}
		if err := s.Outbox.Applied(ctx, f.ID); err != nil {
			s.t.Fatal(err)
		}
	}
}

// covers Q6: an entry that nobody can read.
func TestPoisonEntry(t *testing.T) {
	s := open(t, options{total: 1})
	if err := s.Persist(ctx, []domain.Delivery{{ID: "9", Raw: "garbage", Problem: "not an entry"}}); err != nil {
		t.Fatal(err)
	}
	letters, err := s.ListDeadLetters(ctx, 0, 10)
	if err != nil || len(letters) != 1 || letters[0].Payload != "garbage" {
		t.Fatalf("%+v, %v", letters, err)
	}
	if _, err := s.Replay(ctx, letters[0].ID); !errors.Is(err, domain.ErrState) {
		t.Errorf("replay: %v", err)
	}
	if err := s.Discard(ctx, letters[0].ID); err != nil {
		t.Fatal(err)
	}
	if letters, _ := s.ListDeadLetters(ctx, 0, 10); len(letters) != 0 {
		t.Errorf("%+v", letters)
	}
}
