package redisstock

import (
	"encoding/binary"
	"hash/fnv"
	"strconv"
	"strings"

	"seckill/domain"
)

// saleKeys are the keys of one segment of a sale and of its partition's queue.
// All carry the partition's tag, so they share a slot of a cluster.
type saleKeys struct {
	id                            string // activity:sku
	partition                     int
	sale, holds, buyers, requests string
	queue, depth                  string
}

// keys names the keys of a sale's first segment.
func (s *Stock) keys(sale domain.SaleID) saleKeys { return s.segment(sale, 0) }

// segment names the keys of one of a sale's segments: segments follow each other
// over the partitions. Ids are numbers, so nothing in them can end the tag or a
// part of the name.
func (s *Stock) segment(sale domain.SaleID, number int) saleKeys {
	partition := (partitionOf(sale, s.config.Partitions) + number) % s.config.Partitions
	id, tag := sale.String(), s.tag(partition)
	return saleKeys{
		id:        id,
		partition: partition,
		sale:      tag + "sale:" + id,
		holds:     tag + "holds:" + id,
		buyers:    tag + "buyers:" + id,
		requests:  tag + "requests:" + id,
		queue:     tag + "queue",
		depth:     tag + "depth",
	}
}

// tag starts every key of a partition.
func (s *Stock) tag(partition int) string {
	return s.config.Prefix + ":{" + strconv.Itoa(partition) + "}:"
}

// partitionOf is stable: it decides where a sale's keys are, in every process
// and release.
func partitionOf(sale domain.SaleID, partitions int) int {
	var text [16]byte
	binary.BigEndian.PutUint64(text[:8], uint64(sale.Activity))
	binary.BigEndian.PutUint64(text[8:], uint64(sale.SKU))
	hash := fnv.New64a()
	_, _ = hash.Write(text[:])
	return int(hash.Sum64() % uint64(partitions))
}

// allowed says whether text has 1 to limit characters of A-Z a-z 0-9 . _ - and
// of extra. It keeps the separators of records and queue entries out of ids.
func allowed(text string, limit int, extra string) bool {
	if len(text) == 0 || len(text) > limit {
		return false
	}
	for i := range len(text) {
		c := text[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '.', c == '_', c == '-':
		case strings.IndexByte(extra, c) >= 0:
		default:
			return false
		}
	}
	return true
}
