// Keccak-256 with the padding of before FIPS 202, as Ethereum uses it: the
// standard library has only SHA-3, which pads otherwise.

package pii

import (
	"encoding/binary"
	"math/bits"
)

// keccak256 hashes a message of less than 136 bytes.
func keccak256(message []byte) (hash [32]byte) {
	const rate = 136
	var block [rate]byte
	copy(block[:], message)
	block[len(message)] = 0x01
	block[rate-1] |= 0x80
	var a [25]uint64
	for i := range rate / 8 {
		a[i] = binary.LittleEndian.Uint64(block[i*8:])
	}
	keccakF(&a)
	for i := range 4 {
		binary.LittleEndian.PutUint64(hash[i*8:], a[i])
	}
	return hash
}

// keccakF is the permutation Keccak-f[1600]; lane (x, y) is a[x+5*y].
func keccakF(a *[25]uint64) {
	lfsr := byte(1)
	for range 24 {
		var c [5]uint64
		for x := range 5 {
			c[x] = a[x] ^ a[x+5] ^ a[x+10] ^ a[x+15] ^ a[x+20]
		}
		for x := range 5 {
			d := c[(x+4)%5] ^ bits.RotateLeft64(c[(x+1)%5], 1)
			for y := 0; y < 25; y += 5 {
				a[x+y] ^= d
			}
		}
		x, y, lane := 1, 0, a[1]
		for t := range 24 {
			x, y = y, (2*x+3*y)%5
			a[x+5*y], lane = bits.RotateLeft64(lane, (t+1)*(t+2)/2), a[x+5*y]
		}
		for y := 0; y < 25; y += 5 {
			row := [5]uint64(a[y : y+5])
			for x := range 5 {
				a[x+y] = row[x] ^ ^row[(x+1)%5]&row[(x+2)%5]
			}
		}
		for j := range 7 {
			if lfsr&1 == 1 {
				a[0] ^= 1 << (1<<j - 1)
			}
			lfsr = lfsr<<1 ^ lfsr>>7*0x71
		}
	}
}
