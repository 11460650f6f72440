//go:build !race

// Whether the race detector is on.

package embedded

const raceEnabled = false
