// Added tokens: strings that are tokens wherever they stand. They are cut out of a text first.

package tokenize

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// addedToken is one entry of added_tokens.
type addedToken struct {
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // only where no word character stands beside it
	LStrip     bool   `json:"lstrip"`      // takes the white space before it
	RStrip     bool   `json:"rstrip"`      // and behind it
	Normalized bool   `json:"normalized"`  // looked for in the normalised text

	token uint32
}

// maxAdded is the most bytes of an added token: each byte of a text can cost that many steps.
const maxAdded = 512

// finder finds added tokens: at each place the longest, from left to right. Immutable.
type finder struct {
	u     *unicodeTables
	first [256]bool // bytes that an added token begins with
	alike bool      // all begin with the same byte, as <|im_start|> and </tool_call> do
	begin byte      // that byte
	nodes []finderNode
	edges map[uint64]uint32 // `node<<8 | byte` -> node
	added []addedToken
	apart []bool // which of added leave a Mark
}

// finderNode is a node of the trie: the added token that ends there, or -1. A node with one child
// holds that child in only; the children of all other nodes are in finder.edges.
type finderNode struct {
	added int32
	only  uint32 // the only child, or 0
	byte  byte
	many  bool
}

// newFinder returns nil where there is nothing to find.
func newFinder(u *unicodeTables, all []addedToken, patterns []string) (*finder, error) {
	if len(all) == 0 {
		return nil, nil
	}
	f := &finder{u: u, nodes: []finderNode{{added: -1}}, edges: map[uint64]uint32{}, added: all}
	for i, pattern := range patterns {
		if pattern == "" || len(pattern) > maxAdded {
			return nil, fmt.Errorf("added token %.40q of %d bytes (1 to %d are): %w", pattern, len(pattern), maxAdded, ErrUnsupported)
		}
		f.first[pattern[0]] = true
		f.begin = patterns[0][0]
		f.alike = (f.alike || i == 0) && pattern[0] == f.begin
		node := uint32(0)
		for _, c := range []byte(pattern) {
			edge := uint64(node)<<8 | uint64(c)
			to, ok := f.edges[edge]
			if !ok {
				to = uint32(len(f.nodes))
				f.edges[edge] = to
				n := &f.nodes[node]
				n.many = n.only != 0
				n.only, n.byte = to, c
				f.nodes = append(f.nodes, finderNode{added: -1})
			}
			node = to
		}
		if f.nodes[node].added >= 0 {
			return nil, fmt.Errorf("two added tokens %.40q: %w", pattern, ErrUnsupported)
		}
		f.nodes[node].added = int32(i)
	}
	return f, nil
}

// match returns the longest added token at s[i], or -1, and its end.
func (f *finder) match(s []byte, i int) (added int32, end int) {
	added = -1
	node := uint32(0)
	for ; i < len(s); i++ {
		n := &f.nodes[node]
		to := n.only
		if n.many {
			to = f.edges[uint64(node)<<8|uint64(s[i])]
		} else if n.byte != s[i] {
			to = 0
		}
		if to == 0 {
			break
		}
		if node = to; f.nodes[node].added >= 0 {
			added, end = f.nodes[node].added, i+1
		}
	}
	return added, end
}

// found is an added token with the white space that it takes: s[from:to]. The search goes on at next.
type found struct {
	token          uint32
	added          int32
	from, to, next int
}

// find finds the first added token in s[i:]. done is the end of what earlier tokens have taken, white
// space included.
func (f *finder) find(s []byte, i, done int) (found, bool) {
	for i < len(s) {
		if f.alike {
			next := bytes.IndexByte(s[i:], f.begin)
			if next < 0 {
				break
			}
			i += next
		}
		if !f.first[s[i]] {
			i++
			continue
		}
		n, end := f.match(s, i)
		if n < 0 {
			i++
			continue
		}
		a := &f.added[n]
		if a.SingleWord && (f.wordBefore(s, i) || f.wordAt(s, end)) {
			i = end
			continue
		}
		hit := found{a.token, n, i, end, end}
		if a.LStrip {
			hit.from = max(f.spacesBefore(s, i), done)
		}
		if a.RStrip {
			for hit.to < len(s) {
				r, n := decode(s, hit.to)
				if f.u.bert.of(r)&bertWhite == 0 {
					break
				}
				hit.to += n
			}
		}
		if hit.from >= hit.to { // the token before has taken all of this one: it is dropped, as in the library
			i = end
			continue
		}
		return hit, true
	}
	return found{}, false
}

func (f *finder) spacesBefore(s []byte, i int) int {
	for i > 0 {
		r, n := utf8.DecodeLastRune(s[:i])
		if f.u.bert.of(r)&bertWhite == 0 {
			break
		}
		i -= n
	}
	return i
}

func (f *finder) wordBefore(s []byte, i int) bool {
	r, _ := utf8.DecodeLastRune(s[:i])
	return i > 0 && f.u.bert.of(r)&runeWord != 0
}

func (f *finder) wordAt(s []byte, i int) bool {
	if i == len(s) {
		return false
	}
	r, _ := decode(s, i)
	return f.u.bert.of(r)&runeWord != 0
}
