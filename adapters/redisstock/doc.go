// Package redisstock keeps the hot store and the order queue in Redis 7.0 or
// later, or a server that runs its scripts and streams: standalone, behind
// Sentinel, or as a cluster.
//
// Every change is one Lua script over keys of one hash slot, so it happens as a
// whole or not at all, and every script may be sent twice: the client library
// repeats a call whose answer was lost.
//
// # Keys
//
// A sale belongs to one of a fixed number of partitions, and all keys of
// partition p carry the tag {p}. No key has a time to live.
//
//	seckill:{3}:sale:1001:2001      hash: figures, gate, epoch and fence
//	seckill:{3}:holds:1001:2001     hash: hold id → record
//	seckill:{3}:buyers:1001:2001    hash: buyer → units held and sold
//	seckill:{3}:requests:1001:2001  hash: buyer|request → hold id
//	seckill:{3}:queue               stream: one entry per batch of accepted grabs
//	seckill:{3}:depth               orders in entries that are not acknowledged
//	seckill:{3}:witness             the server, and its term, that all this was vouched for on
//
// A record is "h<ms>|<quantity>|<buyer>|<request>". Its first letter is the
// state, h held, s sold, r released, so that a change of state is one byte; ms
// is the time of the grab. A tombstone is a released record without a buyer.
package redisstock
