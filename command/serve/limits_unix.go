// Limits of the process, on Unix.

//go:build unix

package serve

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// raiseFileLimit raises the soft limit of open files to the hard one and
// gives what it is now.
func raiseFileLimit() (uint64, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("cannot read the limit of open files: %w", err)
	}
	if limit.Cur >= limit.Max {
		return uint64(limit.Cur), nil //nolint:unconvert // signed on FreeBSD
	}
	before := limit.Cur
	limit.Cur = limit.Max
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return uint64(before), fmt.Errorf("cannot raise the limit of open files to %d: %w", limit.Max, err) //nolint:unconvert // signed on FreeBSD
	}
	return uint64(limit.Cur), nil //nolint:unconvert // signed on FreeBSD
}
