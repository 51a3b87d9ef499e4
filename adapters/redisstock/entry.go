package redisstock

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"seckill/domain"
)

// decode reads a stream entry as grab.lua and requeue.lua write it: fields
// sale, epoch, time, units, count and orders, the last with two lines per order,
// its id and its tail. An entry that does not read so comes with a Problem.
func (q *Queue) decode(partition int, entry redis.XMessage, attempts int) domain.Delivery {
	delivery := domain.Delivery{ID: entry.ID, Partition: partition, Attempts: attempts}
	sale, err := domain.ParseSaleID(field(entry, "sale"))
	if err != nil {
		err = fmt.Errorf("sale: %w", err)
	} else {
		delivery.Sale = sale
		delivery.Intents, err = decodeIntents(sale, entry)
	}
	if err != nil {
		delivery.Problem, delivery.Raw = err.Error(), raw(entry)
	}
	return delivery
}

func decodeIntents(sale domain.SaleID, entry redis.XMessage) ([]domain.Intent, error) {
	figures := map[string]int64{}
	for _, name := range []string{"epoch", "time", "units", "count"} {
		n, err := parseFigure(field(entry, name))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		figures[name] = n
	}
	lines := strings.Split(field(entry, "orders"), "\n")
	if len(lines)%2 != 0 || int64(len(lines)/2) != figures["count"] {
		return nil, fmt.Errorf("orders: %d lines for %d orders", len(lines), figures["count"])
	}
	intents := make([]domain.Intent, 0, len(lines)/2)
	units := int64(0)
	for i := 0; i < len(lines); i += 2 {
		intent, err := decodeIntent(lines[i], lines[i+1])
		if err != nil {
			return nil, fmt.Errorf("order %d: %w", i/2+1, err)
		}
		intent.Sale, intent.Epoch, intent.At = sale, figures["epoch"], moment(figures["time"])
		units += intent.Quantity
		intents = append(intents, intent)
	}
	if units != figures["units"] {
		return nil, fmt.Errorf("units: %d, but the orders have %d", figures["units"], units)
	}
	return intents, nil
}

func decodeIntent(order, tail string) (domain.Intent, error) {
	parts := strings.Split(tail, "|")
	if len(parts) != 3 {
		return domain.Intent{}, errors.New("has not three parts")
	}
	quantity, err := parseFigure(parts[0])
	if err != nil {
		return domain.Intent{}, err
	}
	claim := domain.Claim{
		Order:    domain.OrderID(order),
		Buyer:    domain.BuyerID(parts[1]),
		Request:  domain.RequestID(parts[2]),
		Quantity: quantity,
	}
	if err := checkClaim(claim); err != nil {
		return domain.Intent{}, err
	}
	return domain.Intent{Order: claim.Order, Buyer: claim.Buyer, Request: claim.Request, Quantity: quantity}, nil
}

func field(entry redis.XMessage, name string) string {
	text, _ := entry.Values[name].(string)
	return text
}

// raw is an entry as text, for a dead letter.
func raw(entry redis.XMessage) string {
	text, err := json.Marshal(entry.Values)
	if err != nil {
		return fmt.Sprint(entry.Values)
	}
	return string(text)
}
