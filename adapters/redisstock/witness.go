package redisstock

import (
	"context"

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
		doubt, err := s.witness(ctx, partition, "")
		if err != nil {
			return nil, err
		}
		if doubt != "" {
			doubts[partition] = doubt
		}
	}
	return doubts, nil
}

// Vouch implements domain.Continuity.
func (s *Stock) Vouch(ctx context.Context, doubts domain.Doubts) error {
	for partition, doubt := range doubts {
		if _, err := s.witness(ctx, partition, doubt); err != nil {
			return err
		}
	}
	return nil
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

func (s *Stock) witness(ctx context.Context, partition int, doubt string) (string, error) {
	text, err := witnessScript.Run(ctx, s.config.Client, []string{s.tag(partition) + "witness"}, doubt).Text()
	if err != nil {
		return "", unavailable(err)
	}
	return text, nil
}
