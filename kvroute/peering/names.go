// Names of blocks on the wire: runs that were sent before, and runs that were not.

package peering

import (
	"encoding/binary"

	"kvasir/kvroute/kvindex"
)

// window is how many names a run may lie back. Prompts begin alike: of those of a conversation trace
// over four routers 13 % of the names need not be sent again, of a system prompt that all have next
// to all of it.
const window = 1 << 16

// Of the names of a prompt each run is either new (length<<1, and 8 bytes each), or a copy
// (length<<1|1, and how far back in the window it begins). New names are added to the window,
// at both ends alike: each message says at which place its own begin, so that who has missed
// one knows which places it does not know.

// A packer writes names.
type packer struct {
	ring  []kvindex.Name
	place map[kvindex.Name]uint64 // of the names in the window
	at    uint64                  // names that were added ever
	from  uint64                  // those before are not referred to
}

func newPacker() packer {
	return packer{ring: make([]kvindex.Name, window), place: map[kvindex.Name]uint64{}}
}

// restart refers to nothing that was sent before.
func (p *packer) restart() {
	clear(p.place)
	p.from = p.at
}

func (p *packer) add(name kvindex.Name) {
	slot := &p.ring[p.at%window]
	if p.at >= window+p.from && p.place[*slot] == p.at-window {
		delete(p.place, *slot)
	}
	*slot = name
	p.place[name] = p.at
	p.at++
}

// run returns how many of the names are in the window one after the other, and where.
func (p *packer) run(names []kvindex.Name) (place uint64, n int) {
	place, ok := p.place[names[0]]
	if !ok || place+window <= p.at {
		return 0, 0
	}
	for n < len(names) && place+uint64(n) < p.at && p.ring[(place+uint64(n))%window] == names[n] {
		n++
	}
	return place, n
}

// append appends names to a message.
func (p *packer) append(dst []byte, names []kvindex.Name) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(names)))
	for len(names) > 0 {
		if place, n := p.run(names); n > 0 {
			dst = binary.AppendUvarint(dst, uint64(n)<<1|1)
			dst = binary.AppendUvarint(dst, p.at-place)
			names = names[n:]
			continue
		}
		n := 1
		for n < len(names) {
			if _, known := p.place[names[n]]; known {
				break
			}
			n++
		}
		dst = binary.AppendUvarint(dst, uint64(n)<<1)
		for _, name := range names[:n] {
			dst = binary.LittleEndian.AppendUint64(dst, uint64(name))
			p.add(name)
		}
		names = names[n:]
	}
	return dst
}

// An unpacker reads what a packer wrote.
type unpacker struct {
	ring []kvindex.Name // made with the first name
	at   uint64
	from uint64 // places before are not known
}

// begin begins a message whose own names begin at a place.
func (u *unpacker) begin(at uint64) {
	if u.at != at {
		u.at, u.from = at, at
	}
}

func (u *unpacker) add(name kvindex.Name) {
	if u.ring == nil {
		u.ring = make([]kvindex.Name, window)
	}
	u.ring[u.at%window] = name
	u.at++
	if u.at-u.from > window {
		u.from = u.at - window
	}
}

// append appends the names that come next in a message, as far as they are known without a gap
// and the message's copies may stand for more.
func (u *unpacker) append(dst []kvindex.Name, r *reader) []kvindex.Name {
	return u.read(dst, r, true)
}

// skip reads over them: those that are new are there for copies.
func (u *unpacker) skip(r *reader) { u.read(nil, r, false) }

// read is append; not known: it appends none.
func (u *unpacker) read(dst []kvindex.Name, r *reader, known bool) []kvindex.Name {
	left := r.number(maxBlocks)
	for left > 0 && !r.bad {
		head := r.uvarint()
		n := int(min(head>>1, maxBlocks+1))
		if n == 0 || n > left {
			r.bad = true
			return dst
		}
		left -= n
		if head&1 == 0 {
			for _, name := range r.names(n) {
				if u.add(name); known {
					dst = append(dst, name)
				}
			}
			continue
		}
		back := r.uvarint()
		if back > u.at || back > window || uint64(n) > back {
			r.bad = true
			return dst
		}
		place := u.at - back
		for i := uint64(0); known && i < uint64(n); i++ {
			if known = place+i >= u.from && r.expand > 0; known {
				r.expand--
				dst = append(dst, u.ring[(place+i)%window])
			}
		}
	}
	return dst
}
