package domain

import (
	"errors"
	"strings"
	"testing"
)

// covers S7, A6
func TestParseInteger(t *testing.T) {
	for _, good := range []string{"1", "10", "9007199254740991"} {
		if _, err := ParseInteger("skuId", good); err != nil {
			t.Errorf("%q is refused: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "0", "-1", "+1", "01", "1.0", "1.5", "1e3", "0x10", "NaN", "Inf", " 1", "1 ", "1_000", "９",
		"9007199254740992", "99999999999999999999",
	} {
		_, err := ParseInteger("skuId", bad)
		var field *FieldError
		if !errors.As(err, &field) || field.Field != "skuId" || !errors.Is(err, ErrInvalid) {
			t.Errorf("%q gives %v", bad, err)
		}
	}
}

// covers A6
func TestNames(t *testing.T) {
	for _, good := range []string{"7", "a", "A.b_c@d-e", strings.Repeat("x", 64)} {
		if _, err := ParseBuyerID(good); err != nil {
			t.Errorf("%q is refused: %v", good, err)
		}
	}
	for _, bad := range []string{"", strings.Repeat("x", 65), "{1}", "a:b", "a|b", "a b", "a\n", "é", "😀", "a\x00", "*"} {
		if _, err := ParseRequestID(bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q gives %v", bad, err)
		}
	}
}

// covers S8
func TestOrderIDNamesItsSale(t *testing.T) {
	sale := SaleID{1001, MaxInteger}
	id := NewOrderID(sale, "0k3j")
	if id != "SK1001-9007199254740991-0k3j" {
		t.Errorf("id is %s", id)
	}
	if id.Sale() != sale || id.Late().Sale() != sale || id.Late().Order() != id || id.Order() != id {
		t.Error("an order id and its late hold do not lead back to the order")
	}
	for _, bad := range []string{
		"", "SK", "SK1-2", "SK1-2-", "SK0-2-a", "SK01-2-a", "SK1-2-A", "SK1-2-a-late", "SK1-2-a:b", "SK1-2-{a}",
		"sk1-2-a", "SK1-2-a\n", "SK9007199254740992-1-a", "SK1-2-" + strings.Repeat("a", 99),
	} {
		if _, err := ParseOrderID(bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q is taken for an order id", bad)
		}
	}
}

// covers A6: whatever comes in, nothing panics, and what passes survives a round trip.
func FuzzIDs(f *testing.F) {
	for _, seed := range []string{"SK1001-2001-0abc", "1001:2001", "7", "a.b", "{x}", "SK1-1-1-late", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if id, err := ParseOrderID(text); err == nil {
			sale := id.Sale()
			if !strings.HasPrefix(text, string(NewOrderID(sale, ""))) {
				t.Errorf("%q leads to sale %v", text, sale)
			}
		}
		if sale, err := ParseSaleID(text); err == nil && sale.String() != text {
			t.Errorf("%q becomes %q", text, sale)
		}
		if _, err := ParseBuyerID(text); err == nil && strings.ContainsAny(text, "{}:|\n\x00 ") {
			t.Errorf("%q passes for a buyer", text)
		}
	})
}
