package httpapi

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"seckill/domain"
)

// fields reads the members of a JSON object by strict rules, and keeps the
// first problem it met. Names match exactly; of a name that appears twice the
// last value counts; null is never taken for absent.
type fields struct {
	prefix string // of the names in problems, for objects inside objects
	values map[string]json.RawMessage
	err    error
}

// parseObject takes an object apart. Errors: ErrInvalid, naming the body.
func parseObject(data []byte) (*fields, error) {
	// The decoder would replace bad bytes, and take null for an empty object.
	if !utf8.Valid(data) {
		return nil, domain.Invalid("body", "is not UTF-8")
	}
	if !isObject(data) {
		return nil, domain.Invalid("body", "must be a JSON object")
	}
	f := &fields{}
	if err := json.Unmarshal(data, &f.values); err != nil {
		return nil, domain.Invalid("body", "is not one well-formed JSON object")
	}
	return f, nil
}

func isObject(data []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte{'{'})
}

func (f *fields) keep(err error) {
	if f.err == nil {
		f.err = err
	}
}

func (f *fields) refuse(name, format string, args ...any) {
	f.keep(domain.Invalid(f.prefix+name, format, args...))
}

func (f *fields) has(name string) bool {
	_, ok := f.values[name]
	return ok
}

// value finds a member that must be there.
func (f *fields) value(name string) (json.RawMessage, bool) {
	value, ok := f.values[name]
	if !ok {
		f.refuse(name, "is missing")
	}
	return value, ok
}

// integer reads a JSON number that is a plain integer: no sign, no fraction,
// no exponent.
func (f *fields) integer(name string, low, high int64) int64 {
	value, ok := f.value(name)
	if !ok {
		return 0
	}
	n, ok := plainInteger(string(value))
	if !ok || n < low || n > high {
		f.refuse(name, "must be an integer from %d to %d", low, high)
		return 0
	}
	return n
}

// difference reads a JSON number that is a plain integer with or without a minus.
func (f *fields) difference(name string) int64 {
	value, ok := f.value(name)
	if !ok {
		return 0
	}
	text, negative := strings.CutPrefix(string(value), "-")
	n, ok := plainInteger(text)
	switch {
	case !ok || n == 0:
		f.refuse(name, "must be an integer from -%d to %d, and not 0", int64(domain.MaxInteger), int64(domain.MaxInteger))
	case negative:
		return -n
	}
	return n
}

func (f *fields) integerOr(name string, low, high, absent int64) int64 {
	if !f.has(name) {
		return absent
	}
	return f.integer(name, low, high)
}

// plainInteger reads 0 … domain.MaxInteger in its one plain spelling.
func plainInteger(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > domain.MaxInteger || strconv.FormatInt(n, 10) != text {
		return 0, false
	}
	return n, true
}

// text reads a JSON string. The length is for the caller to judge.
func (f *fields) text(name string) string {
	value, ok := f.value(name)
	if !ok {
		return ""
	}
	var text string
	if value[0] != '"' || json.Unmarshal(value, &text) != nil {
		f.refuse(name, "must be a string")
		return ""
	}
	// The decoder puts this character where an escape names half of a pair.
	if strings.ContainsRune(text, utf8.RuneError) {
		f.refuse(name, "holds a character that is none")
		return ""
	}
	return text
}

func (f *fields) textOr(name, absent string) string {
	if !f.has(name) {
		return absent
	}
	return f.text(name)
}

// buyer reads a buyer's id. A number is taken as its decimal text, so 7 and
// "7" are the same buyer. Absent is "": who asks is for auth.go to say.
func (f *fields) buyer(name string) domain.BuyerID {
	value, ok := f.values[name]
	if !ok {
		return ""
	}
	if value[0] != '"' {
		if _, ok := plainInteger(string(value)); !ok {
			f.refuse(name, "must be a string or a plain integer from 0 to %d", int64(domain.MaxInteger))
			return ""
		}
		return domain.BuyerID(value)
	}
	id, err := domain.ParseBuyerID(f.text(name))
	f.keep(err)
	return id
}

func (f *fields) flag(name string) bool {
	if !f.has(name) {
		return false
	}
	switch string(f.values[name]) {
	case "true":
		return true
	case "false":
	default:
		f.refuse(name, "must be true or false")
	}
	return false
}

// time reads an RFC 3339 time. The hot store judges windows by milliseconds.
func (f *fields) time(name string) time.Time {
	text := f.text(name)
	if f.err != nil {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		f.refuse(name, "must be an RFC 3339 time")
	}
	return t.UTC().Truncate(time.Millisecond)
}

func (f *fields) duration(name string, absent time.Duration) time.Duration {
	if !f.has(name) {
		return absent
	}
	d, err := time.ParseDuration(f.text(name))
	if err != nil {
		f.refuse(name, "must be a duration such as 30m")
	}
	return d
}

// objects reads an array of objects, each of which holds at most the names.
func (f *fields) objects(name string, names ...string) []*fields {
	value, ok := f.value(name)
	if !ok {
		return nil
	}
	var items []json.RawMessage
	if value[0] != '[' || json.Unmarshal(value, &items) != nil {
		f.refuse(name, "must be an array")
		return nil
	}
	var objects []*fields
	for _, item := range items {
		if !isObject(item) {
			f.refuse(name, "must hold objects only")
			return nil
		}
		object := &fields{prefix: f.prefix + name + "."}
		if json.Unmarshal(item, &object.values) != nil {
			f.refuse(name, "must hold objects only")
			return nil
		}
		object.only(names...)
		objects = append(objects, object)
	}
	return objects
}

// maxEcho bounds how much of an unknown field's name is said back. Bytes.
const maxEcho = 64

// only refuses every member that is not one of the names.
func (f *fields) only(names ...string) {
	for _, name := range slices.Sorted(maps.Keys(f.values)) {
		if !slices.Contains(names, name) {
			f.refuse(strings.ToValidUTF8(name[:min(len(name), maxEcho)], ""), "is not known here")
			return
		}
	}
}
