package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// The tables of the hot store, for the strategy that keeps it in the database.
// Their ids begin with the sale as activity:sku, so the records of a sale are
// one range of the primary key and need no other index.

// Lengths of their ids.
const (
	hotHoldLen    = saleLen + 1 + holdLen
	hotBuyerLen   = saleLen + 1 + nameLen
	hotRequestLen = hotBuyerLen + 1 + nameLen
)

// HotSale is the gate and the account of one sale: the row that its grabs
// queue up for.
type HotSale struct{ ent.Schema }

// Fields of a sale. The id is activity:sku. The revision grows with everything
// that a grab must not overlook.
func (HotSale) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").MaxLen(saleLen).SchemaType(varchar(saleLen)),
		text("stage", wordLen),
		text("state", wordLen),
		field.Int64("starts_at"),
		field.Int64("ends_at"),
		field.Int64("per_user_limit"),
		field.Int64("epoch"),
		field.Int64("total"),
		field.Int64("available"),
		field.Int64("held"),
		field.Int64("sold"),
		field.Int64("fence"),
		field.Int64("revision"),
	}
}

// Annotations of the table.
func (HotSale) Annotations() []schema.Annotation {
	return table("hot_sales", map[string]string{
		"hot_sales_balanced": "available >= 0 AND held >= 0 AND sold >= 0 AND available + held + sold = total",
	})
}

// HotHold is one hold, or a tombstone.
type HotHold struct{ ent.Schema }

// Fields of a hold. The id is activity:sku:order.
func (HotHold) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").MaxLen(hotHoldLen).SchemaType(varchar(hotHoldLen)),
		text("buyer", nameLen),
		text("request", nameLen),
		field.Int64("quantity"),
		text("state", wordLen),
		field.Int64("created_at"),
	}
}

// Annotations of the table.
func (HotHold) Annotations() []schema.Annotation { return table("hot_holds", nil) }

// HotRequest names the hold that a buyer's request id made first.
type HotRequest struct{ ent.Schema }

// Fields of a request. The id is activity:sku:buyer:request, the hold an id of
// the table of holds.
func (HotRequest) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").MaxLen(hotRequestLen).SchemaType(varchar(hotRequestLen)),
		text("hold", hotHoldLen),
	}
}

// Annotations of the table.
func (HotRequest) Annotations() []schema.Annotation { return table("hot_requests", nil) }

// HotBuyer is what one buyer holds and has bought of one sale.
type HotBuyer struct{ ent.Schema }

// Fields of a buyer. The id is activity:sku:buyer, the cap the limit that the
// last grab was judged by.
func (HotBuyer) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").MaxLen(hotBuyerLen).SchemaType(varchar(hotBuyerLen)),
		field.Int64("units"),
		field.Int64("cap"),
	}
}

// Annotations of the table.
func (HotBuyer) Annotations() []schema.Annotation {
	return table("hot_buyers", map[string]string{"hot_buyers_within_cap": "units >= 0 AND units <= cap"})
}

// HotIntent is a queue entry: the intents of one sale that were accepted together.
type HotIntent struct{ ent.Schema }

// Fields of an entry. It is due at 0 until it is delivered; then that is when
// it may be reclaimed.
func (HotIntent) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("part"),
		text("sale", saleLen),
		field.Int64("epoch"),
		field.Int64("orders"),
		field.Int64("units"),
		field.Bytes("payload").MaxLen(1 << 20),
		field.Int64("attempts"),
		field.Int64("due_at"),
		field.Int64("created_at"),
	}
}

// Indexes of the table. The first is the line of a partition, the second sums
// up what a sale has in the queue.
func (HotIntent) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("part", "due_at", "id"),
		index.Fields("sale", "units"),
	}
}

// Annotations of the table.
func (HotIntent) Annotations() []schema.Annotation { return table("hot_intents", nil) }
