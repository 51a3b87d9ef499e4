package e2e

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"seckill/test/harness"
)

const secret = "hush-hush-4711"

// TestRefusesToStart: what cannot work ends the program at once, with a message
// that names the setting and says what to do, and that keeps secrets.
// covers O6 N8 Q10
func TestRefusesToStart(t *testing.T) {
	embedded := newCell(t, pairing{"memory", "sqlite"})
	redis := newCell(t, pairing{"lua", "sqlite"})
	nowhere := harness.FreeAddr(t)
	evicting := harness.Redis(t, harness.WithRedisConfig("maxmemory", "64mb"), harness.WithRedisConfig("maxmemory-policy", "allkeys-lru"))
	lossy := lossyDatabase(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	unmigrated := "sqlite://" + filepath.ToSlash(filepath.Join(t.TempDir(), "new.db"))
	for _, refusal := range []struct {
		name string
		cell *cell
		env  []string
		file string // configuration file
		says []string
	}{
		{"evicting Redis", redis, []string{"SECKILL_REDIS_ADDRS=" + evicting.Addr}, "", []string{"redis", "maxmemory-policy is allkeys-lru", "noeviction", "SECKILL_ALLOW_EVICTION"}},
		{"lossy PostgreSQL", embedded, []string{"SECKILL_DATABASE=" + lossy}, "", []string{"database", "synchronous_commit is off", "SECKILL_ALLOW_LOSSY_DATABASE"}},
		{"no Redis", redis, []string{"SECKILL_REDIS_ADDRS=" + nowhere, "SECKILL_REDIS_PASSWORD=" + secret}, "", []string{"redis.addrs", nowhere, "start Redis"}},
		{"Redis password", redis, []string{"SECKILL_REDIS_USERNAME=someone", "SECKILL_REDIS_PASSWORD=" + secret}, "", []string{"redis", "password"}},
		{"no MariaDB", embedded, []string{"SECKILL_DATABASE=mysql://someone:" + secret + "@" + nowhere + "/seckill"}, "", []string{"database", nowhere, "SECKILL_DATABASE"}},
		{"no PostgreSQL", embedded, []string{"SECKILL_DATABASE=postgres://someone:" + secret + "@" + nowhere + "/seckill"}, "", []string{"database", nowhere, "SECKILL_DATABASE"}},
		{"no folder", embedded, []string{"SECKILL_DATABASE=sqlite:///nowhere/at/all/seckill.db"}, "", []string{"database", "SECKILL_DATABASE"}},
		{"no database named", embedded, []string{"SECKILL_DATABASE="}, "", []string{"database", "sqlite:///"}},
		{"unknown database", embedded, []string{"SECKILL_DATABASE=oracle://someone:" + secret + "@" + nowhere + "/x"}, "", []string{"database", "mysql://"}},
		{"database is no URL", embedded, []string{"SECKILL_DATABASE=mysql://someone:" + secret + "@%zz/x"}, "", []string{"database"}},
		{"pending migrations", embedded, []string{"SECKILL_DATABASE=" + unmigrated}, "", []string{"pending migrations", "seckill migrate"}},
		{"consumers", embedded, []string{"SECKILL_CONSUMERS=0"}, "", []string{"consumers", "from 1"}},
		{"no number", embedded, []string{"SECKILL_CONSUMERS=many"}, "", []string{"consumers", "SECKILL_CONSUMERS", "integer"}},
		{"no duration", embedded, []string{"SECKILL_PAYMENT_WINDOW=soon"}, "", []string{"payment_window", "SECKILL_PAYMENT_WINDOW", "duration"}},
		{"short lease", embedded, []string{"SECKILL_LOCK_TTL=500ms"}, "", []string{"lock.ttl", "1s"}},
		{"stock", embedded, []string{"SECKILL_STOCK=magic"}, "", []string{"stock", "lua"}},
		{"accept", embedded, []string{"SECKILL_ACCEPT=maybe"}, "", []string{"accept", "queued", "committed"}},
		{"log level", embedded, []string{"SECKILL_LOG_LEVEL=loud"}, "", []string{"log.level", "debug"}},
		{"address", embedded, []string{"SECKILL_ADDR=somewhere"}, "", []string{"addr", "host:port"}},
		{"address in use", embedded, []string{"SECKILL_ADDR=" + taken.Addr().String()}, "", []string{taken.Addr().String(), "in use", "addr", "SECKILL_ADDR"}},
		{"unknown key", embedded, nil, "consumer: 4\n", []string{"consumer", "no setting"}},
		{"unknown deep key", embedded, nil, "redis:\n  adrs: [\"127.0.0.1:6379\"]\n", []string{"redis.adrs", "no setting"}},
		{"bad value in the file", embedded, nil, "batch: lots\n", []string{"batch", "integer"}},
		{"no YAML", embedded, nil, "batch: [\n", []string{"config"}},
	} {
		t.Run(refusal.name, func(t *testing.T) {
			args := []string{"serve"}
			if refusal.file != "" {
				path := filepath.Join(t.TempDir(), "config.yaml")
				if err := os.WriteFile(path, []byte(refusal.file), 0o600); err != nil {
					t.Fatal(err)
				}
				args = append(args, "--config", path)
			}
			refusal.cell.refuses(t, args, refusal.env, refusal.says...)
		})
	}
}

// lossyDatabase is one whose sessions do not wait for the disk, with its tables
// made.
func lossyDatabase(t *testing.T) string {
	t.Helper()
	lossy := harness.SharedPostgres(t).NewDatabase(t)
	mark := "?"
	if strings.Contains(lossy, "?") {
		mark = "&"
	}
	lossy += mark + "synchronous_commit=off"
	migrate := harness.Start(t, harness.Seckill(t), []string{"migrate"}, []string{"SECKILL_DATABASE=" + lossy})
	if code := migrate.Wait(t, startBound); code != 0 {
		t.Fatalf("seckill migrate: exit code %d", code)
	}
	return lossy
}

// TestUnsafeStoresOnRequest: what it would refuse, it takes when told to.
// covers N8
func TestUnsafeStoresOnRequest(t *testing.T) {
	evicting := harness.Redis(t, harness.WithRedisConfig("maxmemory-policy", "allkeys-lru"))
	c := newCell(t, pairing{"lua", "postgres"}, "SECKILL_DATABASE="+lossyDatabase(t), "SECKILL_REDIS_ADDRS="+evicting.Addr,
		"SECKILL_ALLOW_EVICTION=true", "SECKILL_ALLOW_LOSSY_DATABASE=true")
	c.start(t)
}

// refuses starts the program and wants it to end soon, with a message.
func (c *cell) refuses(t *testing.T, args, env []string, says ...string) {
	t.Helper()
	n := &node{addr: harness.FreeAddr(t), admin: harness.FreeAddr(t)}
	p := harness.Start(t, c.program, args, append(n.environment(c), env...))
	code := p.Wait(t, startBound)
	if code <= 0 {
		t.Errorf("exit code %d", code)
	}
	said := p.Stdout.String() + p.Stderr.String()
	for _, word := range says {
		if !strings.Contains(said, word) {
			t.Errorf("the message does not say %q", word)
		}
	}
	for _, hidden := range []string{secret, token, passwordOf(c)} {
		if hidden != "" && strings.Contains(said, hidden) {
			t.Errorf("the message tells the secret %q", hidden)
		}
	}
	if strings.Contains(said, "goroutine ") {
		t.Error("the message is a stack of calls")
	}
	if lines := strings.Count(strings.TrimSpace(p.Stderr.String()), "\n") + 1; lines > 10 {
		t.Errorf("the message has %d lines", lines)
	}
}

// passwordOf is the password in the cell's database URL, "" without one.
func passwordOf(c *cell) string {
	for _, entry := range c.env {
		if text, ok := strings.CutPrefix(entry, "SECKILL_DATABASE="); ok {
			if parsed, err := url.Parse(text); err == nil {
				password, _ := parsed.User.Password()
				return password
			}
		}
	}
	return ""
}

// TestRefusesToDisagree: a node does not join a deployment that it does not fit,
// nor a database that a newer program has changed.
// covers Q10
func TestRefusesToDisagree(t *testing.T) {
	for _, ledger := range []string{"mariadb", "postgres"} {
		t.Run(ledger, func(t *testing.T) {
			c := newCell(t, pairing{"lua", ledger})
			c.nodes = c.nodes[:1]
			c.start(t)
			c.refuses(t, []string{"serve"}, []string{"SECKILL_REDIS_PARTITIONS=8"}, "redis.partitions", "8", "16")
			// With its stock elsewhere it would begin new epochs under the others.
			c.refuses(t, []string{"serve"}, []string{"SECKILL_STOCK=memory"}, "stock", "memory", "lua")
			c.refuses(t, []string{"serve"}, []string{"SECKILL_REDIS_PREFIX=elsewhere"}, "redis.prefix", "elsewhere")
			c.refuses(t, []string{"reconcile"}, []string{"SECKILL_REDIS_PREFIX=elsewhere"}, "redis.prefix", "elsewhere")
			c.refuses(t, []string{"serve"}, []string{"SECKILL_LOCK_SCOPE=activity"}, "lock.scope", "activity", "sale")

			database := harness.OpenSQL(t, c.setting("SECKILL_DATABASE"))
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			if _, err := database.ExecContext(ctx, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)"); err != nil {
				t.Fatal(err)
			}
			c.refuses(t, []string{"serve"}, nil, "database", "newer", "99999")
			c.refuses(t, []string{"reconcile"}, nil, "database", "newer", "99999")
		})
	}
}

// setting is what the cell's environment says.
func (c *cell) setting(name string) (value string) {
	for _, entry := range c.env {
		if text, ok := strings.CutPrefix(entry, name+"="); ok {
			value = text
		}
	}
	return value
}

// TestWarns: more consumers than half of the pool are said and taken.
// covers Q2
func TestWarns(t *testing.T) {
	c := serving(t, pairing{"memory", "sqlite"}, "SECKILL_CONSUMERS=5", "SECKILL_DATABASE_POOL=8")
	activity := c.sell(t, sale{total: 1})
	c.take(t, c.here(), activity, "ann")
	if said := c.here().process.Stderr.String(); !strings.Contains(said, `"WARN"`) || !strings.Contains(said, "database pool") {
		t.Error("no warning")
	}
	quiet := serving(t, pairing{"memory", "sqlite"}, "SECKILL_CONSUMERS=4", "SECKILL_DATABASE_POOL=8")
	if said := quiet.here().process.Stderr.String(); strings.Contains(said, "database pool") {
		t.Error("a warning about half of the pool")
	}
}

// TestSettingsBeatEachOther: a flag beats the environment, which beats the file.
// covers O6
func TestSettingsBeatEachOther(t *testing.T) {
	c := newCell(t, pairing{"memory", "sqlite"})
	file := filepath.Join(t.TempDir(), "config.yaml")
	fromFile, fromEnv, fromFlag := harness.FreeAddr(t), harness.FreeAddr(t), harness.FreeAddr(t)
	text := fmt.Sprintf("addr: %s\nadmin:\n  addr: %s\n", fromFile, fromFile)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, layers := range []struct {
		args, env []string
		want      string
	}{
		{nil, nil, fromFile},
		{nil, []string{"SECKILL_ADDR=" + fromEnv}, fromEnv},
		{[]string{"--addr", fromFlag}, []string{"SECKILL_ADDR=" + fromEnv}, fromFlag},
	} {
		admin := harness.FreeAddr(t)
		p := harness.Start(t, c.program, append([]string{"serve", "--config", file}, layers.args...),
			append(append(c.env, "SECKILL_ADMIN_ADDR="+admin), layers.env...))
		p.WaitFor(t, "http://"+layers.want+"/readyz", startBound)
		p.WaitFor(t, "http://"+admin+"/readyz", startBound)
		p.Kill(t)
	}
}
