package domain

import "context"

// Continuity tells whether a hot store that outlives the process still has all
// that it ever said. It has not, or may not have, when its server was started
// anew, when another server took over, and when its data is gone.
type Continuity interface {
	// Doubts says what has happened since it was last vouched for. Of a store
	// that is empty, or that nobody has vouched for yet, it doubts everything.
	Doubts(ctx context.Context) (Doubts, error)

	// Vouch ends the doubts: what the store has of the doubted sales was loaded
	// anew. What has happened since Doubts was called stays in doubt.
	Vouch(ctx context.Context, doubts Doubts) error

	// Concern says whether doubts are about a sale of so many segments; 0: of as
	// many as are known.
	Concern(doubts Doubts, sale SaleID, segments int) bool
}

// Doubts are the parts of a hot store that cannot be trusted, and for each a name
// of what made it so. Which sales are in a part is the store's matter.
type Doubts map[int]string
