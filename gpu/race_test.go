//go:build race

// Whether the race detector is on: it makes the process that is measured slower.

package gpu

const raceEnabled = true
