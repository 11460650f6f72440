//go:build !race

// Whether the race detector is on.

package verify

const raceEnabled = false
