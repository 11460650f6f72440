// A reader of msgpack that remembers its first error, over tinylib/msgp's functions.

package kvevents

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/tinylib/msgp/msgp"
)

// packed is msgpack still to be read. After an error every read gives nothing.
type packed struct {
	b   []byte
	err error
}

var (
	errHash     = errors.New("a hash is no number of 64 bits and no bytes")
	errToken    = errors.New("a token id is not between 0 and 2^32-1")
	errTooDeep  = errors.New("nested too deep")
	errLeftover = errors.New("bytes after the end")
)

func (p *packed) fail(err error) {
	if p.err == nil {
		p.err = err
		p.b = nil
	}
}

// kind is the type of what comes next.
func (p *packed) kind() msgp.Type { return msgp.NextType(p.b) }

// array reads how many items follow. The count is the sender's claim: each item takes a byte at least.
func (p *packed) array() int {
	n, rest, err := msgp.ReadArrayHeaderBytes(p.b)
	return p.counted(n, rest, err)
}

// pairs reads how many keys and values follow.
func (p *packed) pairs() int {
	n, rest, err := msgp.ReadMapHeaderBytes(p.b)
	return p.counted(n, rest, err)
}

func (p *packed) counted(n uint32, rest []byte, err error) int {
	if err == nil && uint64(n) > uint64(len(rest)) {
		err = fmt.Errorf("%d items claimed in %d bytes", n, len(rest))
	}
	if p.err != nil || err != nil {
		p.fail(err)
		return 0
	}
	p.b = rest
	return int(n)
}

// text reads a string or bytes, which are p's own.
func (p *packed) text() []byte {
	var s, rest []byte
	var err error
	if p.kind() == msgp.BinType {
		s, rest, err = msgp.ReadBytesZC(p.b)
	} else {
		s, rest, err = msgp.ReadStringZC(p.b)
	}
	if err != nil {
		p.fail(err)
		return nil
	}
	p.b = rest
	return s
}

// optionalText reads a string, or skips what is none.
func (p *packed) optionalText() []byte {
	if k := p.kind(); k == msgp.StrType || k == msgp.BinType {
		return p.text()
	}
	p.skip()
	return nil
}

// optionalInt reads a whole number that is not negative, or skips what is none.
func (p *packed) optionalInt() int {
	if k := p.kind(); k == msgp.IntType || k == msgp.UintType {
		if n, rest, err := msgp.ReadInt64Bytes(p.b); err == nil && n >= 0 && n <= math.MaxInt32 {
			p.b = rest
			return int(n)
		}
	}
	p.skip()
	return Unknown
}

// seconds reads a time, or skips what is none.
func (p *packed) seconds() float64 {
	switch p.kind() {
	case msgp.Float64Type, msgp.Float32Type:
		if f, rest, err := msgp.ReadFloat64Bytes(p.b); err == nil {
			p.b = rest
			return f
		}
	case msgp.IntType, msgp.UintType:
		return float64(max(p.optionalInt(), 0))
	}
	p.skip()
	return 0
}

// handle reads a hash: a number of either sign, or bytes, of which the last eight count.
func (p *packed) handle() uint64 {
	var h uint64
	var err error
	rest := p.b
	switch p.kind() {
	case msgp.IntType:
		var signed int64
		signed, rest, err = msgp.ReadInt64Bytes(p.b)
		h = uint64(signed)
	case msgp.UintType:
		h, rest, err = msgp.ReadUint64Bytes(p.b)
	case msgp.BinType, msgp.StrType:
		s := p.text()
		if len(s) == 0 {
			p.fail(errHash)
			return 0
		}
		if len(s) >= 8 {
			return binary.BigEndian.Uint64(s[len(s)-8:])
		}
		for _, b := range s {
			h = h<<8 | uint64(b)
		}
		return h
	default:
		err = errHash
	}
	if err != nil {
		p.fail(err)
		return 0
	}
	p.b = rest
	return h
}

// tokens appends n token ids to dst. The four forms that engines send are read in place, 2 ns a token instead of 8.
func (p *packed) tokens(dst []uint32, n int) []uint32 {
	b := p.b
	for ; n > 0; n-- {
		if len(b) >= 5 {
			switch c := b[0]; {
			case c < 0x80:
				dst = append(dst, uint32(c))
				b = b[1:]
				continue
			case c == 0xcc:
				dst = append(dst, uint32(b[1]))
				b = b[2:]
				continue
			case c == 0xcd:
				dst = append(dst, uint32(binary.BigEndian.Uint16(b[1:])))
				b = b[3:]
				continue
			case c == 0xce:
				dst = append(dst, binary.BigEndian.Uint32(b[1:]))
				b = b[5:]
				continue
			}
		}
		p.b = b
		id := p.token()
		if p.err != nil {
			return dst
		}
		dst = append(dst, id)
		b = p.b
	}
	p.b = b
	return dst
}

// token reads one token id. Engines that guess tokens ahead name a position by two: the first is the position's own.
func (p *packed) token() uint32 {
	if p.kind() == msgp.ArrayType {
		n := p.array()
		if n == 0 || p.kind() == msgp.ArrayType {
			p.fail(errToken)
			return 0
		}
		id := p.token()
		for range n - 1 {
			p.skip()
		}
		return id
	}
	id, rest, err := msgp.ReadUint64Bytes(p.b)
	if err != nil || id > math.MaxUint32 {
		p.fail(errToken)
		return 0
	}
	p.b = rest
	return uint32(id)
}

// skip passes over one value of any kind and returns its bytes.
func (p *packed) skip() []byte {
	before := p.b
	p.skipTo(maxDepth)
	return before[:len(before)-len(p.b)]
}

// maxDepth bounds how deep values may be nested: an event's own are four deep.
const maxDepth = 32

func (p *packed) skipTo(depth int) {
	if depth == 0 {
		p.fail(errTooDeep)
		return
	}
	items := 0
	switch p.kind() {
	case msgp.ArrayType:
		items = p.array()
	case msgp.MapType:
		items = 2 * p.pairs()
	default:
		rest, err := msgp.Skip(p.b)
		if err != nil {
			p.fail(err)
			return
		}
		p.b = rest
		return
	}
	for items > 0 && p.err == nil {
		// Most of what there is are numbers: 1 ns each here, 8 by the general way.
		b := p.b
		for items > 0 && len(b) > 0 {
			n := int(sizes[b[0]])
			if n == 0 || n > len(b) {
				break
			}
			b = b[n:]
			items--
		}
		p.b = b
		if items > 0 {
			p.skipTo(depth - 1)
			items--
		}
	}
}

// sizes says, by a value's first byte, how many bytes it takes, where that byte says it; else 0.
var sizes = func() (sizes [256]uint8) {
	for lead := range sizes {
		switch {
		case lead < 0x80, lead >= 0xe0, lead == 0xc0, lead == 0xc2, lead == 0xc3:
			sizes[lead] = 1
		case lead == 0xcc, lead == 0xd0:
			sizes[lead] = 2
		case lead == 0xcd, lead == 0xd1:
			sizes[lead] = 3
		case lead == 0xce, lead == 0xd2, lead == 0xca:
			sizes[lead] = 5
		case lead == 0xcf, lead == 0xd3, lead == 0xcb:
			sizes[lead] = 9
		case lead >= 0xa0 && lead < 0xc0: // short text
			sizes[lead] = 1 + uint8(lead&0x1f)
		}
	}
	return sizes
}()
