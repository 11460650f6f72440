// GPU telemetry: one helper process polls the driver, and this package keeps its latest
// snapshots.

// Package gpu reports the state of this host's GPUs. Kvasir is a static binary and cannot load
// the driver's library itself. So a helper program, embedded and started from memory, loads it
// and prints snapshots. A call that hangs in the driver hangs only the helper.
//
//	m := gpu.Start(gpu.Options{Notice: log})
//	defer m.Close()
//	for _, g := range m.Fleet(time.Now()).GPUs {
//		if g.State == gpu.OK { ... }
//	}
//
// Invariants:
//  1. Without a driver library or a helper there is no goroutine and no process.
//  2. At most one helper of this process polls the driver. If it hangs in the kernel and cannot
//     be killed, no second one is started until it is gone.
//  3. No reader waits: Fleet takes no lock.
package gpu

import (
	"sync"
	"sync/atomic"
	"time"
)

// Options of Start. The zero value is the normal configuration.
type Options struct {
	Interval time.Duration // between two polls of a GPU; 0: 250 ms
	Library  string        // path of libnvidia-ml.so.1; empty: search for it
	Helper   []byte        // an ELF program; nil: the embedded one
	// After is the monitor that this one replaces; its owner must be about to close it. The old
	// helper ends before the new one starts. The new monitor keeps the old snapshots, so that no
	// GPU seems to be gone. nil: there is none.
	After *Monitor
	// Notice is called from a goroutine of the monitor, once for each change of a state: of
	// telemetry as a whole, or of one GPU while telemetry is ok. err is nil if the new state is
	// ok. A monitor that is Off from the start never calls it. Notice must not call Close,
	// because Close waits for it. nil: no notices.
	Notice func(text string, err error)
}

// A Monitor keeps the fleet of this host.
type Monitor struct {
	options  Options
	bounds   bounds
	observed atomic.Pointer[observation] // written only by run, once that has started

	closing chan struct{}
	closed  sync.Once
	done    chan struct{} // closed when run has ended; nil: run was never started
}

// Start starts telemetry. It never fails: if there is no telemetry, Fleet says why.
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

// Fleet returns every GPU with its state and age as of now. It takes about 400 ns and allocates
// about 400 bytes for each GPU. The caller may keep and change the result, but not what the
// pointers and slices of a snapshot point to.
func (m *Monitor) Fleet(now time.Time) *Fleet {
	return m.observed.Load().fleet(now, staleAfter*m.options.Interval)
}

// Off reports whether nobody asks the driver: there is none, it cannot be asked, or the monitor
// is closed.
func (m *Monitor) Off() bool { return m.observed.Load().state == Off }

// Close ends the helper and waits for it, about 3 s at most. A helper that hangs in the kernel is
// left to the parent-death signal.
func (m *Monitor) Close() {
	m.closed.Do(func() { close(m.closing) })
	if m.done != nil {
		<-m.done
	}
}
