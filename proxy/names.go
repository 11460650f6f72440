// Names: labels whose values are many, and what is looked up by them.

package proxy

import (
	"sync"
	"sync/atomic"
)

// maxNames is how many names of one kind, models or keys, have series of their own. All others share
// otherName.
const (
	maxNames  = 1000
	otherName = "_other"
)

// bounded are the names that have series of their own.
type bounded struct {
	labels known[string, string] // of names by themselves

	mu sync.Mutex // held while it grows
	n  int        // names that it has
}

// name is the label of a name: itself, or otherName where there are too many.
func (b *bounded) name(name string) string {
	if label := b.labels.get(name); label != nil {
		return *label
	}
	return b.add(name)
}

func (b *bounded) add(name string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.labels.get(name) == nil && b.n >= maxNames {
		return otherName
	}
	label := b.labels.put(name, &name)
	b.n = len(*b.labels.all.Load())
	return *label
}

// known are metrics by their labels, looked up once: a look-up in a vector takes as long as
// counting ten times. Its map is never changed, but replaced.
type known[K comparable, V any] struct{ all atomic.Pointer[map[K]*V] }

func (t *known[K, V]) get(key K) *V {
	if all := t.all.Load(); all != nil {
		return (*all)[key]
	}
	return nil
}

// put returns v, or what somebody else has put there meanwhile.
func (t *known[K, V]) put(key K, v *V) *V {
	for {
		old := t.all.Load()
		next := map[K]*V{}
		if old != nil {
			if was := (*old)[key]; was != nil {
				return was
			}
			for k, v := range *old {
				next[k] = v
			}
		}
		next[key] = v
		if t.all.CompareAndSwap(old, &next) {
			return v
		}
	}
}
