package bootstrap

import (
	"os"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// Configured says whether a setting comes from the file, the environment or a
// flag, and not from the table of defaults. A command that can do without a
// server asks so before it uses one that nobody named. A file that cannot be
// read has nothing; Load says why.
func Configured(path string, flags *pflag.FlagSet, key string) bool {
	s := setting{key: key}
	if _, ok := os.LookupEnv(s.env()); ok {
		return true
	}
	if f := flags.Lookup(s.flag()); f != nil && f.Changed {
		return true
	}
	k := koanf.New(".")
	return path != "" && k.Load(file.Provider(path), yaml.Parser()) == nil && k.Exists(key)
}
