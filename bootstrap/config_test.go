package bootstrap

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"seckill/application"
	"seckill/domain"
)

func load(t *testing.T, fileText string, env map[string]string, args ...string) (Config, error) {
	t.Helper()
	path := ""
	if fileText != "" {
		path = filepath.Join(t.TempDir(), "seckill.yaml")
		if err := os.WriteFile(path, []byte(fileText), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range env {
		t.Setenv(name, value)
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return Load(path, flags, map[string]any{"database": "sqlite:///x.db"})
}

// covers O6
func TestFlagBeatsEnvironmentBeatsFileBeatsDefault(t *testing.T) {
	const text = "consumers: 5\nredis:\n  pool: 50\n  addrs: [\"h:1\", \"h:2\"]\nlock:\n  ttl: 4s\n"
	config, err := load(t, text,
		map[string]string{"SECKILL_CONSUMERS": "6", "SECKILL_REDIS_POOL": "60", "SECKILL_RECONCILE_REPAIR": "false"},
		"--consumers", "7")
	if err != nil {
		t.Fatal(err)
	}
	if config.Consumers != 7 || config.Redis.Pool != 60 || config.Lock.TTL != 4*time.Second || config.ReconcileRepair ||
		config.Lock.Wait != 200*time.Millisecond || !reflect.DeepEqual(config.Redis.Addrs, []string{"h:1", "h:2"}) {
		t.Errorf("%+v", config)
	}
	if config.Accept != application.AcceptQueued {
		t.Errorf("accept is %s with Redis", config.Accept)
	}
}

// covers Q9
func TestMemoryAnswersAfterTheCommit(t *testing.T) {
	config, err := load(t, "", map[string]string{"SECKILL_STOCK": "memory"})
	if err != nil || config.Accept != application.AcceptCommitted {
		t.Errorf("accept is %q, %v", config.Accept, err)
	}
}

func TestSeveralAddressesFromTheEnvironment(t *testing.T) {
	config, err := load(t, "", map[string]string{"SECKILL_REDIS_ADDRS": "a:1,b:2"})
	if err != nil || !reflect.DeepEqual(config.Redis.Addrs, []string{"a:1", "b:2"}) {
		t.Errorf("%v, %v", config.Redis.Addrs, err)
	}
}

func TestBadValuesAreNamed(t *testing.T) {
	for name, value := range map[string]string{
		"SECKILL_CONSUMERS": "0", "SECKILL_LOCK_TTL": "999ms", "SECKILL_STOCK": "tape", "SECKILL_ACCEPT": "maybe",
		"SECKILL_AUTH": "none", "SECKILL_ADDR": "8080", "SECKILL_REDIS_PARTITIONS": "many", "SECKILL_PAYMENT_WINDOW": "soon",
		"SECKILL_REDIS_ADDRS": "here", "SECKILL_REDIS_PREFIX": "{x}", "SECKILL_LOG_LEVEL": "loud", "SECKILL_RECONCILE_REPAIR": "perhaps",
		"SECKILL_ADMIN_ADDR": "127.0.0.1:8080",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, "", map[string]string{name: value})
			var field *domain.FieldError
			if !errors.As(err, &field) || (setting{key: field.Field}).env() != name {
				t.Errorf("%s=%s gives %v", name, value, err)
			}
		})
	}
}

func TestUnknownKeysInAFileAreNamed(t *testing.T) {
	_, err := load(t, "redis:\n  pools: 3\n", nil)
	var field *domain.FieldError
	if !errors.As(err, &field) || field.Field != "redis.pools" {
		t.Errorf("error is %v", err)
	}
}

// TestTableAndConfigAgree: a setting without a field, or a field without a
// setting, would be read by nobody.
func TestTableAndConfigAgree(t *testing.T) {
	fields := map[string]bool{}
	var walk func(prefix string, typ reflect.Type)
	walk = func(prefix string, typ reflect.Type) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			key := prefix + f.Tag.Get("koanf")
			if f.Type.Kind() == reflect.Struct {
				walk(key+".", f.Type)
			} else {
				fields[key] = true
			}
		}
	}
	walk("", reflect.TypeFor[Config]())
	for _, s := range settings {
		if !fields[s.key] {
			t.Errorf("setting %s has no field", s.key)
		}
		delete(fields, s.key)
	}
	for key := range fields {
		t.Errorf("field %s has no setting", key)
	}
}

// covers O6
func TestTheReadmeNamesEverySetting(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range settings {
		if !strings.Contains(string(text), "| `"+s.key+"` |") {
			t.Errorf("README.md lacks the setting %s", s.key)
		}
	}
}
