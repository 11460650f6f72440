// Limits of the process, on systems without Unix's.

//go:build !unix

package main

import (
	"math"
	"syscall"
)

const refused = syscall.Errno(10061) // WSAECONNREFUSED

// raiseFileLimit has nothing to raise here.
func raiseFileLimit() (uint64, error) { return math.MaxUint64, nil }
