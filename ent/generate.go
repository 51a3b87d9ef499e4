// Package ent is the ledger's generated access to SQL. The tables are described
// in ent/schema; how they are made and changed is in ent/migrate.
package ent

//go:generate go tool ent generate --feature sql/upsert,sql/lock,sql/execquery,sql/modifier ./schema
