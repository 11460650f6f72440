// Recent: what was found in texts that came a short while ago. A conversation
// brings all its turns again with each new one.

package classify

import (
	"hash/maphash"
	"sync"
	"time"

	"kvasir/classify/pii"
)

// keepFor is how long a result is shared. It bounds how long something that
// is said of a text outlives the request, not how long it is right.
const keepFor = time.Minute

// shared are the results that texts share, by what was computed. They are kept
// by a keyed 128-bit hash of the text as it came, never the text, in a fixed 6 MiB.
type shared struct {
	seeds    [2]maphash.Seed
	attacks  recent[attackScores]
	names    recent[fewSpans]
	sentence recent[[Dim]float32]
	category recent[[len(Categories)]float32]
	language recent[Language]
	words    recent[traitCounts]
	pii      recent[fewSpans]
	shapes   recent[shape]
	keywords recent[found] // of a signal and a text
}

func newShared() *shared {
	s := &shared{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
	s.attacks.init(4096)
	s.names.init(4096)
	s.sentence.init(1024)
	s.category.init(4096)
	s.language.init(4096)
	s.words.init(4096)
	s.pii.init(4096)
	s.shapes.init(4096)
	s.keywords.init(4096)
	return s
}

// A textKey names a text.
type textKey [2]uint64

func (s *shared) key(text []byte) textKey {
	return textKey{maphash.Bytes(s.seeds[0], text), maphash.Bytes(s.seeds[1], text)}
}

// with names the same text for another question.
func (k textKey) with(question uint64) textKey { return textKey{k[0], k[1] + question} }

// fewSpans are what was found in a piece of text, if it is not much.
type fewSpans struct {
	n     int
	spans [12]pii.Span
}

// found is what a signal of the user's own came to.
type found struct {
	score float64
	holds bool
}

// recent keeps results in sets of four, the oldest of a set giving way.
type recent[V any] struct {
	shards [shards]shard[V]
}

const (
	shards = 32
	ways   = 4
)

type shard[V any] struct {
	mu      sync.Mutex // guards the rest
	entries []entry[V] // sets of ways, one after the other
}

type entry[V any] struct {
	key   textKey
	until time.Duration // since processStart; 0: empty
	value V
}

var processStart = time.Now()

// clock is the time since processStart. Reading it takes half as long as time.Now, which a short request would read
// forty times.
func clock() time.Duration { return time.Since(processStart) }

func (c *recent[V]) init(entries int) {
	for i := range c.shards {
		c.shards[i].entries = make([]entry[V], entries/shards)
	}
}

// get finds the result for a text.
func (c *recent[V]) get(key textKey) (value V, ok bool) {
	now := clock()
	s := &c.shards[key[0]%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.set(key) {
		if e := &s.set(key)[i]; e.until > now && e.key == key {
			return e.value, true
		}
	}
	return value, false
}

// put keeps the result for a text. An empty place comes before the oldest: on a
// test's clock all times lie before processStart, and are below 0.
func (c *recent[V]) put(key textKey, value V) {
	until := clock() + keepFor
	s := &c.shards[key[0]%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	set := s.set(key)
	at := &set[0]
	for i := range set {
		if set[i].key == key {
			at = &set[i]
			break
		}
		if at.until != 0 && (set[i].until == 0 || set[i].until < at.until) {
			at = &set[i]
		}
	}
	*at = entry[V]{key, until, value}
}

// set is where a text's result may stand. The mutex is held.
func (s *shard[V]) set(key textKey) []entry[V] {
	at := int(key[1]%uint64(len(s.entries)/ways)) * ways
	return s.entries[at : at+ways]
}
