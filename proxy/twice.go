// Twice: whether an object that is read has a member twice.
package proxy

import "bytes"

// replyNames are those of the members so far, of every object that is open. Readers
// of JSON do not agree which of two members of one name counts, some take names
// that differ in case for one, and an escape hides what a name is: what is read
// here may be none of what a client reads.
type replyNames struct {
	list  [][]byte // of the objects that are open, the outermost first
	open  []int    // where each of them begins in list
	twice bool     // there was such a member
}

func (n *replyNames) reset() {
	clear(n.list)
	n.list, n.open, n.twice = n.list[:0], n.open[:0], false
}

func (n *replyNames) enter() { n.open = append(n.open, len(n.list)) }

func (n *replyNames) leave() {
	last := len(n.open) - 1
	n.list, n.open = n.list[:n.open[last]], n.open[:last]
}

// manyNames is how many members an object may have that is compared one by one.
const manyNames = 256

func (n *replyNames) add(name []byte) {
	of := n.list[n.open[len(n.open)-1]:]
	n.twice = n.twice || len(of) >= manyNames || hasEscape(name)
	for i := 0; i < len(of) && !n.twice; i++ {
		n.twice = bytes.EqualFold(of[i], name)
	}
	n.list = append(n.list, name)
}

// single says whether no object within the JSON value, at any depth, has a member
// twice.
func single(value []byte) bool {
	n := replyNames{}
	w := replyWalker{b: value, names: &n}
	w.readAll()
	return !w.bad && !n.twice
}

// readAll steps over the next value, member by member.
func (w *replyWalker) readAll() {
	switch {
	case w.enter('{'):
		for w.key() {
			w.readAll()
		}
	case w.enter('['):
		for w.element() {
			w.readAll()
		}
	default:
		w.skip()
	}
}
