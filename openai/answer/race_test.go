//go:build race

// Whether the race detector is on.

package answer

const raceEnabled = true
