package system

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"seckill/domain"
)

// covers S8
func TestOrderIDs(t *testing.T) {
	sale := domain.SaleID{Activity: 1001, SKU: 2001}
	const n = 10_000
	ids := make([]domain.OrderID, n)
	for i := range ids {
		ids[i] = IDs{}.OrderID(sale)
	}
	if !slices.IsSorted(ids) {
		t.Error("ids of one process do not sort by time")
	}
	if distinct := slices.Compact(slices.Clone(ids)); len(distinct) != n {
		t.Errorf("%d ids are repeated", n-len(distinct))
	}
	for _, id := range ids {
		if !strings.HasPrefix(string(id), "SK1001") {
			t.Fatalf("%s does not name the activity", id)
		}
		if parsed, err := domain.ParseOrderID(string(id)); err != nil || parsed.Sale() != sale {
			t.Fatalf("%s parses to %v, %v", id, parsed.Sale(), err)
		}
	}
	// The last 62 bits are random: what two ids share there is chance.
	if a, b := ids[0][len(ids[0])-12:], ids[1][len(ids[1])-12:]; a == b {
		t.Errorf("%s and %s have the same random part", ids[0], ids[1])
	}
}

// The random parts of ids do not repeat, whoever asks and however many at once.
//
// covers S8
func TestRandomPartsDiffer(t *testing.T) {
	sale := domain.SaleID{Activity: 1001, SKU: 2001}
	const callers, each = 8, 500
	parts := make([][]string, callers)
	var running sync.WaitGroup
	for i := range parts {
		running.Go(func() {
			for range each {
				id := string(IDs{}.OrderID(sale))
				parts[i] = append(parts[i], id[len(id)-12:])
			}
		})
	}
	running.Wait()
	all := slices.Concat(parts...)
	slices.Sort(all)
	if distinct := len(slices.Compact(all)); distinct != callers*each {
		t.Errorf("%d of %d random parts are repeated", callers*each-distinct, callers*each)
	}
}

func BenchmarkOrderID(b *testing.B) {
	sale := domain.SaleID{Activity: 1001, SKU: 2001}
	b.ReportAllocs()
	for b.Loop() {
		IDs{}.OrderID(sale)
	}
}
