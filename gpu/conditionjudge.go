// Judge: remembers what was seen of one worker's GPUs, and says what it means.

package gpu

import (
	"slices"
	"time"
)

// How long things last, and how much the least one is.
const (
	maxSlow  = 10  // of one effect
	someSlow = 2.0 // where nothing tells how much
	leastWay = 1.1 // a smaller effect is none

	hold      = 2 * time.Second  // an effect, after a snapshot last showed it
	holdLong  = 10 * time.Second // while no snapshot can show it
	holdError = 5 * time.Minute  // an Xid, or new ECC errors

	mostLeft = 64 // GPUs that a judge remembers after they have left

	sample = time.Second // over which the driver takes utilisation, at most
)

// A Judge remembers what it saw of one worker's GPUs: one for each worker. The
// zero value is ready. It takes no lock and reads no clock.
//
//  1. An effect begins, and gets worse, with the snapshot that shows it. It
//     ends, or gets better, when no snapshot of the last 2 s showed it as bad.
//     A change by less than a fifth is none. So a value on an edge does not
//     flap.
//  2. A snapshot that is not ok shows nothing, neither good nor bad: what was in
//     force stays so for 10 s, errors for 5 minutes. A neighbour whom our own
//     requests hide stays for 10 s as well.
//  3. A field that is absent shows nothing, and takes its effect away as a good
//     value would.
//  4. The effects of one GPU multiply; of several GPUs the slowest counts, as
//     tensor parallel workers wait for it; any GPU set aside sets its worker aside.
type Judge struct {
	gpus []judged
	left []judged  // that were the worker's up to 5 minutes ago
	ours time.Time // when a request of ours was last under way there

	effects Effects
	reasons []string
}

// A judged is one GPU.
type judged struct {
	index    int
	uuid     string
	at       time.Time // of the last good snapshot
	throttle throttling
	effects  [4]effect // in the order of Effects
	errors   trouble
}

// An effect is in force while its slow is more than 1.
type effect struct {
	slow  float64
	text  string
	until time.Time // in force as it is, unless it shows again
}

// shows is what a snapshot says of an effect: slow is 1 for none. It returns
// whether the effect begins or changes, and so needs a text.
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

// Judge says what the GPUs of a worker are good for. gpus are the worker's, own
// is what Owners found of it, active how many requests of ours are under way
// there. It is to be asked once an interval or more often.
func (j *Judge) Judge(now time.Time, e Effects, gpus []GPU, own Owned, active int) Condition {
	if active > 0 || j.ours.IsZero() { // what was before is not known
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

// match makes j.gpus those that are judged now, each with what is remembered of
// it, and returns whether they are others than before. One that has left is
// remembered for as long as an error counts: an engine that fell to one comes
// back to its GPU.
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

// is says whether this is that GPU. One that was never polled has no UUID yet.
func (d *judged) is(g *GPU) bool { return d.index == g.Index && d.uuid == g.UUID }

func (e Effects) each() [4]Effect { return [4]Effect{e.Throttle, e.Neighbour, e.Memory, e.Errors} }

// sum is what the effects on one GPU make together.
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

// tell writes the reasons anew: who was given the old ones keeps them.
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
