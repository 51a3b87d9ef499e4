package sqlstore

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	atlas "ariga.io/atlas/sql/schema"
	"entgo.io/ent/dialect/sql/schema"
)

// The migrations are written by hand, so this asks ent what it would still
// change: nothing.
func TestMigrationsMakeWhatTheSchemaDescribes(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		var changes bytes.Buffer
		err := s.write.Schema.WriteTo(context.Background(), &changes, schema.WithDiffHook(withoutCollations))
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.TrimSpace(changes.String()); text != "" {
			t.Errorf("ent would still run:\n%s", text)
		}
	})
}

// withoutCollations leaves out what only the migrations say: ent has one name
// for the collation of a column in all databases.
func withoutCollations(next schema.Differ) schema.Differ {
	return schema.DiffFunc(func(current, desired *atlas.Schema) ([]atlas.Change, error) {
		changes, err := next.Diff(current, desired)
		for _, change := range changes {
			if table, ok := change.(*atlas.ModifyTable); ok {
				table.Changes = slices.DeleteFunc(table.Changes, func(c atlas.Change) bool {
					column, ok := c.(*atlas.ModifyColumn)
					return ok && column.Change&^(atlas.ChangeCharset|atlas.ChangeCollate) == 0
				})
			}
		}
		return slices.DeleteFunc(changes, func(c atlas.Change) bool {
			table, ok := c.(*atlas.ModifyTable)
			return ok && len(table.Changes) == 0
		}), err
	})
}
