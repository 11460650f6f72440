//go:build !race

// Whether the race detector is on.

package pii

const raceEnabled = false
