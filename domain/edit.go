package domain

import (
	"fmt"
	"strings"
	"time"
)

// MaxEdits is how many edits of one sale are listed.
const MaxEdits = 1000

// maxReason bounds the reason of an edit, in characters.
const maxReason = 200

// StockEdit is an operator's change of how many units a sale has in all.
type StockEdit struct {
	Sale   SaleID
	Delta  int64 // units added; negative: withdrawn
	Reason string
	// Key makes the edit repeatable: of those with the same sale and key one is
	// made.
	Key RequestID
	// Set by the ledger:
	Total int64 // units in all after the edit
	At    time.Time
}

// Same says whether two edits ask for the same.
func (e StockEdit) Same(other StockEdit) bool {
	return e.Sale == other.Sale && e.Delta == other.Delta && e.Reason == other.Reason && e.Key == other.Key
}

// Validate names the first field that is out of bounds.
func (e StockEdit) Validate() error {
	switch {
	case e.Delta == 0 || e.Delta < -MaxInteger || e.Delta > MaxInteger:
		return Invalid("delta", "must be an integer from -%d to %d, and not 0", int64(MaxInteger), int64(MaxInteger))
	case strings.TrimSpace(e.Reason) == "" || len([]rune(e.Reason)) > maxReason || strings.ContainsFunc(e.Reason, isControl):
		return Invalid("reason", "must have 1 to %d printable characters", maxReason)
	}
	_, err := ParseRequestID(string(e.Key))
	return err
}

// WithdrawalError refuses an edit that withdraws more than there is. It is an
// ErrUnbalanced.
type WithdrawalError struct {
	Most int64 // units that can be withdrawn: free ones, and one stays
}

func (e *WithdrawalError) Error() string {
	return fmt.Sprintf("delta: at most %d units can be withdrawn: only those that are free, and the total stays at least 1", e.Most)
}

// Is makes errors.Is(err, ErrUnbalanced) true.
func (e *WithdrawalError) Is(target error) bool { return target == ErrUnbalanced }
