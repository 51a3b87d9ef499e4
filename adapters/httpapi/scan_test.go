package httpapi

import (
	"encoding/json"
	"strings"
	"testing"
)

// bodies are seeds: what the fast way takes, what it leaves alone, and what
// nobody may take.
var bodies = []string{
	seven,
	`{"activityId":1001,"skuId":2001,"userId":7,"quantity":2,"requestId":"r-1"}`,
	`{"activityId":1001,"skuId":2001,"userId":"ann"}`,
	`{"activityId":1001,"skuId":2001}`,
	`{"activityId":1001,"userId":7}`,
	`{"activityId":1001,"skuId":2001,"userId":007}`,
	`{"activityId":1001,"skuId":2001,"userId":0}`,
	`{"activityId":1001,"skuId":2001,"userId":9007199254740991}`,
	`{"activityId":1001,"skuId":2001,"userId":9007199254740992}`,
	`{"activityId":10010000000000000000,"skuId":2001,"userId":7}`,
	`{"activityId":1e3,"skuId":2001,"userId":7}`,
	`{"activityId":1.5,"skuId":2001,"userId":7}`,
	`{"activityId":NaN,"skuId":2001,"userId":7}`,
	`{"activityId":"1001","skuId":2001,"userId":7}`,
	`{"activityId":-1,"skuId":2001,"userId":7}`,
	`{"activityId":0,"skuId":2001,"userId":7,"activityId":1}`,
	`{"activityId":1,"skuId":2001,"userId":7,"activityId":0}`,
	`{"activityId":1,"skuId":2001,"userId":7,"userId":null}`,
	`{"activityId":1001,"skuId":2001,"userId":"\u0061nn"}`,
	`{"activity\u0049d":1001,"skuId":2001,"userId":7}`,
	`{"activityId":1001,"skuId":2001,"userId":7,"x":"text","y":12,"":0}`,
	`{"activityId":1001,"skuId":2001,"userId":7,"x":{"userId":8},"y":[1],"z":null}`,
	`{"activityId":1001,"skuId":2001,"userId":7,"x":012}`,
	`{"activityId":1001,"skuId":2001,"userId":7,"x":1 2}`,
	`{"activityId":1001,"skuId":2001,"userId":7,"quantity":1001}`,
	`{"activityId":1001,"skuId":2001,"userId":7,"requestId":""}`,
	`{"activityId":1001,"skuId":2001,"userId":7,"requestId":7}`,
	"\r\n\t {\n \"activityId\" : 1001 ,\t\"skuId\":\r2001 , \"userId\" : 7 }\n ",
	seven + `x`, seven + seven, seven + `,`, `{}`, `{`, `}`, ``, ` `, `null`, `[]`, `{"a"}`, `{"a":}`, `{,}`, `{"a":1,}`,
	`{"activityId":1001,"skuId":2001,"userId":"é"}`, "{\"activityId\":1001,\"skuId\":2001,\"userId\":7,\"x\":\"\x01\"}",
	"\xef\xbb\xbf" + seven, `{"activityId":1001,"skuId":2001,"userId":"` + strings.Repeat("u", 65) + `"}`,
}

// FuzzScanGrab holds the fast way to what decodeGrab and encoding/json say of
// the same body: it may leave a body alone, but never read it otherwise.
//
// covers S7
func FuzzScanGrab(f *testing.F) {
	for _, body := range bodies {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, text string) {
		fast, ok := scanGrab(text)
		if !ok {
			return
		}
		slow, err := decodeGrab([]byte(text))
		if err != nil || fast != slow {
			t.Errorf("%q is %+v the fast way, and %+v, %v", text, fast, slow, err)
		}
		if !json.Valid([]byte(text)) {
			t.Errorf("%q is no JSON", text)
		}
	})
}

// The fast way must be the usual one.
func TestScanGrabTakesTheUsual(t *testing.T) {
	for _, body := range []string{
		bodies[0], bodies[1], bodies[2],
		"\r\n\t {\n \"activityId\" : 1001 ,\t\"skuId\":\r2001 , \"userId\" : 7 , \"quantity\" : 3 }\n ",
		`{"activityId":1001,"skuId":2001,"userId":7,"x":"text","y":12,"":0}`,
		`{"activityId":1,"skuId":2,"userId":8,"activityId":1001,"skuId":2001,"userId":"bob","quantity":2}`,
	} {
		if _, ok := scanGrab(body); !ok {
			t.Errorf("%s takes the slow way", body)
		}
	}
}
