// Twice: whether an object has a member twice.

package openai

import "bytes"

// Names holds the names of the members so far, of every object that a Walker has
// entered and not left. Readers of JSON do not agree which of two members of one
// name counts, some take names that differ only in case for one, and an escape
// hides what a name is: of such an object a client may read something else than
// was read here. The zero value is ready.
type Names struct {
	list  [][]byte // of the objects that are open, the outermost first
	open  []int    // where each of them begins in list
	Twice bool     // there was such a member, or a name with an escape, or too many to compare
}

// Reset forgets all names and keeps the memory.
func (n *Names) Reset() {
	clear(n.list)
	n.list, n.open, n.Twice = n.list[:0], n.open[:0], false
}

func (n *Names) enter() { n.open = append(n.open, len(n.list)) }

func (n *Names) leave() {
	last := len(n.open) - 1
	n.list, n.open = n.list[:n.open[last]], n.open[:last]
}

// manyNames is how many members of one object are compared, each with all before
// it. An object with more counts as one that has a member twice.
const manyNames = 256

func (n *Names) add(name []byte) {
	of := n.list[n.open[len(n.open)-1]:]
	n.Twice = n.Twice || len(of) >= manyNames || HasEscape(name)
	for i := 0; i < len(of) && !n.Twice; i++ {
		n.Twice = bytes.EqualFold(of[i], name)
	}
	n.list = append(n.list, name)
}

// HasEscape says whether a key or a string is written with escapes.
func HasEscape(key []byte) bool { return bytes.IndexByte(key, '\\') >= 0 }

// UniqueNames says whether no object within the JSON value, at any depth, has a member
// twice.
func UniqueNames(value []byte) bool {
	n := Names{}
	w := Walk(value)
	w.Names = &n
	readAll(&w)
	return !w.Bad && !n.Twice
}

// readAll steps over the next value, member by member.
func readAll(w *Walker) {
	switch {
	case w.Enter('{'):
		for w.Key() {
			readAll(w)
		}
	case w.Enter('['):
		for w.Element() {
			readAll(w)
		}
	default:
		w.Skip()
	}
}
