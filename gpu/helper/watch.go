//go:build linux && cgo

// Watch: the helper's main loop: open, initialise, poll, and start again when the driver was
// lost.

package main

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"kvasir/gpu/snapshot"
)

// Waiting times: between two attempts to initialise, and with a lost GPU until the library is
// initialised again. The latter does not grow: a GPU that comes back after an hour must also be
// seen within 4 s.
const (
	firstWait   = 250 * time.Millisecond
	longestWait = 2 * time.Second
	patience    = 3 * time.Second
	settled     = 10 * time.Second // a shorter session counts as a failed attempt
)

var errReplaced = errors.New("the driver's library was replaced: a new process is needed for the new one")

// watch polls until standard input ends.
func watch(interval time.Duration, path string) error {
	runtime.GOMAXPROCS(1) // polls are short, so more threads would only cost wake-ups. A thread in a hanging call does not count.
	// Ctrl-C and supervisors signal all processes of a group, but the parent decides when the
	// helper ends.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go endWithInput()
	out := newPrinter(os.Stdout)
	var lib *library
	for wait := firstWait; lib == nil; wait = longer(wait) {
		var err error
		if lib, err = openLibrary(path); err != nil {
			out.print(snapshot.Line{Trouble: &snapshot.Trouble{
				GPU: wholeDriver, Code: code(nvml.ERROR_LIBRARY_NOT_FOUND), Text: err.Error(),
			}})
			time.Sleep(wait)
		}
	}
	h := &helper{lib: lib, out: out, interval: interval, xids: &xids{all: map[string][]snapshot.Xid{}}}
	return h.sessions()
}

// endWithInput ends the helper when its parent ends, without waiting for a call that hangs.
func endWithInput() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func longer(wait time.Duration) time.Duration { return min(2*wait, longestWait) }

// A helper is the state that outlives sessions.
type helper struct {
	lib      *library
	out      *printer
	interval time.Duration
	xids     *xids

	said     snapshot.Hello // the last one
	troubled bool           // the driver had trouble since then
}

// sessions returns when a new process must open the library.
func (h *helper) sessions() error {
	wait := firstWait
	for {
		if ret := h.lib.Init(); ret != nvml.SUCCESS {
			h.troubled = true
			h.out.trouble(wholeDriver, ret)
			h.out.flush()
			if h.lib.replaced() {
				return errReplaced
			}
			time.Sleep(wait)
			wait = longer(wait)
			continue
		}
		gpus, ret := h.lib.DeviceGetCount()
		if ret == nvml.SUCCESS {
			h.hello(gpus)
			began := time.Now()
			s := session{lib: h.lib, out: h.out, xids: h.xids, interval: h.interval, gpus: gpus}
			ret = s.run()
			if time.Since(began) >= settled {
				wait = firstWait
			}
		} else {
			h.out.trouble(wholeDriver, ret)
			h.out.flush()
		}
		h.lib.Shutdown()
		if ret == nvml.SUCCESS {
			continue
		}
		h.troubled = true
		time.Sleep(wait)
		wait = longer(wait)
	}
}

// hello prints the driver version and the number of GPUs: at the start, when either has changed,
// after the driver was lost, and in every session while there is no GPU, because nothing else is
// printed then.
func (h *helper) hello(gpus int) {
	now := snapshot.Hello{Protocol: snapshot.Protocol, GPUs: gpus}
	if version, ret := h.lib.SystemGetDriverVersion(); ret == nvml.SUCCESS {
		now.Driver = version
	}
	if now != h.said || h.troubled || gpus == 0 {
		h.out.print(snapshot.Line{Hello: &now})
	}
	h.said, h.troubled = now, false
}
