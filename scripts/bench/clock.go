//go:build linux

// The clock that two processes of one machine share.

package main

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Go's monotonic clock counts from the start of the process, but both ends of a measurement need
// the same zero. So the kernel's clock is read once, and Go's cheap reading (no system call) is
// added to it: at most 0.2 us off, the same for every way compared.
var (
	clockZero = time.Now()
	clockBase = kernelClock()
)

func kernelClock() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(fmt.Sprintf("BUG: no monotonic clock: %v", err))
	}
	return time.Duration(t.Nano())
}

// now returns the time since the machine started, the same in every process.
func now() time.Duration {
	return clockBase + time.Since(clockZero)
}
