package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"seckill/test/harness"
)

const (
	token      = "an-operator-of-the-measurements"
	startBound = 60 * time.Second
)

// world is a deployment to be measured: stores, and nodes of the program.
type world struct {
	program  string
	folder   string
	redis    *harness.RedisServer
	database *harness.SQLServer
	ledger   *sql.DB
	closers  []func() error
}

// openWorld starts the stores and migrates the ledger. MariaDB has the buffer
// pool and log that it has by default; the tests' own are smaller.
func openWorld() (*world, error) {
	w := &world{}
	return w, w.keep(func() (err error) {
		if w.program, err = harness.BuildSeckill(); err != nil {
			return fmt.Errorf("build seckill: %w", err)
		}
		if w.folder, err = os.MkdirTemp("", "seckill-load-"); err != nil {
			return err
		}
		w.closers = append(w.closers, func() error { return os.RemoveAll(w.folder) })
		if w.redis, err = harness.StartRedis(); err != nil {
			return err
		}
		w.closers = append(w.closers, w.redis.Close)
		w.database, err = harness.StartMariaDB("--innodb-buffer-pool-size=128M", "--innodb-log-file-size=96M")
		if err != nil {
			return err
		}
		w.closers = append(w.closers, w.database.Close)
		if w.ledger, err = openLedger(w.database.URL); err != nil {
			return err
		}
		w.closers = append(w.closers, w.ledger.Close)
		return w.migrate()
	})
}

// keep closes the world when a step of its making fails.
func (w *world) keep(step func() error) error {
	err := step()
	if err != nil {
		err = errors.Join(err, w.close())
	}
	return err
}

func (w *world) close() error {
	var all []error
	for i := len(w.closers) - 1; i >= 0; i-- {
		all = append(all, w.closers[i]())
	}
	w.closers = nil
	return errors.Join(all...)
}

func openLedger(url string) (*sql.DB, error) {
	rest := strings.TrimPrefix(url, "mysql://")
	user, place, _ := strings.Cut(rest, "@")
	host, name, _ := strings.Cut(place, "/")
	config, err := mysql.ParseDSN(fmt.Sprintf("%s@tcp(%s)/%s", user, host, name))
	if err != nil {
		return nil, err
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

func (w *world) env(more ...string) []string {
	return append([]string{
		"SECKILL_STOCK=lua", "SECKILL_REDIS_ADDRS=" + w.redis.Addr, "SECKILL_DATABASE=" + w.database.URL,
		"SECKILL_ADMIN_TOKEN=" + token, "SECKILL_RECONCILE_EVERY=0",
	}, more...)
}

func (w *world) migrate() error {
	log, err := os.Create(filepath.Join(w.folder, "migrate.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	p, err := harness.Spawn(w.program, []string{"migrate"}, w.env(), log)
	if err != nil {
		return err
	}
	if code := p.Code(startBound); code != 0 {
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("migrate: exit %d\n%s", code, text)
	}
	return nil
}

// server is a child process that serves HTTP.
type server struct {
	*harness.Process
	addr  string
	admin string
	log   string
}

// serve starts a node of the program. Its log goes to a file, as a service's does.
func (w *world) serve(name string, env ...string) (*server, error) {
	admin, release, err := harness.FreePort()
	if err != nil {
		return nil, err
	}
	defer release()
	return w.start(name, w.program, func(addr string) []string {
		return []string{"serve", "--addr", addr, "--admin-addr", admin}
	}, admin, w.env(env...))
}

// bare starts the yardstick.
func (w *world) bare() (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return w.start("bare", self, func(addr string) []string { return []string{"bare", "--addr", addr} }, "", nil)
}

func (w *world) start(name, program string, args func(addr string) []string, admin string, env []string) (*server, error) {
	addr, release, err := harness.FreePort()
	if err != nil {
		return nil, err
	}
	defer release()
	log, err := os.Create(filepath.Join(w.folder, name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	process, err := harness.Spawn(program, args(addr), env, log)
	if err != nil {
		return nil, err
	}
	w.closers = append(w.closers, process.End)
	s := &server{Process: process, addr: addr, admin: admin, log: log.Name()}
	if err := process.Await("http://"+addr+"/healthz", startBound); err != nil {
		text, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("%s: %w\n%.4000s", name, err, text)
	}
	return s, nil
}

// operate calls an operator's route.
func (s *server) operate(ctx context.Context, method, path, body string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+s.admin+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 64<<20))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s %s", method, path, response.Status, answer)
	}
	return answer, err
}

const sku = 2001

// openSale puts an activity with so many units on sale.
func (s *server) openSale(ctx context.Context, activity, total int64) error {
	now := time.Now()
	path := fmt.Sprintf("/api/admin/activities/%d", activity)
	if _, err := s.operate(ctx, "PUT", path, fmt.Sprintf(
		`{"name":"Load","startsAt":%q,"endsAt":%q,"skus":[{"skuId":%d,"name":"Unit","total":%d,"perUserLimit":1,"price":9900}]}`,
		now.Add(-time.Hour).Format(time.RFC3339), now.Add(24*time.Hour).Format(time.RFC3339), sku, total)); err != nil {
		return err
	}
	for _, step := range []string{"/preheat", "/open"} {
		if _, err := s.operate(ctx, "POST", path+step, ""); err != nil {
			return err
		}
	}
	return nil
}

// committed is how many units of an activity the ledger has orders for.
func (w *world) committed(ctx context.Context, activity int64) (units int64, err error) {
	err = w.ledger.QueryRowContext(ctx, "SELECT reserved FROM stocks WHERE id = ?", fmt.Sprintf("%d:%d", activity, sku)).Scan(&units)
	return units, err
}

// orders counts an activity's orders one by one.
func (w *world) orders(ctx context.Context, activity int64) (n int64, err error) {
	err = w.ledger.QueryRowContext(ctx, "SELECT COUNT(*) FROM orders WHERE activity_id = ?", activity).Scan(&n)
	return n, err
}
