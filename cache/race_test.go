//go:build race

// Whether the race detector is on: it has pools drop what they keep.

package cache_test

const raceEnabled = true
