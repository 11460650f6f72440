// The table of names against a map.

package sim

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// cachedHashes are the names of all cached blocks, sorted.
func cachedHashes(e *Engine) (hashes []uint64) {
	for _, b := range e.pool.blocks {
		if b.named {
			hashes = append(hashes, b.hash)
		}
	}
	slices.Sort(hashes)
	return hashes
}

// Few hashes with few different home slots: they form runs, some around the end of the table, and
// are dropped from within those.
func TestNamesEqualAMap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		n, want := newNames(), map[uint64]int32{}
		blocks := make([]block, 200)
		hashes := make([]uint64, len(blocks))
		for i := 1; i < len(hashes); i++ {
			hashes[i] = random.Uint64()
			if i > 4 && round%2 == 0 {
				for home := spread(hashes[1+i%4]) >> 58; spread(hashes[i])>>58 != home; {
					hashes[i] = random.Uint64()
				}
			}
			blocks[i].hash = hashes[i]
		}
		for range 1000 {
			at := int32(1 + random.IntN(len(blocks)-1))
			hash := hashes[at]
			if _, known := want[hash]; !known {
				n.add(hash, at)
				want[hash] = at
			} else if random.IntN(3) > 0 {
				n.drop(hash, at)
				delete(want, hash)
			}
			for i := 1; i < len(hashes); i += 7 {
				if got := n.find(hashes[i], blocks); got != want[hashes[i]] {
					t.Fatalf("round %d: block %d is found as %d, a map says %d", round, i, got, want[hashes[i]])
				}
			}
		}
		if n.n != len(want) {
			t.Fatalf("round %d: %d names, a map has %d", round, n.n, len(want))
		}
	}
}
