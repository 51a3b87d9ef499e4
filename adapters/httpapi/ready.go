package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"

	"github.com/gin-gonic/gin"

	"seckill/domain"
)

// Header values that many answers share. They are never changed in place.
var (
	jsonType    = []string{"application/json; charset=utf-8"}
	problemType = []string{"application/problem+json"}
	noStore     = []string{"no-store"}
	replayed    = []string{"true"}
	retrySoon   = []string{strconv.Itoa(retryAfter)}
)

// readyAnswers are the refusals of a grab, written once: a flash sale gives
// each of them a thousand times for every unit it sells. NotStarted is not
// among them, since it tells the time.
var readyAnswers = func() map[domain.Verdict]readyAnswer {
	all := map[domain.Verdict]readyAnswer{}
	for verdict, answer := range verdictAnswers {
		if verdict == domain.NotStarted {
			continue
		}
		body, err := json.Marshal(answer.problem(nil))
		if err != nil {
			panic(err) // see sendAs
		}
		all[verdict] = readyAnswer{answer.status, body, answer.retry}
	}
	return all
}()

type readyAnswer struct {
	status int
	body   []byte
	retry  bool
}

func (r readyAnswer) send(c *gin.Context) {
	header := c.Writer.Header()
	if r.retry {
		header["Retry-After"] = retrySoon
	}
	sendBytes(c, r.status, problemType, r.body)
}

// sendAccepted writes what accepted describes, without reflection.
func sendAccepted(c *gin.Context, outcome domain.Outcome) {
	scratch := scratches.Get().(*scratch)
	defer scratches.Put(scratch)
	body := scratch[:0]
	body = append(body, `{"code":1,"orderId":"`...)
	body = append(body, outcome.Order...) // letters, digits and dashes only
	body = append(body, `","status":"queued"}`...)
	header := c.Writer.Header()
	header["Location"] = []string{"/api/seckill/order/" + string(outcome.Order)}
	if outcome.Replayed {
		header["Idempotent-Replayed"] = replayed
	}
	sendBytes(c, http.StatusAccepted, jsonType, body)
}

// sendBytes is sendAs of a body that is written already.
func sendBytes(c *gin.Context, status int, contentType []string, body []byte) {
	header := c.Writer.Header()
	header["Content-Type"] = contentType
	header["Cache-Control"] = noStore
	c.Status(status)
	// A client that has gone is not told; there is nothing else to do about it.
	_, _ = c.Writer.Write(body)
}

// scratch is where a grab's body is read and its answer written. One is in use
// for the moment of either only.
type scratch [1 << 10]byte

var scratches = sync.Pool{New: func() any { return new(scratch) }}
