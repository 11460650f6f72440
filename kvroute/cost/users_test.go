// The table of users against a map.

package cost

import (
	"math/rand/v2"
	"testing"

	"kvasir/kvroute/kvindex"
)

// Every other round names have few different homes: they lie in runs, some around the end of the table.
func TestUsersEqualAMap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		u, want := newUsers(), map[kvindex.Name]int32{}
		names := make([]kvindex.Name, 200)
		for i := range names {
			names[i] = kvindex.Name(random.Uint64())
			for round%2 == 0 && i > 3 && u.home(names[i]) != u.home(names[i%4]) {
				names[i] = kvindex.Name(random.Uint64())
			}
		}
		for range 1000 {
			name := names[random.IntN(len(names))]
			if random.IntN(2) == 0 {
				if got := u.add(name); got != want[name] {
					t.Fatalf("round %d: %d users before another one, a map says %d", round, got, want[name])
				}
				want[name]++
			} else {
				left := max(want[name]-1, 0)
				if got := u.remove(name); got != left {
					t.Fatalf("round %d: %d users left, a map says %d", round, got, left)
				}
				if want[name] = left; left == 0 {
					delete(want, name)
				}
			}
			if name = names[random.IntN(len(names))]; u.of(name) != want[name] {
				t.Fatalf("round %d: %d users, a map says %d", round, u.of(name), want[name])
			}
		}
		if u.n != len(want) {
			t.Fatalf("round %d: %d blocks, a map has %d", round, u.n, len(want))
		}
	}
}
