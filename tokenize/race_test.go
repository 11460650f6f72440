//go:build race

// Whether the race detector is on.

package tokenize

const raceEnabled = true
