// Store: where entries are kept.

package cache

import (
	"errors"
	"time"
)

// A Store keeps entries by scope. It is safe for concurrent use. The entries that it returns are
// neither expired nor deleted. Entries passed in or returned are shared and must never be
// changed.
type Store interface {
	// Equal returns the entry of the scope with exactly this normalised text; nil: none.
	Equal(scope Scope, text []byte, until time.Time) (*Entry, error)

	// Nearest appends to dst at most k entries of the scope, the most similar
	// first, none with a similarity below floor. vector has the length 1.
	Nearest(dst []Candidate, scope Scope, vector *[Dim]float32, k int, floor float64, until time.Time) ([]Candidate, error)

	// Put stores an entry, and replaces one with the same scope and text. An entry without a
	// vector (nil) is found only by its text. A new entry is found at once or, with Milvus, soon.
	// The store may evict older entries for it.
	Put(e *Entry, vector *[Dim]float32) error

	// Delete removes every entry that matches the filter, and returns how many.
	Delete(f Filter) (int, error)

	// Stats returns counters and sizes. It is cheap.
	Stats() Stats

	// Close closes the store. Every entry put before is then safe.
	Close() error
}

// A Getter is a Store that finds an entry by its ID, for people who inspect the cache. It may be
// slow.
type Getter interface {
	Get(id ID) (*Entry, error)
}

// An Identified is a Store that several Caches may use, each through a Store of its own.
type Identified interface {
	// Identity is the same for Stores that keep their entries in one place, and for no others. It is
	// false where that is not known now.
	Identity() (id string, known bool)
}

// A Candidate is an entry, and the cosine between the embeddings of its question and of the
// query.
type Candidate struct {
	*Entry
	Similarity float64
}

// A Filter selects the entries that match every field that is not nil. A Filter with no field set
// selects all.
type Filter struct {
	ID     *ID
	Scope  *Scope
	Tenant *string
	Model  *string
}

// Names reports whether the filter selects the entry.
func (f *Filter) Names(e *Entry) bool {
	return (f.ID == nil || *f.ID == e.ID) && (f.Scope == nil || *f.Scope == e.Scope) &&
		(f.Tenant == nil || *f.Tenant == e.Tenant) && (f.Model == nil || *f.Model == e.Model)
}

// Stats are counters since the start, and current sizes.
type Stats struct {
	Entries int64 // -1: the store does not know
	Bytes   int64 // of memory; 0: the entries are in another process

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
	ErrUnavailable = errors.New("the cache's store cannot be asked")           // the breaker is open, or there is no connection
	ErrTimeout     = errors.New("the cache's store took longer than its time") // the deadline has passed
	ErrTooLarge    = errors.New("the answer is too large for the cache's store")
	ErrFull        = errors.New("the cache's queue of writes is full")
)
