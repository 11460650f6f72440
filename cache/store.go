// Store: where entries are kept.

package cache

import (
	"errors"
	"time"
)

// A Store keeps entries by scope. All its methods may be called at the same
// time. Entries that it returns are alive: not expired, not deleted. Those that
// it returns and takes are shared and never changed.
type Store interface {
	// Equal returns the entry of the scope whose normalised text is this very
	// one, nil when there is none.
	Equal(scope Scope, text []byte, until time.Time) (*Entry, error)

	// Nearest appends to dst at most k entries of the scope, the most similar
	// first, none with a similarity below floor. vector has the length 1.
	Nearest(dst []Candidate, scope Scope, vector *[Dim]float32, k int, floor float64, until time.Time) ([]Candidate, error)

	// Put keeps an entry, in the place of one with the same scope and text. An
	// entry without a vector (nil) is found by its text alone. What was put is
	// found at once, or (Milvus) soon. The store may drop older entries for it.
	Put(e *Entry, vector *[Dim]float32) error

	// Delete drops every entry that the filter names, and returns how many.
	Delete(f Filter) (int, error)

	// Stats says how the store does, at the price of a few counters.
	Stats() Stats

	// Close ends it; what was put is safe after.
	Close() error
}

// A Getter is a Store that finds an entry by its ID, for people who wonder
// about one; it may take its time.
type Getter interface {
	Get(id ID) (*Entry, error)
}

// A Candidate is an entry and the cosine of its question's embedding and the
// one that was asked.
type Candidate struct {
	*Entry
	Similarity float64
}

// A Filter names entries: those that agree with all that is not nil. One
// without any condition names all.
type Filter struct {
	ID     *ID
	Scope  *Scope
	Tenant *string
	Model  *string
}

// Names says whether the filter names the entry.
func (f *Filter) Names(e *Entry) bool {
	return (f.ID == nil || *f.ID == e.ID) && (f.Scope == nil || *f.Scope == e.Scope) &&
		(f.Tenant == nil || *f.Tenant == e.Tenant) && (f.Model == nil || *f.Model == e.Model)
}

// Stats are counters since the start, and sizes now.
type Stats struct {
	Entries int64 // -1: the store does not know
	Bytes   int64 // of memory; 0: they are kept elsewhere

	Stored  uint64
	Evicted uint64 // for lack of room
	Expired uint64
	Deleted uint64 // by Delete, or replaced
	Dropped uint64 // could not be kept: too large, or a full queue
	Failed  uint64 // operations that ended with an error
	Corrupt uint64 // records of the file that could not be read

	Breaker string // of a remote store: closed, open, half-open; "": it has none
	Problem string // why the store is less than it should be; "": nothing
}

// Errors of stores.
var (
	ErrUnavailable = errors.New("the cache's store cannot be asked")           // breaker open, or not connected
	ErrTimeout     = errors.New("the cache's store took longer than its time") // until has passed
	ErrTooLarge    = errors.New("the answer is too large for the cache's store")
	ErrFull        = errors.New("the cache's queue of writes is full")
)
