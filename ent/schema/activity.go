package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Activity is one activity.
type Activity struct{ ent.Schema }

// Fields of an activity.
func (Activity) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id").Annotations(entsql.Annotation{Incremental: new(bool)}),
		title("name", 200),
		text("state", wordLen),
		field.Int64("starts_at"),
		field.Int64("ends_at"),
		field.Int64("payment_window_ms"),
	}
}

// Annotations of the table.
func (Activity) Annotations() []schema.Annotation { return table("activities", nil) }

// Stock is the stock row of one sale: what every buyer of it competes for.
type Stock struct{ ent.Schema }

// Fields of a stock row. The id is the sale as activity:sku.
func (Stock) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").MaxLen(saleLen).SchemaType(varchar(saleLen)),
		field.Int64("activity_id"),
		field.Int64("sku_id"),
		title("name", 200),
		field.Int64("price"),
		field.Int64("total"),
		field.Int64("per_user_limit"),
		field.Int("segments"),
		field.Int64("reserved").Default(0),
		field.Int64("sold").Default(0),
		field.Int64("epoch").Default(0),
		field.Int64("epoch_at").Default(0), // when the epoch began
	}
}

// Indexes of the table.
func (Stock) Indexes() []ent.Index {
	return []ent.Index{index.Fields("activity_id", "sku_id").Unique()}
}

// Annotations of the table.
func (Stock) Annotations() []schema.Annotation {
	return table("stocks", map[string]string{
		"stocks_within_total": "reserved >= 0 AND sold >= 0 AND reserved + sold <= total",
	})
}

// Quota is what one buyer holds and has bought of one sale.
type Quota struct{ ent.Schema }

// Fields of a quota. The id is activity:sku:buyer.
func (Quota) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").MaxLen(quotaLen).SchemaType(varchar(quotaLen)),
		field.Int64("used"),
		field.Int64("cap"),
	}
}

// Annotations of the table.
func (Quota) Annotations() []schema.Annotation {
	return table("quotas", map[string]string{"quotas_within_cap": "used >= 0 AND used <= cap"})
}
