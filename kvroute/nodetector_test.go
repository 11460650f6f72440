//go:build !race

// Whether the race detector is on.

package kvroute

const raceEnabled = false
