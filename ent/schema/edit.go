package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// StockEdit is an operator's change of a sale's total. Rows are never changed.
type StockEdit struct{ ent.Schema }

// Fields of an edit. The subject is the sale and the edit's key.
func (StockEdit) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		text("sale", saleLen),
		text("subject", quotaLen),
		field.Int64("delta"),
		field.Int64("total"),
		title("reason", 200),
		field.Int64("created_at"),
	}
}

// Indexes of the table.
func (StockEdit) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("subject").Unique(),
		index.Fields("sale", "id"),
	}
}

// Annotations of the table.
func (StockEdit) Annotations() []schema.Annotation { return table("stock_edits", nil) }
