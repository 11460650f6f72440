//go:build race

// Whether the race detector is on.

package proxy

const raceEnabled = true
