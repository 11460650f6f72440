//go:build linux && cgo

// Session: all GPUs, from an initialisation of the library to its shutdown.

package main

import (
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// A session ends when the driver is lost, or when a GPU has been lost so long that the library
// should be initialised again to find it.
type session struct {
	lib      *library
	out      *printer
	xids     *xids
	interval time.Duration
	gpus     int
	rota     *rota
}

// run returns the code with which the driver was lost, or SUCCESS to begin a new session. It does
// not return while a call hangs, because the next session must not overlap that call.
func (s *session) run() nvml.Return {
	s.rota = &rota{out: s.out, start: time.Now(), over: s.over, lost: make(chan nvml.Return, 1)}
	events := newEvents(s.lib, s.xids)
	if events != nil { // first, so that a snapshot has all earlier errors
		s.rota.questions = append(s.rota.questions, &question{ask: events.ask, every: s.interval})
	}
	for i := range s.gpus {
		p := &poller{index: i, lib: s.lib, events: events, xids: s.xids, out: s.out, interval: s.interval}
		s.rota.questions = append(s.rota.questions, &question{ask: p.ask, every: s.interval})
	}
	s.rota.begin()
	ret := <-s.rota.lost
	if ret != nvml.SUCCESS {
		s.out.trouble(wholeDriver, ret)
		s.out.flush()
	}
	s.rota.stop()
	events.free()
	return ret
}

// over reports whether there has been no GPU, or one has been lost, for so long that the library
// must be initialised again. While a call hangs it returns false: the session could not end, and
// the healthy GPUs would fall silent.
func (s *session) over(now time.Time) bool {
	lost, began := s.rota.longest()
	if !began.IsZero() && now.Sub(began) > time.Second {
		return false
	}
	if s.gpus == 0 {
		return now.Sub(s.rota.start) >= patience
	}
	return !lost.IsZero() && now.Sub(lost) >= patience
}
