// Package domain holds the words, the rules and the ports of a flash sale.
// It imports the standard library only.
//
// # Vocabulary
//
// An activity (活动) is a time window with one or more SKUs. One activity and
// one SKU together are a sale. A buyer grabs (抢单) units of a sale. An accepted
// grab is a hold: its units are deducted and its order intent is queued. The
// consumer turns a hold into an order in the ledger. A hold is later settled
// (paid) or released (cancelled, expired, rejected), exactly once.
//
// The hot store (port Stock) decides who gets units. The ledger (port Orders)
// is the truth: it cannot be oversold, whatever the hot store did.
//
// # Life of an order
//
//	grab ──► queued ──► pending_payment ──► paid
//	            │              ├──────────► cancelled
//	            │              └──────────► expired ──► paid        (late payment, units still there)
//	            │                                └────► refund_due  (late payment, units gone)
//	            └──► rejected
//
// # Conservation
//
// At any time and for every sale: total = available + held + sold, all ≥ 0,
// and held is the sum of the holds.
//
// # Units of measure
//
// Quantities are units of stock. Money is in minor units. Windows are
// half-open: [StartsAt, EndsAt).
package domain
