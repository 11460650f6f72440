// What is shown of GPUs: the fleet with its workers, and the reasons of /readyz.

package hardware

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kvasir/gpu"
)

// Fleet is every GPU with its workers, as of now.
func (h *Watch) Fleet(now time.Time) *gpu.Fleet {
	g := h.served.Load()
	if g == nil || g.settings.Fleet == nil {
		off := &gpu.Fleet{State: gpu.Off, Why: "gpu.mode is off"}
		if g != nil && g.settings.Missing != "" {
			off.Why = g.settings.Missing
		}
		return off.With(nil)
	}
	var served gpu.Served
	if seen := h.shown.Load(); seen != nil {
		served = seen.serves
	}
	return g.settings.Fleet(now).With(served)
}

// Reasons are what /readyz says of GPUs that are not as they should be.
func (h *Watch) Reasons(now time.Time) (why []string) {
	g := h.served.Load()
	if g == nil {
		return nil
	}
	if g.settings.Fleet == nil {
		for _, w := range g.own {
			if len(w.GPUs) > 0 && g.settings.Missing != "" {
				why = append(why, fmt.Sprintf("worker %q: its gpus are not looked at: %s", w.Name, g.settings.Missing))
			}
		}
		return why
	}
	seen := h.shown.Load()
	f := h.Fleet(now)
	if f.State != gpu.OK && seen.concerns() {
		why = append(why, fmt.Sprintf("GPU telemetry is %s: %s", f.State, f.Why))
	}
	for i := range f.GPUs {
		if c := &f.GPUs[i]; f.State == gpu.OK && c.State != gpu.OK && len(c.Workers) > 0 {
			why = append(why, fmt.Sprintf("GPU %d of worker %s is %s: %s", c.Index, strings.Join(c.Workers, ", "), c.State, c.Why))
		}
	}
	if seen == nil {
		return why
	}
	for i := range seen.workers {
		w := &seen.workers[i]
		if w.named && w.missing != "" {
			why = append(why, fmt.Sprintf("worker %q: gpus: %s", w.name, w.missing))
		}
		switch w.grade() {
		case "aside":
			why = append(why, fmt.Sprintf("worker %q is asked after all others: %s", w.name, w.Why))
		case "slow":
			why = append(why, fmt.Sprintf("worker %q counts as %.1f times slower: %s", w.name, w.Slow, w.Why))
		}
	}
	return why
}

// concerns says whether any worker runs on this host's GPUs: where none does, a driver that is out of order is nobody's
// trouble.
func (p *picture) concerns() bool {
	return p != nil && slices.ContainsFunc(p.workers, func(w workerHardware) bool { return w.named || w.gpus > 0 })
}
