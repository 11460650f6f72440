// Judge: remembers the snapshots of one worker's GPUs and derives their condition.

package gpu

import (
	"slices"
	"time"
)

// Durations and limits of effects.
const (
	maxSlow  = 10  // largest factor of one effect
	someSlow = 2.0 // factor when the real one is unknown
	leastWay = 1.1 // a smaller factor counts as no effect

	hold      = 2 * time.Second  // how long an effect lasts after a snapshot last showed it
	holdLong  = 10 * time.Second // the same, while no snapshot can show it
	holdError = 5 * time.Minute  // how long an Xid or new ECC errors count

	mostLeft = 64 // GPUs that a judge remembers after they have left

	sample = time.Second // longest interval over which the driver measures utilisation
)

// A Judge remembers the snapshots of one worker's GPUs; each worker has its own. The zero value
// is ready. It takes no lock and reads no clock.
//
//  1. An effect begins, and gets worse, with the first snapshot that shows it. It ends, or gets
//     better, when no snapshot of the last 2 s showed it as bad. A change by less than a fifth
//     counts as none. So a value near a limit does not flap.
//  2. A snapshot that is not ok shows nothing, neither good nor bad: effects in force last for 10
//     s more, errors for 5 minutes. A neighbour that our own requests hide also lasts for 10 s.
//  3. An absent field shows nothing, and ends its effect as a good value would.
//  4. The effects of one GPU multiply; of several GPUs the slowest counts, as
//     tensor parallel workers wait for it; any GPU set aside sets its worker aside.
type Judge struct {
	gpus []judged
	left []judged  // GPUs that the worker had in the last 5 minutes
	ours time.Time // when a request of ours last ran there

	effects Effects
	reasons []string
}

// A judged is the state of one GPU.
type judged struct {
	index    int
	uuid     string
	at       time.Time // time of the last good snapshot
	throttle throttling
	effects  [4]effect // in the order of Effects
	errors   trouble
}

// An effect is in force while its slow is more than 1.
type effect struct {
	slow  float64
	text  string
	until time.Time // end of the effect, unless a snapshot shows it again
}

// shows updates an effect from a snapshot; slow is 1 if the snapshot shows none. It returns
// whether the effect begins or changes and so needs a new text.
func (f *effect) shows(now time.Time, slow float64) (changed bool) {
	slow = min(slow, maxSlow)
	if f.slow <= 1 {
		if slow < leastWay {
			return false
		}
		f.slow, f.until = slow, now.Add(hold)
		return true
	}
	// Still as bad: at least four fifths of what the effect in force has above 1.
	if slow-1 >= (f.slow-1)*0.8 {
		f.until = now.Add(hold)
		if slow-1 > (f.slow-1)*1.2 {
			f.slow = slow
			return true
		}
		return false
	}
	if now.Before(f.until) {
		return false
	}
	if slow < leastWay {
		*f = effect{}
		return true
	}
	f.slow, f.until = slow, now.Add(hold)
	return true
}

// Judge returns the condition of a worker's GPUs. gpus are the worker's GPUs, own is what Owners
// found for it, active is how many of our requests it has now. Call it at least once per
// interval.
func (j *Judge) Judge(now time.Time, e Effects, gpus []GPU, own Owned, active int) Condition {
	if active > 0 || j.ours.IsZero() { // requests before the first call are unknown
		j.ours = now
	}
	changed := j.match(now, gpus) || e != j.effects
	j.effects = e
	for i := range gpus {
		if j.gpus[i].see(now, j.ours, e.Headroom, &gpus[i], own) {
			changed = true
		}
	}
	if changed {
		j.reasons = j.tell()
	}
	c := Condition{Slow: 1, Reasons: j.reasons}
	for i := range j.gpus {
		slow, aside := j.gpus[i].sum(e)
		c.Slow, c.Aside = max(c.Slow, slow), c.Aside || aside
	}
	return c
}

// match makes j.gpus the present GPUs, each with its remembered state, and returns whether they
// changed. A GPU that has left is remembered as long as an error counts: an engine that died of
// the error will come back to its GPU.
func (j *Judge) match(now time.Time, gpus []GPU) (changed bool) {
	same := len(j.gpus) == len(gpus)
	for i := 0; same && i < len(gpus); i++ {
		same = j.gpus[i].is(&gpus[i])
	}
	if same {
		return false
	}
	j.left = slices.DeleteFunc(j.left, func(d judged) bool { return now.Sub(d.at) >= holdError })
	known := slices.Concat(j.gpus, j.left)
	j.gpus, j.left = make([]judged, len(gpus)), nil
	for i := range gpus {
		j.gpus[i] = judged{index: gpus[i].Index, uuid: gpus[i].UUID}
		if k := slices.IndexFunc(known, func(d judged) bool { return d.is(&gpus[i]) }); k >= 0 {
			j.gpus[i] = known[k]
		}
	}
	for k := range known {
		here := slices.ContainsFunc(gpus, func(g GPU) bool { return known[k].is(&g) })
		if !here && len(j.left) < mostLeft {
			j.left = append(j.left, known[k])
		}
	}
	return true
}

// is reports whether this is that GPU. One that was never polled has no UUID yet.
func (d *judged) is(g *GPU) bool { return d.index == g.Index && d.uuid == g.UUID }

func (e Effects) each() [4]Effect { return [4]Effect{e.Throttle, e.Neighbour, e.Memory, e.Errors} }

// sum combines the effects on one GPU.
func (d *judged) sum(e Effects) (slow float64, aside bool) {
	slow = 1
	for i, what := range e.each() {
		switch {
		case d.effects[i].slow <= 1 || what == EffectOff:
		case what == EffectAside:
			aside = true
		default:
			slow *= d.effects[i].slow
		}
	}
	return slow, aside
}

// tell builds a new list of reasons, because callers keep the old one.
func (j *Judge) tell() (reasons []string) {
	for i := range j.gpus {
		for k, what := range j.effects.each() {
			if f := &j.gpus[i].effects[k]; f.slow > 1 && what != EffectOff {
				reasons = append(reasons, f.text)
			}
		}
	}
	return reasons
}
