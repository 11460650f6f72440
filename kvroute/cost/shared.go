// Blocks that unfinished requests have in common: an engine keeps them once.

package cost

import "kvasir/kvroute/kvindex"

// sampled is how many tokens apart the blocks are that are counted. Of engines with smaller blocks than that not
// every one is: a prompt of 100,000 tokens in blocks of 16 costs 1,600 look-ups instead of 6,300.
const sampled = 64

// share adds a user to the blocks of a prompt and returns how many of its tokens others have already.
func (m *Mirror) share(names []kvindex.Name) (tokens int) {
	m.active.touch(names, m.stride)
	had := 0
	for i := m.stride - 1; i < len(names); i += m.stride {
		if m.active.add(names[i]) > 0 {
			had++
		}
	}
	return had * m.stride * m.engine.BlockSize
}

// unshare takes a user away from them and returns how many of the prompt's tokens others still have.
func (m *Mirror) unshare(names []kvindex.Name) (tokens int) {
	m.active.touch(names, m.stride)
	have := 0
	for i := m.stride - 1; i < len(names); i += m.stride {
		if m.active.remove(names[i]) > 0 {
			have++
		}
	}
	return have * m.stride * m.engine.BlockSize
}

// Active is how many leading blocks of a prompt are those of unfinished requests that were sent with Names, short of
// at most one in 64 tokens. As each of those has all the blocks before any of its own, the run is found by halves.
func (m *Mirror) Active(names []kvindex.Name) int {
	low, high := 0, len(names)/m.stride
	for low < high {
		if mid := int(uint(low+high) >> 1); m.active.of(names[(mid+1)*m.stride-1]) > 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low * m.stride
}

// Users is how many unfinished requests have the first so many blocks of a prompt, Active's result for it.
func (m *Mirror) Users(names []kvindex.Name, blocks int) int {
	if blocks < m.stride || blocks > len(names) {
		return 0
	}
	return int(m.active.of(names[blocks/m.stride*m.stride-1]))
}
