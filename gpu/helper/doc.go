// Doc: what the helper does and how it is built.

// Command helper is the telemetry helper: it polls the GPUs through NVIDIA's driver library and
// prints the lines that gpu/snapshot describes, one line of JSON for each poll of each GPU, until
// its standard input ends.
//
//	helper 250ms /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1
//
// It is a separate program because the driver's library needs cgo and libc, which Kvasir's static
// binary does not have, and because a call into a broken driver can block for ever: then only the
// helper hangs, and no request. It is built by
//
//	CGO_ENABLED=1 GOOS=linux CGO_CFLAGS="-O2 -Wno-deprecated-declarations" \
//	  go build -trimpath -ldflags "-s -w -extldflags=-Wl,-z,lazy" -o helper ./gpu/helper
//
// and, to cross-compile for arm64, also GOARCH=arm64 CC=aarch64-linux-gnu-gcc. It needs the
// linker flag lazy to start: the driver's functions are resolved at their first call, after
// dlopen, but some compilers resolve all at the start. Built without cgo, it only prints an
// error.
//
// The parent ends it by closing its standard input, or by SIGKILL. It ignores the signals that a
// whole process group gets (SIGINT, SIGTERM, SIGHUP), so that telemetry goes on while the parent
// drains.
//
// Guarantees:
//
//  1. One goroutine polls the GPUs one after the other and writes their lines together. When a
//     call does not return within 5 ms, another goroutine polls the other GPUs. So a call that
//     blocks silences only its own GPU, if the driver allows it. There are never two polls of one
//     GPU at a time.
//  2. A value that the driver does not support is absent, and requested again after a minute. A
//     function that the library lacks is never called.
//  3. A GPU that cannot be polled is retried every second, with a new handle. After three seconds
//     of that, the library is shut down and initialised again, every three seconds, because a GPU
//     that was reset needs it.
//  4. A lost driver is initialised again, with at most two seconds between two attempts. When the
//     library's file was replaced, the helper ends, because only a new process can load the new
//     file.
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
