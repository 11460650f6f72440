// Rows: the possible merges of a very long word, by rank. With a heap of millions of them each
// merge would take half a microsecond.

package tokenize

// rows holds the places where merges could be done, a row for each rank. A word of megabytes
// repeats few characters, so it has few ranks, each at many places, and the places come nearly in
// order.
type rows struct {
	of    map[uint32]int32 // rank: its row
	rows  []row
	ranks []uint32 // those of rows with places, least first: a heap
	last  int32    // the row that was asked for last; negative: none
}

// A row is the places of one rank: those that came in order, and a heap of those that did not.
type row struct {
	rank   uint32
	queued bool // its rank is among ranks
	places []int32
	head   int
	late   []int32
}

// size returns how many bytes of memory the rows keep.
func (r *rows) size() int {
	if r == nil {
		return 0
	}
	n := 4*cap(r.ranks) + 80*cap(r.rows)
	for _, one := range r.rows[:cap(r.rows)] {
		n += 4 * (cap(one.places) + cap(one.late))
	}
	return n
}

func (r *rows) begin() {
	if r.of == nil {
		r.of = map[uint32]int32{}
	}
	clear(r.of)
	r.rows, r.ranks, r.last = r.rows[:0], r.ranks[:0], -1
}

// row is the row of a rank; it makes one if there is none.
func (r *rows) row(rank uint32) *row {
	if r.last >= 0 && r.rows[r.last].rank == rank {
		return &r.rows[r.last]
	}
	at, ok := r.of[rank]
	if !ok {
		at = int32(len(r.rows))
		if len(r.rows) < cap(r.rows) { // reuse the memory of an earlier row
			r.rows = r.rows[:at+1]
			one := &r.rows[at]
			*one = row{rank: rank, places: one.places[:0], late: one.late[:0]}
		} else {
			r.rows = append(r.rows, row{rank: rank})
		}
		r.of[rank] = at
	}
	r.last = at
	return &r.rows[at]
}

// add notes that the merge of a rank could be done at a place.
func (r *rows) add(rank uint32, place int32) {
	one := r.row(rank)
	if !one.queued {
		one.queued = true
		r.ranks = pushLeast(r.ranks, rank)
	}
	one.add(place)
}

func (r *row) add(place int32) {
	if n := len(r.places); n > 0 && place < r.places[n-1] {
		r.late = pushLeast(r.late, place)
		return
	}
	r.places = append(r.places, place)
}

// take takes the first place; false: there is none.
func (r *row) take() (place int32, ok bool) {
	switch inOrder := r.head < len(r.places); {
	case len(r.late) > 0 && (!inOrder || r.late[0] < r.places[r.head]):
		place = r.late[0]
		r.late = popLeast(r.late)
	case inOrder:
		place = r.places[r.head]
		r.head++
	default:
		r.places, r.head, r.queued = r.places[:0], 0, false
		return 0, false
	}
	return place, true
}

// endless merges a very long word.
func (m *merger) endless(dst []uint32, t *pairTable) []uint32 {
	m.link()
	if m.rows == nil {
		m.rows = &rows{}
	}
	r := m.rows
	r.begin()
	for i, p := range m.pairs {
		if p != noPair {
			r.add(uint32(p>>32), int32(i))
		}
	}
	for len(r.ranks) > 0 {
		rank := r.ranks[0]
		at, ok := r.row(rank).take()
		if !ok {
			r.ranks = popLeast(r.ranks)
			continue
		}
		// A step whose symbols have changed since is out of date.
		if p := m.pairs[at]; m.next[at] >= 0 && p != noPair && uint32(p>>32) == rank {
			m.join(at, uint32(p))
			m.enter(t, at)
			if m.prev[at] >= 0 {
				m.enter(t, m.prev[at])
			}
		}
	}
	return m.left(dst)
}

// enter looks at what the symbol at a place makes with the next.
func (m *merger) enter(t *pairTable, at int32) {
	m.pairs[at] = noPair
	if next := m.next[at]; next >= 0 {
		if p := t.merge(m.symbols[at], m.symbols[next]); p != noPair {
			m.pairs[at] = p
			m.rows.add(uint32(p>>32), at)
		}
	}
	m.steps++
}

// pushLeast and popLeast keep a heap with the least value first.
func pushLeast[T int32 | uint32](h []T, v T) []T {
	h = append(h, v)
	i := len(h) - 1
	for i > 0 && h[(i-1)/2] > v {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = v
	return h
}

func popLeast[T int32 | uint32](h []T) []T {
	last := len(h) - 1
	v := h[last]
	h = h[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			if i < last {
				h[i] = v
			}
			return h
		}
		if child+1 < last && h[child+1] < h[child] {
			child++
		}
		if h[child] >= v {
			h[i] = v
			return h
		}
		h[i] = h[child]
		i = child
	}
}
