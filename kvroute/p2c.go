// Policy p2c: of two workers drawn at random, the one with less load (the power of two choices).

package kvroute

func p2c(e eligible) *Worker {
	n := len(e.workers)
	if n > 1 {
		i := e.below(n)
		j := (i + 1 + e.below(n-1)) % uint64(n)
		if a, b := e.workers[i], e.workers[j]; e.has(a) && e.has(b) {
			return lighter(a, b)
		}
	}
	// Some are not eligible: draw among those that are.
	n = e.count()
	if n == 0 && e.widen() {
		n = e.count()
	}
	if n < 2 {
		return e.nth(0)
	}
	i := e.below(n)
	j := (i + 1 + e.below(n-1)) % uint64(n)
	return lighter(e.nth(i), e.nth(j))
}

// lighter returns the one with less load, a if equal; nil gives way to the other.
func lighter(a, b *Worker) *Worker {
	if a == nil || b != nil && b.load().below(a.load()) {
		return b
	}
	return a
}
