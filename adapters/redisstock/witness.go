package redisstock

import (
	"context"
	"sync"

	"seckill/domain"
)

var _ domain.Continuity = (*Stock)(nil)

// Doubts implements domain.Continuity. A partition is in doubt when it has no
// witness, or that of another server or of another term of it: Redis was started
// anew, a replica took over, the data is gone, or the partition has moved to another
// node. A master that has had no replica for repl-backlog-ttl starts a new term too;
// its sales are then loaded once for nothing. With ACLs it needs the command INFO.
func (s *Stock) Doubts(ctx context.Context) (domain.Doubts, error) {
	doubts := domain.Doubts{}
	for partition := range s.config.Partitions {
		doubt, server, err := s.witness(ctx, partition, "")
		if err == nil && doubt == "" && s.terms[partition].before(server) {
			doubt, _, err = s.witness(ctx, partition, "again")
		}
		if err != nil {
			return nil, err
		}
		s.terms[partition].note(server) // not before its doubt is written
		if doubt != "" {
			doubts[partition] = doubt
		}
	}
	return doubts, nil
}

// Vouch implements domain.Continuity.
func (s *Stock) Vouch(ctx context.Context, doubts domain.Doubts) error {
	for partition, doubt := range doubts {
		if _, _, err := s.witness(ctx, partition, doubt); err != nil {
			return err
		}
	}
	return nil
}

// terms are the servers that a partition was seen on. A master that was replaced
// and comes back without having noticed has its old data and its old witness; who
// has seen the other one knows better.
type terms struct {
	mu      sync.Mutex
	now     string
	earlier map[string]bool
}

// before says whether a server was there before the one of now.
func (t *terms) before(server string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return server != t.now && t.earlier[server]
}

// note says which server it is now.
func (t *terms) note(server string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if server == t.now {
		return
	}
	if t.earlier == nil {
		t.earlier = map[string]bool{}
	}
	t.earlier[t.now] = true
	t.now = server
}

// Concern implements domain.Continuity.
func (s *Stock) Concern(doubts domain.Doubts, sale domain.SaleID, segments int) bool {
	known := len(s.layout(sale).segments)
	for number := range min(max(segments, known), s.maxSegments()) {
		if doubts[s.segment(sale, number).partition] != "" {
			return true
		}
	}
	return false
}

// witness returns the doubt about a partition, and the ids of its server.
func (s *Stock) witness(ctx context.Context, partition int, word string) (doubt, server string, err error) {
	reply, err := s.run(ctx, witnessScript, []string{s.tag(partition) + "witness"}, word)
	if err != nil {
		return "", "", err
	}
	return reply.text(0), reply.text(1), nil
}
