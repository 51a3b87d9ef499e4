package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Order is one order.
type Order struct{ ent.Schema }

// Fields of an order. The request is NULL when the buyer gave none, and for an
// order rejected because its request has another order.
func (Order) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").MaxLen(orderLen).SchemaType(varchar(orderLen)),
		field.Int64("activity_id"),
		field.Int64("sku_id"),
		text("buyer", nameLen),
		field.String("request").MaxLen(nameLen).SchemaType(varchar(nameLen)).Optional().Nillable(),
		field.Int64("quantity"),
		field.Int64("epoch"),
		text("status", wordLen),
		text("reason", wordLen),
		text("payment", nameLen),
		text("hold", holdLen),
		field.Int64("created_at"),
		field.Int64("expires_at"),
		field.Int64("paid_at"),
		field.Int64("closed_at"),
	}
}

// Indexes of the table. The last one lists a sale's orders by id, and has all
// that its account is summed from.
func (Order) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("activity_id", "sku_id", "buyer", "request").Unique(),
		index.Fields("status", "expires_at", "activity_id", "sku_id"),
		index.Fields("activity_id", "sku_id", "id", "status", "quantity"),
	}
}

// Annotations of the table.
func (Order) Annotations() []schema.Annotation {
	return table("orders", map[string]string{"orders_quantity": "quantity > 0"})
}

// Effect is a decision that the hot store and the subscribers have yet to hear
// of. The order is kept as it was then: its row may have moved on.
type Effect struct{ ent.Schema }

// Fields of an effect. Units are those of the hold, 0 when it was never taken.
func (Effect) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		text("hold", holdLen),
		text("status", wordLen),
		field.Int64("activity_id"),
		field.Int64("sku_id"),
		field.Int64("units"),
		text("snapshot", 2000),
		field.Int64("created_at"),
	}
}

// Indexes of the table. A hold comes to a status once.
func (Effect) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("hold", "status").Unique(),
		index.Fields("activity_id", "sku_id"),
	}
}

// Annotations of the table.
func (Effect) Annotations() []schema.Annotation { return table("outbox", nil) }

// DeadLetter is what could not be placed.
type DeadLetter struct{ ent.Schema }

// Fields of a dead letter. The subject is the order id, or the payload's digest.
func (DeadLetter) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		text("subject", holdLen),
		text("intent", 2000),
		field.Bytes("payload").MaxLen(1 << 20),
		text("reason", 1000),
		field.Int64("created_at"),
	}
}

// Indexes of the table.
func (DeadLetter) Indexes() []ent.Index {
	return []ent.Index{index.Fields("subject").Unique()}
}

// Annotations of the table.
func (DeadLetter) Annotations() []schema.Annotation { return table("dead_letters", nil) }
