//go:build !race

// Whether the race detector is on.

package kvindex

const raceEnabled = false
