package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
)

// Fence is the newest fencing number of a lock.
type Fence struct{ ent.Schema }

// Fields of a fence.
func (Fence) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").StorageKey("name").MaxLen(fenceLen).SchemaType(varchar(fenceLen)),
		field.Int64("number"),
	}
}

// Annotations of the table.
func (Fence) Annotations() []schema.Annotation { return table("fences", nil) }

// Deployment is a value that all nodes agree on.
type Deployment struct{ ent.Schema }

// Fields of a deployment value.
func (Deployment) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").StorageKey("name").MaxLen(fenceLen).SchemaType(varchar(fenceLen)),
		text("value", 500),
	}
}

// Annotations of the table.
func (Deployment) Annotations() []schema.Annotation { return table("deployments", nil) }
