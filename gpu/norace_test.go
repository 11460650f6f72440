//go:build !race

// Whether the race detector is on.

package gpu

const raceEnabled = false
