package migrate

import (
	"embed"
	"io/fs"
)

//go:embed migrations/*/*.sql
var files embed.FS

// Migrations holds the versioned migrations of a dialect ("sqlite", "mysql" or
// "postgres"), in goose's format. An unknown dialect has none.
func Migrations(dialect string) fs.FS {
	// The path is a valid one, which is all that Sub can fail on.
	sub, err := fs.Sub(files, "migrations/"+dialect)
	if err != nil {
		return embed.FS{}
	}
	return sub
}
