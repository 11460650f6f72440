// Package cache answers questions that were asked before. It knows neither HTTP nor the form of
// an answer: the proxy gives it the scope of a request, the question, its embedding, and an
// answer, whose bytes it does not read.
//
// A lookup searches the entries of the query's scope only. It first tries an equal text, then the
// nearest questions. It verifies each of those word by word, because by cosine alone a question
// with another number, name or negation looks the same.
//
//	c := cache.New(cache.Options{Store: store, Verifier: v, Threshold: 0.9, TTL: time.Hour})
//	r := c.Lookup(&query)
//	if r.Hit { ... r.Entry.Answer ... } else { ... c.Put(&query, answer) ... }
package cache

import (
	"cmp"
	"errors"
	"sync"
	"time"
	"unicode/utf8"
)

// A Verifier says how likely it is that one answer serves two questions.
type Verifier interface {
	// Compare returns a score from 0 to 1 and, where a rule refused the pair,
	// the rule's name. similarity is the cosine of the questions' embeddings.
	Compare(a, b []byte, similarity float64) (score float64, why string)
}

// Options configure a Cache.
type Options struct {
	Store     Store
	Verifier  Verifier      // nil: only an equal text answers
	Threshold float64       // lowest score of a hit; 0: 0.9
	TTL       time.Duration // of entries
	Timeout   time.Duration // of a lookup in the store; 0: none
}

// Bounds of a lookup.
const (
	candidates  = 8    // nearest questions to verify
	floor       = 0.55 // lowest similarity: no two questions below it were ever the same
	maxSemantic = 4096 // bytes of a question; a longer one is found only by equal text
)

// A Cache answers questions. It is safe for concurrent use.
type Cache struct {
	o       Options
	scratch sync.Pool // of *scratch
}

// New returns a cache on a store, which it does not close.
func New(o Options) *Cache {
	if o.Threshold == 0 {
		o.Threshold = 0.9
	}
	return &Cache{o: o, scratch: sync.Pool{New: func() any { return new(scratch) }}}
}

// A scratch is the reusable memory of one lookup.
type scratch struct {
	near [candidates]Candidate
	text []byte // of a candidate
}

// A Query is one question. The caller owns it, and passes the same one to Lookup and Put.
type Query struct {
	Scope         Scope
	Tenant, Model string
	Text          []byte

	// Embed stores the question's embedding, a vector of length 1, and reports whether there is
	// one. It is called at most once, and only when no entry has the same text. Nil: the text is
	// not a question but, for example, a prompt to be continued; then only the same bytes answer
	// it, white space included.
	Embed func(dst *[Dim]float32) bool

	Threshold float64       // lowest score of a hit; 0: that of Options
	MaxAge    time.Duration // oldest entry that may answer; negative: any

	vector   [Dim]float32
	asked    bool // Embed was called
	embedded bool // vector holds the embedding
	read     bool // literal has been computed
	literal  string
}

// A Result is the outcome of a lookup.
type Result struct {
	Hit   bool
	Exact bool   // found by equal text
	Entry *Entry // the one that answers or, without a hit, the nearest one; nil: none

	Similarity float64 // cosine to Entry's question; 1 for an equal text
	Score      float64 // the verifier's score
	Why        string  // without a hit: empty, age, score, error, the rule that refused the best candidate, or the result of Literal
	Age        time.Duration
	Err        error // why the store could not be searched
}

// Lookup looks for an entry that answers the query.
func (c *Cache) Lookup(q *Query) Result {
	now := time.Now()
	var until time.Time
	if c.o.Timeout > 0 {
		until = now.Add(c.o.Timeout)
	}
	text := q.Normal()
	e, err := c.o.Store.Equal(q.Scope, text, until)
	if e != nil && (e.Scope != q.Scope || e.Text != string(text)) {
		e = nil // the store broke its contract
	}
	switch {
	case err != nil:
		return Result{Err: err, Why: "error"}
	case e != nil:
		r := Result{Hit: fresh(e, q, now), Exact: true, Entry: e, Similarity: 1, Score: 1, Age: now.Sub(e.Created)}
		if !r.Hit {
			r.Why = "age"
		}
		return r
	}
	if c.o.Verifier == nil || !q.embed() {
		return Result{Why: cmp.Or(q.Literal(), "empty")}
	}
	return c.semantic(q, until, now)
}

// Identity is that of its store, where that is Identified; else "", true.
func (c *Cache) Identity() (id string, known bool) {
	if s, ok := c.o.Store.(Identified); ok {
		return s.Identity()
	}
	return "", true
}

// Normal returns the normalised Text: questions count as equal when it is equal.
func (q *Query) Normal() []byte {
	if q.Embed == nil || q.Literal() != "" {
		return q.Text
	}
	return normalise(q.Text)
}

// Literal returns why only the same bytes may answer this question although the query allows
// similar ones; "": similar ones may, or the query allows none anyway.
func (q *Query) Literal() string {
	if !q.read && q.Embed != nil {
		q.read, q.literal = true, Literal(q.Text)
	}
	return q.literal
}

// embed computes the question's embedding, once.
func (q *Query) embed() bool {
	if !q.asked && q.Embed != nil && len(q.Text) <= maxSemantic && utf8.Valid(q.Text) && q.Literal() == "" {
		q.asked = true
		q.embedded = q.Embed(&q.vector)
	}
	return q.embedded
}

// semantic verifies the nearest questions and takes the one with the best score.
func (c *Cache) semantic(q *Query, until, now time.Time) Result {
	room := c.scratch.Get().(*scratch)
	defer c.scratch.Put(room)
	near, err := c.o.Store.Nearest(room.near[:0], q.Scope, &q.vector, candidates, floor, until)
	defer clear(room.near[:])
	if err != nil {
		return Result{Err: err, Why: "error"}
	}
	best := Result{Why: "empty"}
	for _, n := range near {
		if n.Scope != q.Scope {
			continue // the store broke its contract
		}
		if room.text = append(room.text[:0], n.Text...); Literal(room.text) != "" {
			continue // stored by an older version without this check
		}
		r := c.compare(q, n, room, now)
		if best.Entry == nil || r.Hit && !best.Hit || r.Hit == best.Hit && r.Score > best.Score {
			best = r
		}
	}
	return best
}

// compare verifies one candidate. Its text lies in room.
func (c *Cache) compare(q *Query, n Candidate, room *scratch, now time.Time) Result {
	score, why := c.o.Verifier.Compare(room.text, normalise(q.Text), n.Similarity)
	switch {
	case why != "":
	case !(score >= c.threshold(q)):
		why = "score"
	case !fresh(n.Entry, q, now):
		why = "age"
	}
	return Result{Hit: why == "", Entry: n.Entry, Similarity: n.Similarity, Score: score, Why: why, Age: now.Sub(n.Created)}
}

func fresh(e *Entry, q *Query, now time.Time) bool {
	return q.MaxAge < 0 || now.Sub(e.Created) <= q.MaxAge
}

// Put stores an answer to the query. It keeps the slice answer, whose bytes must not change
// afterwards. If the query has an embedding, the entry can be found by it. Put returns
// ErrTooLarge for an answer that is too large.
func (c *Cache) Put(q *Query, answer []byte) (ID, error) {
	now := time.Now()
	e := &Entry{
		ID: NewID(), Scope: q.Scope, Tenant: q.Tenant, Model: q.Model,
		Text: string(q.Normal()), Answer: answer, Created: now, Expires: now.Add(c.o.TTL),
	}
	vector := &q.vector
	if !q.embed() {
		vector = nil
	}
	return e.ID, c.o.Store.Put(e, vector)
}

// Delete removes every entry that matches the filter, and returns how many.
func (c *Cache) Delete(f Filter) (int, error) { return c.o.Store.Delete(f) }

// Get returns the entry with this ID; nil: none. It returns errors.ErrUnsupported when the store
// cannot find entries by ID.
func (c *Cache) Get(id ID) (*Entry, error) {
	if s, ok := c.o.Store.(Getter); ok {
		return s.Get(id)
	}
	return nil, errors.ErrUnsupported
}

// Stats returns the store's counters and sizes.
func (c *Cache) Stats() Stats { return c.o.Store.Stats() }
