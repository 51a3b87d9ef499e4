package harness

import (
	"context"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

func TestMariaDBDatabases(t *testing.T) {
	t.Parallel()
	server := SharedMariaDB(t)
	databases(t, server)
	var charset string
	err := OpenSQL(t, server.NewDatabase(t)).QueryRow("SELECT @@character_set_database").Scan(&charset)
	if err != nil || charset != "utf8mb4" {
		t.Fatalf("character set %q, %v", charset, err)
	}
}

func TestPostgresDatabases(t *testing.T) {
	t.Parallel()
	databases(t, SharedPostgres(t))
}

// databases checks that databases of one server are apart.
func databases(t *testing.T, server *SQLServer) {
	t.Helper()
	for range 2 {
		if _, err := OpenSQL(t, server.NewDatabase(t)).Exec("CREATE TABLE a (id INT PRIMARY KEY)"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMariaDBKeepsCommits(t *testing.T) {
	t.Parallel()
	keepsCommits(t, MariaDB(t), MariaDB(t))
}

func TestPostgresKeepsCommits(t *testing.T) {
	t.Parallel()
	keepsCommits(t, Postgres(t), Postgres(t))
}

// keepsCommits checks that what was committed outlives a crash, in the server
// it was committed to and in no other.
func keepsCommits(t *testing.T, server, other *SQLServer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, statement := range []string{"CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (7)"} {
		if _, err := OpenSQL(t, server.URL).ExecContext(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	server.Kill()
	server.Restart()
	var id int
	if err := OpenSQL(t, server.URL).QueryRowContext(ctx, "SELECT id FROM a").Scan(&id); err != nil || id != 7 {
		t.Fatalf("after a crash: %d, %v", id, err)
	}
	if OpenSQL(t, other.URL).QueryRowContext(ctx, "SELECT id FROM a").Scan(&id) == nil {
		t.Fatal("the other server has it too")
	}
}
