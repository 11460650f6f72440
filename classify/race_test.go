//go:build race

// Whether the race detector is on.

package classify

const raceEnabled = true
