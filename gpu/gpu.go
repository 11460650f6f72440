// GPU telemetry: one helper process asks the driver, and what it says is kept.

// Package gpu knows how the GPUs of this host are. Kvasir is a static binary and
// cannot load the driver's library itself, so a helper program, embedded and
// started from memory, does and prints what it finds; a call that hangs in the
// driver hangs the helper and nothing else.
//
//	m := gpu.Start(gpu.Options{Notice: log})
//	defer m.Close()
//	for _, g := range m.Fleet(time.Now()).GPUs {
//		if g.State == gpu.OK { ... }
//	}
//
// Invariants:
//  1. Without a driver's library or a helper there is no goroutine and no process.
//  2. At most one helper of this process asks the driver: one that cannot be
//     ended, because it hangs in the kernel, is not doubled until it is gone.
//  3. No reader waits: Fleet takes no lock.
package gpu

import (
	"sync"
	"sync/atomic"
	"time"
)

// Options of Start. The zero value is the usual one.
type Options struct {
	Interval time.Duration // between two polls of a GPU; 0: 250 ms
	Library  string        // path of libnvidia-ml.so.1; empty: looked for
	Helper   []byte        // an ELF program; nil: the embedded one
	// After is a monitor that its owner is about to close, for this one to take its
	// place: its helper ends before the new one starts, and what it knew of GPUs
	// is kept, so that nobody takes them for gone. nil: there was none.
	After *Monitor
	// Notice is called from a goroutine of the monitor once for each change of a
	// state: of telemetry as a whole, or of one GPU while telemetry is ok. err is
	// nil where the new state is ok. A monitor that is Off from the start calls
	// nobody. It must not call Close, which waits for it. nil: nobody is told.
	Notice func(text string, err error)
}

// A Monitor keeps the fleet of this host.
type Monitor struct {
	options  Options
	bounds   bounds
	observed atomic.Pointer[observation] // written by run alone, once it goes

	closing chan struct{}
	closed  sync.Once
	done    chan struct{} // closed when run has ended; nil: it never began
}

// Start begins telemetry. It never fails: Fleet says why there is none.
func Start(o Options) *Monitor { return start(o, usualBounds) }

func start(o Options, b bounds) *Monitor {
	if o.Interval <= 0 {
		o.Interval = 250 * time.Millisecond
	}
	m := &Monitor{options: o, bounds: b, closing: make(chan struct{})}
	library, err := find(o.Library, host())
	if err == nil && o.Helper == nil && embedded() == nil {
		err = errNotInside(library)
	}
	if err != nil {
		m.observed.Store(&observation{state: Off, why: err.Error()})
		return m
	}
	m.options.Library = library
	first := observation{state: Stale, why: "telemetry is starting"}
	if o.After != nil {
		before := o.After.observed.Load()
		first.driver, first.gpus = before.driver, before.gpus
	}
	m.observed.Store(&first)
	m.done = make(chan struct{})
	go m.run()
	return m
}

// Fleet gives every GPU with its state and age as of now, at some 400 ns and 400
// bytes for each GPU. The caller may keep and change what it gets, but not what
// the pointers and slices of a snapshot lead to.
func (m *Monitor) Fleet(now time.Time) *Fleet {
	return m.observed.Load().fleet(now, staleAfter*m.options.Interval)
}

// Off says whether nobody asks the driver: there is none, it cannot be asked, or
// the monitor is closed.
func (m *Monitor) Off() bool { return m.observed.Load().state == Off }

// Close ends the helper and waits for it, some 3 s at most: one that hangs in the
// kernel is left to the parent-death signal.
func (m *Monitor) Close() {
	m.closed.Do(func() { close(m.closing) })
	if m.done != nil {
		<-m.done
	}
}
