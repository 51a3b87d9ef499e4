package httpapi

import (
	"strings"

	"seckill/domain"
)

// scanGrab reads the body of a grab as nearly every client writes it: one flat
// object of plain integers and of strings without escapes. It is for speed
// alone. Whatever it does not know, or would have to refuse, it leaves to
// decodeGrab by saying false, so that there is one place that judges bodies.
func scanGrab(text string) (grabBody, bool) {
	s := scanner{rest: text}
	body := grabBody{quantity: 1}
	if !s.symbol('{') {
		return body, false
	}
	for {
		name, ok := s.text()
		if !ok || !s.symbol(':') || !s.member(&body, name) {
			return body, false
		}
		if s.symbol(',') {
			continue
		}
		ok = s.symbol('}') && s.end()
		return body, ok && body.sale.Activity > 0 && body.sale.SKU > 0
	}
}

// scanner is what is left of a text.
type scanner struct{ rest string }

// member reads the value of a name. The last value of a name counts, as in
// decodeGrab: each one overwrites what was there.
func (s *scanner) member(body *grabBody, name string) bool {
	switch name {
	case "activityId":
		n, ok := s.integer(1, domain.MaxInteger)
		body.sale.Activity = domain.ActivityID(n)
		return ok
	case "skuId":
		n, ok := s.integer(1, domain.MaxInteger)
		body.sale.SKU = domain.SKUID(n)
		return ok
	case "quantity":
		n, ok := s.integer(1, domain.MaxQuantity)
		body.quantity = n
		return ok
	case "userId":
		text, ok := s.name()
		body.buyer = domain.BuyerID(text)
		return ok
	case "requestId":
		text, ok := s.text()
		if !ok {
			return false
		}
		id, err := domain.ParseRequestID(text)
		body.request = id
		return err == nil
	}
	return s.skip()
}

// name reads a buyer's id: a string or a plain integer.
func (s *scanner) name() (string, bool) {
	s.space()
	if strings.HasPrefix(s.rest, `"`) {
		text, ok := s.text()
		if !ok {
			return "", false
		}
		_, err := domain.ParseBuyerID(text)
		return text, err == nil
	}
	before := s.rest
	_, ok := s.integer(0, domain.MaxInteger)
	return before[:len(before)-len(s.rest)], ok
}

// skip passes by a string or a plain integer that nobody asked for.
func (s *scanner) skip() bool {
	s.space()
	if strings.HasPrefix(s.rest, `"`) {
		_, ok := s.text()
		return ok
	}
	_, ok := s.integer(0, domain.MaxInteger)
	return ok
}

func (s *scanner) space() {
	for i := range len(s.rest) {
		switch s.rest[i] {
		case ' ', '\t', '\r', '\n':
		default:
			s.rest = s.rest[i:]
			return
		}
	}
	s.rest = ""
}

// symbol takes a character with the space before it, if it is next.
func (s *scanner) symbol(c byte) bool {
	s.space()
	if s.rest == "" || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

func (s *scanner) end() bool {
	s.space()
	return s.rest == ""
}

// text reads a string of printable ASCII characters without escapes.
func (s *scanner) text() (string, bool) {
	if !s.symbol('"') {
		return "", false
	}
	for i := range len(s.rest) {
		switch c := s.rest[i]; {
		case c == '"':
			text := s.rest[:i]
			s.rest = s.rest[i+1:]
			return text, true
		case c < ' ' || c > '~' || c == '\\':
			return "", false
		}
	}
	return "", false
}

// maxDigits is the length of domain.MaxInteger, so that none that is read overflows.
const maxDigits = 16

// integer reads a plain integer. What comes after it is for the caller to like:
// a fraction or an exponent is no symbol of any object.
func (s *scanner) integer(low, high int64) (int64, bool) {
	s.space()
	var n int64
	i := 0
	for i < len(s.rest) && i < maxDigits && s.rest[i] >= '0' && s.rest[i] <= '9' {
		n = 10*n + int64(s.rest[i]-'0')
		i++
	}
	if i == 0 || i > 1 && s.rest[0] == '0' || n < low || n > high {
		return 0, false
	}
	s.rest = s.rest[i:]
	return n, true
}
