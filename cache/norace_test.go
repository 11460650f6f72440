//go:build !race

// Whether the race detector is on.

package cache_test

const raceEnabled = false
