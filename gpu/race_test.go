//go:build race

// Whether the race detector is on: it slows the measured process down.

package gpu

const raceEnabled = true
