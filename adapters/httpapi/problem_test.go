package httpapi

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"testing"

	"seckill/domain"
)

// sentinels are the domain's exported errors, by name. The test below compares
// them with the source, so a new one cannot be forgotten here.
var sentinels = map[string]struct {
	err    error
	status int
	reason string
}{
	"ErrInvalid":     {domain.ErrInvalid, 400, "invalid"},
	"ErrNotFound":    {domain.ErrNotFound, 404, "not_found"},
	"ErrNotReady":    {domain.ErrNotReady, 503, "not_ready"},
	"ErrHasHolds":    {domain.ErrHasHolds, 409, "has_holds"},
	"ErrUnbalanced":  {domain.ErrUnbalanced, 409, "unbalanced"},
	"ErrState":       {domain.ErrState, 409, "wrong_state"},
	"ErrOrderClosed": {domain.ErrOrderClosed, 409, "order_closed"},
	"ErrOrderQueued": {domain.ErrOrderQueued, 409, "order_queued"},
	"ErrUnavailable": {domain.ErrUnavailable, 503, "unavailable"},
	"ErrCorrupt":     {domain.ErrCorrupt, 503, "unavailable"},
	"ErrConflict":    {domain.ErrConflict, 409, "conflict"},
	"ErrBusy":        {domain.ErrBusy, 503, "busy"},
	"ErrLeaseLost":   {domain.ErrLeaseLost, 503, "unavailable"},
	"ErrLockNotHeld": {domain.ErrLockNotHeld, 503, "unavailable"},
	"ErrFenced":      {domain.ErrFenced, 503, "unavailable"},
}

func TestEverySentinelHasAStatus(t *testing.T) {
	declared := 0
	for name := range exported(t, "../../domain/errors.go", token.VAR) {
		declared++
		want, ok := sentinels[name]
		if !ok {
			t.Errorf("domain.%s has no expected status in this test", name)
			continue
		}
		mapped := false
		for _, entry := range errorAnswers {
			mapped = mapped || entry.err == want.err
		}
		if !mapped {
			t.Errorf("domain.%s is not in errorAnswers", name)
		}
		got := answerTo(fmt.Errorf("wrapped: %w", want.err))
		if got.status != want.status || got.reason != want.reason {
			t.Errorf("domain.%s is answered by %d %s, want %d %s", name, got.status, got.reason, want.status, want.reason)
		}
		if got.retry != (got.status == 503 || got.reason == "order_queued") {
			t.Errorf("domain.%s: retry is %v with status %d", name, got.retry, got.status)
		}
	}
	if declared != len(sentinels) || declared == 0 {
		t.Errorf("the domain declares %d sentinels, this test lists %d", declared, len(sentinels))
	}
	if got := answerTo(errors.New("what is this")); got.status != 503 || got.reason != "unavailable" {
		t.Errorf("an error of no kind is answered by %d %s", got.status, got.reason)
	}
}

// covers S4
func TestEveryVerdictHasAnAnswer(t *testing.T) {
	want := map[string]struct {
		status int
		code   *int
	}{
		"sold_out": {409, code(0)}, "not_ready": {503, code(-1)}, "unknown_sale": {404, code(-1)},
		"limit_reached": {409, code(-2)}, "not_started": {409, code(-3)}, "paused": {409, code(-3)},
		"ended": {409, code(-3)}, "request_id_reused": {422, nil}, "withdrawn": {503, nil},
	}
	names := exported(t, "../../domain/stock.go", token.CONST)
	verdicts := 0
	for v := domain.Accepted; v.String() != "none"; v++ {
		verdicts++
		if v == domain.Accepted {
			continue
		}
		a, ok := verdictAnswers[v]
		if !ok {
			t.Errorf("verdict %s has no answer", v)
			continue
		}
		w, ok := want[v.String()]
		if !ok {
			t.Errorf("verdict %s has no expected answer in this test", v)
			continue
		}
		if a.status != w.status || (a.code == nil) != (w.code == nil) || (a.code != nil && *a.code != *w.code) {
			t.Errorf("verdict %s is answered by %+v", v, a)
		}
		if v != domain.Withdrawn && a.reason != v.String() {
			t.Errorf("verdict %s has reason %s", v, a.reason)
		}
	}
	// Held, Sold and Released are the other constants of that file.
	if verdicts != len(names)-3 || verdicts != len(want)+1 {
		t.Errorf("%d verdicts were tried, the source has %d", verdicts, len(names)-3)
	}
	if a := verdictAnswer(0); a.status != 503 || a.code != nil {
		t.Errorf("no verdict is answered by %+v", a)
	}
}

// The words of a refusal must not have to be guessed.
func TestAnswersAreComplete(t *testing.T) {
	for _, entry := range errorAnswers {
		p := entry.problem(entry.err)
		if p.Title == "" || p.Detail == "" || p.Reason == "" || p.Status < 400 {
			t.Errorf("%v: %+v", entry.err, p)
		}
	}
	for v, a := range verdictAnswers {
		if p := a.problem(nil); p.Title == "" || p.Detail == "" || p.Reason == "" || p.Status < 400 {
			t.Errorf("%s: %+v", v, p)
		}
	}
}

// exported names the exported variables or constants that a file declares.
func exported(t *testing.T, file string, kind token.Token) map[string]bool {
	t.Helper()
	source, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, decl := range source.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != kind {
			continue
		}
		for _, spec := range group.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				if name.IsExported() {
					names[name.Name] = true
				}
			}
		}
	}
	return names
}
