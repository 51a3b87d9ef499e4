// Package sqlstore is the ledger in SQLite, MySQL, MariaDB or PostgreSQL.
//
// One Store implements the ports Orders, Outbox, DeadLetters, Activities,
// Fences and Deployment. Its transactions take their locks in one order: fence
// (the counter last), activity, orders (by id), quotas (by id), stock rows (by
// id), letters, outbox.
//
// A Stock on a Store is the hot store in the same database, with tables of its
// own: the deduction strategy "sql".
package sqlstore

import "seckill/domain"

var (
	_ domain.Orders      = (*Store)(nil)
	_ domain.Outbox      = (*Store)(nil)
	_ domain.DeadLetters = (*Store)(nil)
	_ domain.Activities  = (*Store)(nil)
	_ domain.Fences      = (*Store)(nil)
	_ domain.Deployment  = (*Store)(nil)
)
