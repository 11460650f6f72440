// Rules: the effects that one snapshot of one GPU shows.

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

// leastShare is the lowest utilisation, in per cent, that counts as a neighbour: a display, a
// monitoring agent and the driver itself need less.
const leastShare = 10

// see evaluates a snapshot and returns whether any effect begins, changes or ends. ours is when a
// request of ours last ran.
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

// throttling is how much the clocks were held down when that was last known.
type throttling struct {
	ratio float64   // maximum clock divided by the clock, while busy; 0: unknown
	seen  time.Time // when they were last held down
}

// seeThrottle evaluates clocks that heat or power holds down: they make everything slower by the
// ratio of the maximum clock to the clock. While the GPU is idle the clocks are low anyway; then
// the last known ratio counts, or else 2, because the hardware slowdown halves the clocks or
// worse (nvml.h, nvmlClocksEventReasonHwSlowdown).
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

// clockRatio returns the maximum clock divided by the clock; 0: unknown, because the GPU is idle
// or a value is absent or implausible.
func clockRatio(g *GPU) float64 {
	idle := slices.Contains(g.ThrottleReasons, "gpu_idle") || g.SMUtilization != nil && *g.SMUtilization < leastShare
	if idle || g.SMClock == nil || g.SMClockMax == nil || *g.SMClock <= 0 || *g.SMClockMax <= 0 {
		return 0
	}
	return max(1, *g.SMClockMax / *g.SMClock)
}

// heldDownBy returns the name of a throttle reason; "": harmless. A power cap is normal for a
// busy GPU, and counts only when it takes more than half of the clock.
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

// heavier returns the more specific of two causes: hw_slowdown comes together with its reason.
func heavier(a, b string) string {
	order := [...]string{"", "power cap", "hardware slowdown", "power brake", "thermal slowdown"}
	if slices.Index(order[:], b) > slices.Index(order[:], a) {
		return b
	}
	return a
}

// seeNeighbour evaluates other processes that compute on the GPU. We get the share that they do
// not use, but at least our turn: the hardware gives contexts equal time slices, so that n busy
// others slow nobody down by more than 1+n times.
func (d *judged) seeNeighbour(now, ours time.Time, g *GPU, own Owned) bool {
	share, others, known := neighbours(g, own)
	switch {
	case known:
	case g.MIG != nil || g.SMUtilization == nil:
		share = 0 // MIG instances have their own cores
	case g.At.Sub(ours) > sample:
		share = *g.SMUtilization
	default:
		return d.fades(byNeighbour, now) // the load may be our own, so it shows nothing
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

// neighbours returns the utilisation, in per cent, by processes that are not the worker's, and
// how many of them are busy. It is known if the driver reports the share of each process and
// Kvasir knows which processes are the worker's. Without shares, others counts all other
// processes, busy or not; without the worker's processes it is 0.
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

// seeMemory evaluates whether less than the headroom is free. Its cost cannot be known (an
// allocation may fail, or not), so the factor of 2 is a choice.
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
		edge += headroom / 4 // hysteresis: an effect in force ends only above this
	}
	slow := 1.0
	if free < edge {
		slow = someSlow
	}
	return d.shows(byMemory, now, slow, func() string {
		return fmt.Sprintf("%d MiB of memory free, less than %d", free>>20, headroom>>20)
	})
}

// freeOf returns the memory that the driver reports as free, without what it keeps for itself; if
// it does not report that, total minus used.
func freeOf(free, used, total *uint64) (bytes uint64, known bool) {
	switch {
	case free != nil:
		return *free, true
	case used == nil || total == nil || *total == 0:
		return 0, false
	}
	return *total - min(*used, *total), true
}

// shows updates an effect from a snapshot, and sets its text if the effect is new or changed.
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

// fades ends an effect that no snapshot could show for holdLong.
func (d *judged) fades(which int, now time.Time) bool {
	f := &d.effects[which]
	if f.slow <= 1 || now.Before(f.until.Add(holdLong-hold)) {
		return false
	}
	*f = effect{}
	return true
}
