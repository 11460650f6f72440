// Suspects: the pieces of a long text that are worth the encoder.

package classify

import "slices"

// maxWhole is how long a text may be to be embedded whole, in bytes.
const maxWhole = 16 << 10

// Of each kind of suspicion so many pieces are embedded, besides the first and
// the last of the text, where attacks like to stand.
const (
	mostAttacks  = 4
	mostIndirect = 2
)

// A suspect is a piece and how much its words speak against it.
type suspect struct {
	piece []byte
	score float32
}

// suspects are the worst pieces so far.
type suspects struct {
	first, last []byte
	attacks     [mostAttacks]suspect
	indirect    [mostIndirect]suspect
	list        [2 + mostAttacks + mostIndirect][]byte
}

// add looks at one more piece; they come in order.
func (s *suspects) add(p pieces, attack, indirect float32) {
	if s.first == nil {
		s.first = p.piece
	}
	s.last = p.piece
	keepWorst(s.attacks[:], suspect{p.piece, attack})
	keepWorst(s.indirect[:], suspect{p.piece, indirect})
}

// keepWorst puts a suspect in the place of the least of those in list.
func keepWorst(list []suspect, one suspect) {
	least := 0
	for i := range list {
		if list[i].piece == nil {
			list[i] = one
			return
		}
		if list[i].score < list[least].score {
			least = i
		}
	}
	if one.score > list[least].score {
		list[least] = one
	}
}

// pieces are those to be embedded, each once.
func (s *suspects) pieces() [][]byte {
	out := append(s.list[:0], s.first)
	add := func(piece []byte) {
		if piece != nil && !slices.ContainsFunc(out, func(have []byte) bool { return &have[0] == &piece[0] }) {
			out = append(out, piece)
		}
	}
	add(s.last)
	for _, one := range s.attacks {
		add(one.piece)
	}
	for _, one := range s.indirect {
		add(one.piece)
	}
	return out
}
