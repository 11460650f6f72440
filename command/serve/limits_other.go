// Limits of the process, on systems without Unix's.

//go:build !unix

package serve

import "math"

// raiseFileLimit has nothing to raise here.
func raiseFileLimit() (uint64, error) { return math.MaxUint64, nil }
