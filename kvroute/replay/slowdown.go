// Slowdown: engines that are slower for a while, and what telemetry tells of it.

package replay

import (
	"fmt"
	"math"
	"time"
)

// A Slowdown makes the passes of an engine that begin in a span take longer: its GPU is throttled, or somebody else
// computes there. Where spans of one engine overlap, the factors multiply.
type Slowdown struct {
	Worker   int           // from 0, those for prefill first
	From, To time.Duration // in the replay's time, since its first arrival
	Slow     float64       // 2: passes take twice as long; at least 1
}

// TelemetryEvery is how often Options.Telemetry is asked: as often as the proxy polls GPUs.
const TelemetryEvery = 250 * time.Millisecond

// mostSlow bounds Slowdown.Slow, as kvroute does what telemetry says.
const mostSlow = 1000

// mostAsks bounds how often telemetry is asked in all: some 50 s, where nothing else happens.
const mostAsks = 1 << 26

func (o *Options) validateSlowdowns() error {
	for _, t := range o.Slowdowns {
		switch {
		case t.Worker < 0 || t.Worker >= o.workers():
			return fmt.Errorf("trouble of worker %d: there are workers 0 to %d", t.Worker, o.workers()-1)
		case t.From < 0 || t.To <= t.From:
			return fmt.Errorf("trouble of worker %d from %v to %v: it must begin at 0s or later and end after that", t.Worker, t.From, t.To)
		case !(t.Slow >= 1 && t.Slow <= mostSlow): // also NaN
			return fmt.Errorf("trouble of worker %d: passes that take %v times as long; must be between 1 and %d", t.Worker, t.Slow, mostSlow)
		}
	}
	return nil
}

// slowdowns are what a fleet keeps of them.
type slowdowns struct {
	spans []Slowdown
	asks  time.Duration // when telemetry is asked next
}

func (f *fleet) beginSlowdowns() {
	f.slowdowns = slowdowns{spans: f.options.Slowdowns, asks: never}
	if f.options.Telemetry == nil {
		return
	}
	f.most = min(f.most, mostAsks/time.Duration(len(f.engines))*TelemetryEvery)
	f.slowdowns.asks = 0
}

// slow is how many times longer a pass takes that an engine begins now.
func (t *slowdowns) slow(worker int, now time.Duration) float64 {
	times := 1.0
	for _, s := range t.spans {
		if s.Worker == worker && s.From <= now && now < s.To {
			times *= s.Slow
		}
	}
	return min(times, math.MaxInt32)
}

// ask asks telemetry of each worker, and tells the pool. It reports whether placement goes by anything new.
func (f *fleet) ask() (news bool) {
	f.slowdowns.asks += TelemetryEvery
	for n := range f.engines {
		if f.scaling.slots[n].state != serving {
			continue
		}
		active := 0
		for _, p := range f.routers {
			active += p.workers[n].Active()
		}
		h := f.options.Telemetry(f.time(), n, active)
		for _, p := range f.routers {
			if p.workers[n].SetHardware(h) {
				news = true
			}
		}
	}
	return news
}
