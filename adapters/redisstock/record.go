package redisstock

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"seckill/domain"
)

var stateLetters = map[domain.HoldState]string{
	domain.Held:     "h",
	domain.Sold:     "s",
	domain.Released: "r",
}

var letterStates = map[string]domain.HoldState{
	"h": domain.Held,
	"s": domain.Sold,
	"r": domain.Released,
}

// tail is the part of a record that does not change; queue entries carry it too.
func tail(buyer domain.BuyerID, request domain.RequestID, quantity int64) string {
	return strconv.FormatInt(quantity, 10) + "|" + string(buyer) + "|" + string(request)
}

// requestField is the field of a request in the requests' hash, "" for none.
func requestField(buyer domain.BuyerID, request domain.RequestID) string {
	if request == "" {
		return ""
	}
	return string(buyer) + "|" + string(request)
}

// encodeHold writes the record of a hold.
func encodeHold(hold domain.Hold) string {
	return stateLetters[hold.State] + strconv.FormatInt(millis(hold.CreatedAt), 10) + "|" +
		tail(hold.Buyer, hold.Request, hold.Quantity)
}

// decodeHold reads a record.
func decodeHold(id domain.OrderID, record string) (domain.Hold, error) {
	parts := strings.Split(record, "|")
	if len(parts) != 4 || parts[0] == "" {
		return domain.Hold{}, corruptHold(id)
	}
	state, known := letterStates[parts[0][:1]]
	at, err1 := parseFigure(parts[0][1:])
	quantity, err2 := parseFigure(parts[1])
	if !known || err1 != nil || err2 != nil {
		return domain.Hold{}, corruptHold(id)
	}
	return domain.Hold{
		Order:     id,
		Buyer:     domain.BuyerID(parts[2]),
		Request:   domain.RequestID(parts[3]),
		Quantity:  quantity,
		State:     state,
		CreatedAt: moment(at),
	}, nil
}

// isTombstone recognizes the record of a release that came before its grab.
func isTombstone(record string) bool {
	return strings.HasPrefix(record, stateLetters[domain.Released]) && strings.HasSuffix(record, "|0||")
}

func corruptHold(id domain.OrderID) error {
	return unavailable(fmt.Errorf("record of hold %s cannot be read", id))
}

// parseFigure reads a plain decimal integer from 0 to domain.MaxInteger, as the
// scripts do.
func parseFigure(text string) (int64, error) {
	if text == "0" {
		return 0, nil
	}
	return domain.ParseInteger("figure", text)
}

// millis is a time as the scripts have it. Times before 1970 are 0, which is
// also the time that is not set.
func millis(at time.Time) int64 { return min(max(at.UnixMilli(), 0), domain.MaxInteger) }

func moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
