// The index: entries by their text, groups by their scope.

package embedded

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"kvasir/cache"
)

// An item is an entry in the store. Only the writer changes fields, except asked, which lookups
// set.
type item struct {
	entry    *cache.Entry
	vector   *vector // nil: found by text alone
	created  int64   // on the store's clock
	deadline int64
	record   int64 // bytes in the file

	key   uint64 // hash of scope and text, set by index.find
	alike *item  // the next with the same key

	group *group
	chunk *chunk
	slot  int32

	hidden       atomic.Bool // invisible to lookups, because it is not yet written to the file
	asked        atomic.Bool // a lookup used it since the queue's hand last passed
	older, newer *item
}

// alive reports whether a lookup at this time may find it.
func (it *item) alive(now int64) bool { return it.deadline > now && !it.hidden.Load() }

// newItem returns an item, and allocates room for its vector, if it gets one, in the same piece
// of memory.
func newItem(e *cache.Entry, withVector bool) *item {
	if !withVector {
		return &item{entry: e}
	}
	both := new(struct {
		item
		v vector
	})
	both.entry, both.vector = e, &both.v
	return &both.item
}

// Bytes counted for an entry besides its text, answer and vector, and for a scope: measured by a
// test on 100,000 of them, with the maps and half-full chunks.
const (
	itemBytes  = 368
	slotBytes  = vectorBytes + 96
	groupBytes = 320
)

// bytes returns the memory of an item.
func (it *item) bytes() int64 {
	e := it.entry
	n := itemBytes + int64(len(e.Text)) + int64(cap(e.Answer)) + int64(len(e.Tenant)+len(e.Model))
	if it.vector != nil {
		n += slotBytes
	}
	return n
}

// use records that a lookup used the entry.
func (it *item) use() {
	if !it.asked.Load() {
		it.asked.Store(true)
	}
}

// An index is split into shards. Each has a lock, held for one map access. Only one writer at a
// time changes the index.
type index struct {
	seed   maphash.Seed
	shards [64]struct {
		sync.RWMutex
		texts  map[uint64]*item
		scopes map[cache.Scope]*group
	}
}

func (x *index) init() {
	x.seed = maphash.MakeSeed()
	for i := range x.shards {
		x.shards[i].texts = map[uint64]*item{}
		x.shards[i].scopes = map[cache.Scope]*group{}
	}
}

// key hashes the scope together with the hash of the text.
func (x *index) key(scope *cache.Scope, text uint64) uint64 {
	return maphash.Bytes(x.seed, scope[:]) ^ text*0x9e3779b97f4a7c15
}

// equal returns the item with this text; nil: none.
func (x *index) equal(scope *cache.Scope, text []byte) *item {
	key := x.key(scope, maphash.Bytes(x.seed, text))
	s := &x.shards[key%uint64(len(x.shards))]
	s.RLock()
	defer s.RUnlock()
	for it := s.texts[key]; it != nil; it = it.alike {
		if it.entry.Scope == *scope && it.entry.Text == string(text) {
			return it
		}
	}
	return nil
}

// find returns the item that other replaces; nil: none.
func (x *index) find(other *item) *item {
	scope, text := &other.entry.Scope, other.entry.Text
	other.key = x.key(scope, maphash.String(x.seed, text))
	s := &x.shards[other.key%uint64(len(x.shards))]
	s.RLock()
	defer s.RUnlock()
	for it := s.texts[other.key]; it != nil; it = it.alike {
		if it.entry.Scope == *scope && it.entry.Text == text {
			return it
		}
	}
	return nil
}

// group returns the entries of a scope; nil: none.
func (x *index) group(scope *cache.Scope) *group {
	s := &x.shards[x.shardOf(scope)]
	s.RLock()
	defer s.RUnlock()
	return s.scopes[*scope]
}

func (x *index) shardOf(scope *cache.Scope) uint64 {
	return maphash.Bytes(x.seed, scope[:]) % uint64(len(x.shards))
}

// add adds an item, on which find was called first, and returns the bytes that it takes.
func (x *index) add(it *item) int64 {
	e, bytes := it.entry, it.bytes()
	if it.group = x.group(&e.Scope); it.group == nil {
		it.group = new(group)
		bytes += groupBytes
		s := &x.shards[x.shardOf(&e.Scope)]
		s.Lock()
		s.scopes[e.Scope] = it.group
		s.Unlock()
	}
	it.group.items++
	if it.vector != nil {
		it.group.add(it)
	}
	s := &x.shards[it.key%uint64(len(x.shards))]
	s.Lock()
	it.alike = s.texts[it.key]
	s.texts[it.key] = it
	s.Unlock()
	return bytes
}

// remove is the reverse of add.
func (x *index) remove(it *item) int64 {
	bytes := it.bytes()
	s := &x.shards[it.key%uint64(len(x.shards))]
	s.Lock()
	if first := s.texts[it.key]; first != it {
		for first.alike != it {
			first = first.alike
		}
		first.alike = it.alike
	} else if it.alike != nil {
		s.texts[it.key] = it.alike
	} else {
		delete(s.texts, it.key)
	}
	s.Unlock()
	if it.vector != nil {
		it.group.remove(it)
	}
	if it.group.items--; it.group.items == 0 {
		bytes += groupBytes
		s := &x.shards[x.shardOf(&it.entry.Scope)]
		s.Lock()
		delete(s.scopes, it.entry.Scope)
		s.Unlock()
	}
	return bytes
}
