// The kinds of sources: a row for each.

package discovery

import (
	"fmt"
	"slices"
)

// A kind is one way to find workers. A new one is a file with its row, and the row's
// name in kinds; the configuration, its problems and its schema take the name and the
// keys from there.
type kind struct {
	name  string
	keys  []string                           // of an entry, beyond those that all kinds have
	label func(e *Entry) string              // what follows the kind in the source's name
	check func(e *Entry) (key, wrong string) // what no single key shows; "": it is good
	run   func(src *source)                  // looks and tells until src.ctx ends
}

// kinds are all there are, in the order in which messages list them.
var kinds = []*kind{&fileKind, &dnsKind, &kubernetesKind, &etcdKind, &dynamoKind}

func kindOf(name string) *kind {
	for _, k := range kinds {
		if k.name == name {
			return k
		}
	}
	panic(fmt.Sprintf("BUG: no kind of source %q", name))
}

// KindNames are the kinds of sources that an entry may name.
func KindNames() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// Keys are the keys of an entry that not every kind has, but this one.
func Keys(name string) []string { return kindOf(name).keys }

// OwnKey says whether not every kind of entry has the key.
func OwnKey(key string) bool {
	return slices.ContainsFunc(kinds, func(k *kind) bool { return slices.Contains(k.keys, key) })
}

// Check says which key of an entry is wrong, and what about it; "": it is good.
func Check(e *Entry) (key, wrong string) { return kindOf(e.Kind).check(e) }

// String is the name of the entry's source in the log, metrics and /readyz.
func (e *Entry) String() string { return e.Kind + " " + kindOf(e.Kind).label(e) }
