// Package cache answers questions that were asked before. It knows neither
// HTTP nor how an answer looks: the proxy hands it the scope of a request, the
// question, its embedding, and an answer that it does not read.
//
// What may answer what, in this order: nothing outside the scope; the very same
// text; the nearest questions, each of which is verified word by word, because
// a cosine alone takes another number, name or negation for the same question.
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

// A Verifier says how surely one answer serves two questions.
type Verifier interface {
	// Compare returns a score from 0 to 1 and, where a rule refused the pair,
	// the rule's name. similarity is the cosine of the questions' embeddings.
	Compare(a, b []byte, similarity float64) (score float64, why string)
}

// Options are what a Cache is made of.
type Options struct {
	Store     Store
	Verifier  Verifier      // nil: only an equal text answers
	Threshold float64       // of a score, to be a hit; 0: 0.9
	TTL       time.Duration // of entries
	Timeout   time.Duration // of a lookup in the store; 0: none
}

// What a lookup looks at.
const (
	candidates  = 8    // nearest questions that are verified
	floor       = 0.55 // of similarity: below it nothing was ever the same question
	maxSemantic = 4096 // bytes of a question; a longer one is found by equal text alone
)

// A Cache answers questions. All its methods may be called at the same time.
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

// A scratch is memory of one lookup.
type scratch struct {
	near [candidates]Candidate
	text []byte // of a candidate
}

// A Query is one question. It is the caller's, and reused for Put.
type Query struct {
	Scope         Scope
	Tenant, Model string
	Text          []byte

	// Embed stores the question's embedding, of length 1, and says whether
	// there is one. It is called at most once, and only when no entry has the
	// very text. Nil: the text is no question but a prompt to be continued, or
	// the like, and only the same bytes answer, white space and all.
	Embed func(dst *[Dim]float32) bool

	Threshold float64       // of the score; 0: that of Options
	MaxAge    time.Duration // of the entry; negative: any

	vector   [Dim]float32
	asked    bool // Embed was called
	embedded bool // vector holds the embedding
	read     bool // literal is known
	literal  string
}

// A Result is what a lookup found.
type Result struct {
	Hit   bool
	Exact bool   // by equal text
	Entry *Entry // that answers; or, without a hit, whose question is nearest; nil: there is none

	Similarity float64 // of Entry's question; 1 for an equal text
	Score      float64 // what verification left of it
	Why        string  // without a hit: empty, age, the rule that refused the best, score, error, or why the question is Literal
	Age        time.Duration
	Err        error // the store could not be asked
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
		e = nil // whatever the store takes it for
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

// Normal returns the part of Text that equal questions have in common.
func (q *Query) Normal() []byte {
	if q.Embed == nil || q.Literal() != "" {
		return q.Text
	}
	return normalise(q.Text)
}

// Literal says why only the same bytes answer this question, where otherwise
// similar questions could. "": similar ones can, or the query allows none anyway.
func (q *Query) Literal() string {
	if !q.read && q.Embed != nil {
		q.read, q.literal = true, Literal(q.Text)
	}
	return q.literal
}

// embed makes the question's embedding, once.
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
			continue // whatever the store takes it for
		}
		if room.text = append(room.text[:0], n.Text...); Literal(room.text) != "" {
			continue // kept by a version that did not know better
		}
		r := c.compare(q, n, room, now)
		if best.Entry == nil || r.Hit && !best.Hit || r.Hit == best.Hit && r.Score > best.Score {
			best = r
		}
	}
	return best
}

// compare verifies one candidate, whose text is in room.
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

// Put keeps an answer to the query, and the bytes of answer with it: they must
// not change after. The store makes it findable by the question's embedding if
// the query has one. An answer that is too large is ErrTooLarge.
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

// Delete drops every entry that the filter names.
func (c *Cache) Delete(f Filter) (int, error) { return c.o.Store.Delete(f) }

// Get returns the entry with this ID, nil when there is none. The error is
// errors.ErrUnsupported where the store finds no entries by their ID.
func (c *Cache) Get(id ID) (*Entry, error) {
	if s, ok := c.o.Store.(Getter); ok {
		return s.Get(id)
	}
	return nil, errors.ErrUnsupported
}

// Stats says how the store does.
func (c *Cache) Stats() Stats { return c.o.Store.Stats() }
