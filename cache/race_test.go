//go:build race

// Whether the race detector is on: it makes sync.Pool drop items at random.

package cache_test

const raceEnabled = true
