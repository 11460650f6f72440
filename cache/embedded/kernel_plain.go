// The inner loops in plain Go: the form that runs on every machine, and the reference for the
// others.

package embedded

import (
	"encoding/binary"
	"math/bits"
)

// scanPlain scans the blocks of the first n entries. bound includes headOffset.
func (s *scanned) scanPlain(c *chunk, n int, e *estimate, bound int) {
	var both [headBytes]wide
	for i := range both {
		both[i].fill(&e.tables[2*i], &e.tables[2*i+1])
	}
	for i := range (n + lanes - 1) / lanes {
		block := (*[blockBytes]byte)(c.heads[i*blockBytes:])
		alive := min(lanes, n-i*lanes) // the other slots may be being written now
		var room [lanes]uint16
		sums := room[:alive]
		for row := 0; row < headBytes; row += 4 {
			tables := (*[4]wide)(both[row:])
			first, second := block[row*lanes:][:len(sums)], block[(row+1)*lanes:][:len(sums)]
			third, fourth := block[(row+2)*lanes:][:len(sums)], block[(row+3)*lanes:][:len(sums)]
			for lane := range sums {
				sums[lane] += uint16(tables[0][first[lane]]) + uint16(tables[1][second[lane]]) +
					uint16(tables[2][third[lane]]) + uint16(tables[3][fourth[lane]])
			}
		}
		s.hits[i] = 0
		for lane, sum := range sums {
			s.sums[i][sumAt(lane)] = sum
			if int(sum) <= bound {
				s.hits[i] |= 1 << lane
			}
		}
	}
}

// A wide table combines two tables, for one byte of a head: half as many steps per entry.
type wide [256]uint8

// fill computes the sums, 8 at a time: no sum is above 255.
func (w *wide) fill(low, high *table) {
	first, second := binary.LittleEndian.Uint64(low[:]), binary.LittleEndian.Uint64(low[8:])
	for i, sum := range high {
		all := uint64(sum) * 0x0101010101010101
		binary.LittleEndian.PutUint64(w[16*i:], first+all)
		binary.LittleEndian.PutUint64(w[16*i+8:], second+all)
	}
}

// refinePlain refines the first blocks. bound includes headOffset.
func (s *scanned) refinePlain(blocks int, c *chunk, e *estimate, bound int) {
	for i := range blocks {
		for left := s.hits[i]; left != 0; left &= left - 1 {
			lane := bits.TrailingZeros64(left)
			if int(s.sums[i][sumAt(lane)])+c.tails[i*lanes+lane].sum(&e.planes) > bound {
				s.hits[i] &^= 1 << lane
			}
		}
	}
}

// sum returns the sum of the values at the set bits.
func (t *tail) sum(planes *[valueBits]tail) (sum int) {
	for w, word := range t {
		sum += bits.OnesCount64(word&planes[0][w]) + 2*bits.OnesCount64(word&planes[1][w]) +
			4*bits.OnesCount64(word&planes[2][w]) - 8*bits.OnesCount64(word&planes[3][w])
	}
	return sum
}

// dotPlain returns the dot product.
func dotPlain(a, b *vector) (sum int32) {
	for i, x := range a {
		sum += int32(x) * int32(b[i])
	}
	return sum
}
