package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/adapters/redisstock"
	"seckill/adapters/system"
	"seckill/domain"
)

const callers = 1000

// openedStock is the Redis stock as the program uses it, in this process.
type openedStock struct {
	*redisstock.Stock
	client   redis.UniversalClient
	blocking redis.UniversalClient
	activity atomic.Int64
	buyer    atomic.Int64
}

// place is where grabs go: sales of one activity, by SKU from 1 on.
type place struct {
	activity int64
	skus     int
	size     int // as it is reported
}

func (p place) sale(i int64) domain.SaleID {
	return domain.SaleID{Activity: domain.ActivityID(p.activity), SKU: domain.SKUID(1 + i%int64(p.skus))}
}

func openStock(addr string) (*openedStock, error) {
	client, blocking, err := redisstock.Connect(redisstock.ConnectConfig{Addrs: []string{addr}, ReadTimeout: 10 * time.Second})
	if err != nil {
		return nil, err
	}
	stock, err := redisstock.New(redisstock.Config{Client: client, Blocking: blocking})
	return &openedStock{Stock: stock, client: client, blocking: blocking}, err
}

func (s *openedStock) close() {
	_, _ = s.client.Close(), s.blocking.Close()
}

// sales opens n sales of a new activity, in which a buyer may have many units.
func (s *openedStock) sales(ctx context.Context, n int) (place, error) {
	p := place{activity: s.activity.Add(1), skus: n, size: n}
	now := time.Now()
	gate := domain.Gate{State: domain.Open, StartsAt: now.Add(-time.Hour), EndsAt: now.Add(24 * time.Hour), PerUserLimit: 1_000_000}
	for i := range n {
		sale := p.sale(int64(i))
		if err := s.Seal(ctx, sale, 1, true); err != nil {
			return p, err
		}
		if err := s.Preheat(ctx, domain.Load{Sale: sale, Epoch: 1, Gate: gate, Total: 1 << 40, Fence: 1}); err != nil {
			return p, err
		}
	}
	return p, nil
}

// compare loads the places in turns.
func (s *openedStock) compare(ctx context.Context, places []place, rounds int, length time.Duration) ([]growthRow, error) {
	speeds, ratios := make([][]float64, len(places)), make([][]float64, len(places))
	for turn := range rounds + 1 {
		var first float64
		for i, p := range places {
			perSecond, err := s.load(ctx, p, length)
			if err != nil {
				return nil, err
			}
			if i == 0 {
				first = perSecond
			}
			if turn > 0 { // the first gets everything warm
				speeds[i], ratios[i] = append(speeds[i], perSecond), append(ratios[i], perSecond/first)
			}
		}
	}
	var rows []growthRow
	for i, p := range places {
		rows = append(rows, growthRow{p.size, median(speeds[i]), median(ratios[i])})
	}
	return rows, nil
}

// load is grabs a second: each caller grabs with a new buyer every time, from
// one sale after the other.
func (s *openedStock) load(ctx context.Context, p place, length time.Duration) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, length+30*time.Second)
	defer cancel()
	var grabs atomic.Int64
	var failed atomic.Pointer[error]
	var running sync.WaitGroup
	start := time.Now()
	for range callers {
		running.Go(func() {
			for time.Since(start) < length && failed.Load() == nil {
				if err := s.grab(ctx, p); err != nil {
					failed.Store(&err)
				}
				grabs.Add(1)
			}
		})
	}
	running.Wait()
	took := time.Since(start)
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(grabs.Load()) / took.Seconds(), nil
}

func (s *openedStock) grab(ctx context.Context, p place) error {
	number := s.buyer.Add(1)
	sale := p.sale(number)
	outcomes, err := s.Reserve(ctx, sale, []domain.Claim{s.claim(sale, firstBuyer+number)})
	if err == nil && outcomes[0].Verdict != domain.Accepted {
		err = fmt.Errorf("a grab of sale %s was answered with %s", sale, outcomes[0].Verdict)
	}
	return err
}

func (s *openedStock) claim(sale domain.SaleID, buyer int64) domain.Claim {
	return domain.Claim{
		Order: system.IDs{}.OrderID(sale), Buyer: domain.BuyerID(strconv.FormatInt(buyer, 10)), Quantity: 1,
	}
}

// fill takes so many holds of a place's sale, by so many buyers, in full batches.
func (s *openedStock) fill(ctx context.Context, p place, holds, buyers int) error {
	const batch = 250 // as many as grabs that share a call
	sale := p.sale(0)
	base := firstBuyer + s.buyer.Add(int64(buyers))
	for done := 0; done < holds; {
		var claims []domain.Claim
		for len(claims) < min(batch, holds-done) {
			claims = append(claims, s.claim(sale, base+int64((done+len(claims))%buyers)))
		}
		outcomes, err := s.Reserve(ctx, sale, claims)
		if err != nil {
			return err
		}
		for _, outcome := range outcomes {
			if outcome.Verdict != domain.Accepted {
				return fmt.Errorf("a grab of sale %s was answered with %s", sale, outcome.Verdict)
			}
		}
		done += len(claims)
	}
	return nil
}

// bytes measures Redis' memory: of holds by buyers that are there already, and
// of holds by buyers that are new. Hashes double in size from time to time, so
// both are taken over the same number of holds, from the same size on.
func (s *openedStock) bytes(ctx context.Context) (hold, buyer float64, err error) {
	const holds, few = 1 << 17, 1000
	per := func(buyers int) (float64, error) {
		p, err := s.sales(ctx, 1)
		if err != nil {
			return 0, err
		}
		before, err := s.used(ctx)
		if err != nil {
			return 0, err
		}
		if err := s.fill(ctx, p, holds, buyers); err != nil {
			return 0, err
		}
		after, err := s.used(ctx)
		return float64(after-before) / holds, err
	}
	if hold, err = per(few); err != nil {
		return 0, 0, err
	}
	both, err := per(holds)
	return hold, both - hold, err
}

// used is the memory of Redis' data, bytes.
func (s *openedStock) used(ctx context.Context) (int64, error) {
	text, err := s.client.Info(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory_dataset:"); ok {
			return strconv.ParseInt(value, 10, 64)
		}
	}
	return 0, errors.New("redis does not say how much memory it uses")
}
