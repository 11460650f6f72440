// Twice: whether an object that is read has a member twice.
package openai

import "bytes"

// Names are those of the members so far, of every object that is open. Readers
// of JSON do not agree which of two members of one name counts, some take names
// that differ in case for one, and an escape hides what a name is: what is read
// here may be none of what a client reads.
type Names struct {
	list  [][]byte // of the objects that are open, the outermost first
	open  []int    // where each of them begins in list
	Twice bool     // there was such a member
}

func (n *Names) Reset() {
	clear(n.list)
	n.list, n.open, n.Twice = n.list[:0], n.open[:0], false
}

func (n *Names) enter() { n.open = append(n.open, len(n.list)) }

func (n *Names) leave() {
	last := len(n.open) - 1
	n.list, n.open = n.list[:n.open[last]], n.open[:last]
}

// manyNames is how many members an object may have that is compared one by one.
const manyNames = 256

func (n *Names) add(name []byte) {
	of := n.list[n.open[len(n.open)-1]:]
	n.Twice = n.Twice || len(of) >= manyNames || HasEscape(name)
	for i := 0; i < len(of) && !n.Twice; i++ {
		n.Twice = bytes.EqualFold(of[i], name)
	}
	n.list = append(n.list, name)
}

func HasEscape(key []byte) bool { return bytes.IndexByte(key, '\\') >= 0 }

// UniqueNames says whether no object within the JSON value, at any depth, has a member
// twice.
func UniqueNames(value []byte) bool {
	n := Names{}
	w := Walker{B: value, Names: &n}
	w.readAll()
	return !w.Bad && !n.Twice
}

// readAll steps over the next value, member by member.
func (w *Walker) readAll() {
	switch {
	case w.Enter('{'):
		for w.Key() {
			w.readAll()
		}
	case w.Enter('['):
		for w.Element() {
			w.readAll()
		}
	default:
		w.Skip()
	}
}
