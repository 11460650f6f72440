// Rules: what one snapshot of one GPU shows.

package gpu

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The effects of a GPU, in the order of Effects.
const (
	byThrottle = iota
	byNeighbour
	byMemory
	byErrors
)

// leastShare is the utilisation, in per cent, that counts: a display, a
// monitoring agent and the driver itself need less.
const leastShare = 10

// see takes a snapshot in and returns whether any effect begins, changes or
// ends. ours is when a request of ours was last under way.
func (d *judged) see(now, ours time.Time, headroom uint64, g *GPU, own Owned) (changed bool) {
	if g.State == OK {
		d.at = g.At
		changed = d.seeThrottle(now, g)
		changed = d.seeNeighbour(now, ours, g, own) || changed
		changed = d.seeMemory(now, headroom, g, own) || changed
	} else if d.at.IsZero() || now.Sub(d.at) >= holdLong {
		for i := range d.effects[:byErrors] {
			changed = changed || d.effects[i].slow > 1
			d.effects[i] = effect{}
		}
	}
	return d.seeErrors(now, g) || changed
}

// throttling is by how much the clocks were held down when that could last be told.
type throttling struct {
	ratio float64   // maximum by clock while busy; 0: not known
	seen  time.Time // when they were last held down
}

// seeThrottle: clocks that are held down by heat or power make everything
// slower by the maximum over what they are. While the GPU is idle they are low
// anyway: then the ratio is that of before, or 2, as the hardware's slowdown halves
// clocks or worse (nvml.h, nvmlClocksEventReasonHwSlowdown).
func (d *judged) seeThrottle(now time.Time, g *GPU) bool {
	cause := ""
	ratio := clockRatio(g)
	for _, reason := range g.ThrottleReasons {
		cause = heavier(cause, heldDownBy(reason, ratio))
	}
	t := &d.throttle
	if cause == "" {
		if !t.seen.IsZero() && now.Sub(t.seen) >= hold {
			*t = throttling{}
		}
		return d.shows(byThrottle, now, 1, nil)
	}
	t.seen = now
	if ratio > 0 {
		t.ratio = ratio
	}
	slow := t.ratio
	if slow == 0 {
		slow = someSlow
	}
	return d.shows(byThrottle, now, slow, func() string {
		if ratio == 0 {
			return fmt.Sprintf("%s, taken as %.1f x slower", cause, min(slow, maxSlow))
		}
		return fmt.Sprintf("%s, %.0f of %.0f MHz", cause, *g.SMClock, *g.SMClockMax)
	})
}

// clockRatio is how many times less than its maximum the clock is, 0 where that says
// nothing: while idle, and where it is absent or odd.
func clockRatio(g *GPU) float64 {
	idle := slices.Contains(g.ThrottleReasons, "gpu_idle") || g.SMUtilization != nil && *g.SMUtilization < leastShare
	if idle || g.SMClock == nil || g.SMClockMax == nil || *g.SMClock <= 0 || *g.SMClockMax <= 0 {
		return 0
	}
	return max(1, *g.SMClockMax / *g.SMClock)
}

// heldDownBy is what a throttle reason is called, empty where it is no reason to
// worry. A power cap is how a busy GPU works, and counts only when it takes
// half of the clock.
func heldDownBy(reason string, ratio float64) string {
	switch reason {
	case "sw_thermal_slowdown", "hw_thermal_slowdown":
		return "thermal slowdown"
	case "hw_power_brake_slowdown":
		return "power brake"
	case "hw_slowdown":
		return "hardware slowdown"
	case "sw_power_cap":
		if ratio > 2 {
			return "power cap"
		}
	}
	return ""
}

// heavier is the one of two causes that says more: hw_slowdown comes together
// with the reason for it.
func heavier(a, b string) string {
	order := [...]string{"", "power cap", "hardware slowdown", "power brake", "thermal slowdown"}
	if slices.Index(order[:], b) > slices.Index(order[:], a) {
		return b
	}
	return a
}

// seeNeighbour: somebody else computes there. What is left for us is what they do
// not use, but at least our turn: the hardware gives contexts equal slices of time, so
// that n others that are busy make nobody more than 1+n times slower.
func (d *judged) seeNeighbour(now, ours time.Time, g *GPU, own Owned) bool {
	share, others, known := neighbours(g, own)
	switch {
	case known:
	case g.MIG != nil || g.SMUtilization == nil:
		share = 0 // instances have cores of their own
	case g.At.Sub(ours) > sample:
		share = *g.SMUtilization
	default:
		return d.fades(byNeighbour, now) // it may be us: nothing is seen
	}
	if share < leastShare {
		share = 0
	}
	slow := min(1/(1-min(share, 99)/100), float64(1+max(others, 1)))
	return d.shows(byNeighbour, now, slow, func() string {
		if known {
			return fmt.Sprintf("other processes use %.0f %% of it", min(share, 100))
		}
		return fmt.Sprintf("%.0f %% busy without a request of ours", min(share, 100))
	})
}

// neighbours is the utilisation by processes that are not the worker's, and how many of them are
// busy. That is known where the driver gives each process its share, and Kvasir knows which
// processes are the worker's. Without shares, others is how many other processes there are, busy or
// not; without the worker's processes it is 0.
func neighbours(g *GPU, own Owned) (share float64, others int, known bool) {
	if len(own.PIDs) == 0 {
		return 0, 0, false
	}
	there := 0
	for i := range g.Processes {
		p := &g.Processes[i]
		known = known || p.SMUtilization != nil
		if slices.Contains(own.PIDs, p.PID) {
			continue
		}
		there++
		if p.SMUtilization != nil && *p.SMUtilization > 0 {
			share += *p.SMUtilization
			if *p.SMUtilization >= leastShare {
				others++
			}
		}
	}
	if known && g.MIG == nil {
		return share, others, true
	}
	return 0, there, false
}

// seeMemory: less than the headroom is free. How much that costs is not to be
// known (an allocation may fail, or not): 2 is a choice.
func (d *judged) seeMemory(now time.Time, headroom uint64, g *GPU, own Owned) bool {
	free, known := freeOf(g.MemoryFree, g.MemoryUsed, g.MemoryTotal)
	for i := range g.MIG {
		m := &g.MIG[i]
		if slices.ContainsFunc(own.instances, func(uuid string) bool { return strings.EqualFold(uuid, m.UUID) }) {
			free, known = freeOf(nil, m.MemoryUsed, m.MemoryTotal)
		}
	}
	if !known {
		return d.shows(byMemory, now, 1, nil)
	}
	edge := headroom
	if d.effects[byMemory].slow > 1 {
		edge += headroom / 4 // to leave
	}
	slow := 1.0
	if free < edge {
		slow = someSlow
	}
	return d.shows(byMemory, now, slow, func() string {
		return fmt.Sprintf("%d MiB of memory free, less than %d", free>>20, headroom>>20)
	})
}

// freeOf is what the driver calls free, which is without what it keeps for
// itself; where it does not say, what is not used.
func freeOf(free, used, total *uint64) (bytes uint64, known bool) {
	switch {
	case free != nil:
		return *free, true
	case used == nil || total == nil || *total == 0:
		return 0, false
	}
	return *total - min(*used, *total), true
}

// shows passes on what a snapshot says of an effect, and writes its text when
// that is a new one.
func (d *judged) shows(which int, now time.Time, slow float64, text func() string) bool {
	f := &d.effects[which]
	if !f.shows(now, slow) {
		return false
	}
	if f.slow > 1 {
		f.text = fmt.Sprintf("GPU %d: %s", d.index, text())
	}
	return true
}

// fades ends an effect that no snapshot could show for a long while.
func (d *judged) fades(which int, now time.Time) bool {
	f := &d.effects[which]
	if f.slow <= 1 || now.Before(f.until.Add(holdLong-hold)) {
		return false
	}
	*f = effect{}
	return true
}
