// Doc: what the helper is and how it is built.

// Command helper is the telemetry helper: it asks NVIDIA's driver library how the GPUs are and
// prints what gpu/snapshot describes, one line of JSON for each poll of each GPU, until its standard
// input ends.
//
//	helper 250ms /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1
//
// It is a program of its own because the driver's library needs cgo and libc, which Kvasir's static
// binary does without, and because a call into a broken driver can block for ever: then the helper
// hangs, and no request does. It is built by
//
//	CGO_ENABLED=1 GOOS=linux CGO_CFLAGS="-O2 -Wno-deprecated-declarations" \
//	  go build -trimpath -ldflags "-s -w -extldflags=-Wl,-z,lazy" -o helper ./gpu/helper
//
// and for arm64 on another machine with GOARCH=arm64 CC=aarch64-linux-gnu-gcc besides. The linker's
// lazy is what lets it start: functions of the driver are found at their first call, after dlopen,
// and some compilers ask for all at the start. Without cgo it only says so.
//
// The parent ends it by closing its standard input, or by SIGKILL; it ignores the signals that a whole
// process group gets (SIGINT, SIGTERM, SIGHUP), so that telemetry lasts while the parent drains.
//
// What it promises:
//
//  1. One goroutine asks the GPUs one after the other and writes their lines at once. When a call
//     does not return within 5 ms another goroutine asks the others, so one that blocks for one GPU
//     makes only that one silent, where the driver allows; there are never two polls of one GPU at
//     a time.
//  2. What the driver does not support is absent and asked for again after a minute. A function
//     that the library lacks is never called.
//  3. A GPU that cannot be asked is asked again every second, with its handle fetched anew. After
//     three seconds of that the library is shut down and initialised again, every three seconds,
//     as a GPU that was reset needs.
//  4. A lost driver is initialised again, with at most two seconds between two attempts. When the
//     library's file was replaced the helper ends, since only a new process can load the new one.
package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: helper INTERVAL LIBRARY")
		os.Exit(2)
	}
	interval, err := time.ParseDuration(os.Args[1])
	if err != nil || interval < 10*time.Millisecond {
		fmt.Fprintf(os.Stderr, "helper: %q is no interval of 10ms or more\n", os.Args[1])
		os.Exit(2)
	}
	if err := watch(interval, os.Args[2]); err != nil {
		fmt.Fprintf(os.Stderr, "helper: %v\n", err)
		os.Exit(1)
	}
}
