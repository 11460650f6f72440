// An engine's timing, learned from when its tokens come.

package cost

import "math"

// typical is the timing that engines are taken to have while nothing else is known: the middle of what they have.
var typical = Timing{Prefill: [3]float64{10, 0.016, 0}, Decode: [3]float64{7, 40, 0}}

// learner fits the two polynomials of a Timing to how long passes took: least squares over the last few hundred
// passes, older ones forgotten little by little, with what lies far off counted as if it lay at the edge (Huber), so
// that a stall or a wrong guess of what a pass computed moves little, while an engine that has become slower is
// followed. What passes without decode take is learned after what decode takes, from what that leaves.
type learner struct {
	prefill, decode fit

	since  timed // the passes since the anchor, without their time
	budget float64

	cached Timing
	known  bool
	dirty  bool
}

// timed is what some passes computed together, and how long they took.
type timed struct {
	prefill [3]float64 // sums over the passes of 1, tokens, tokens squared, in units of the budget
	decode  [3]float64 // of 1, share, share squared
	millis  float64
}

const (
	forget = 0.995 // weight that an observation keeps with each new one
	enough = 12    // observations after which a fit is used
)

// begin starts the sums anew: a pass begins whose start is known.
func (l *learner) begin() { l.since = timed{} }

// pass adds a pass to the sums.
func (l *learner) pass(tokens, decoding int, share float64, budget int) {
	if l.budget != float64(budget) { // the unit of the tokens
		l.budget = float64(budget)
		l.prefill, l.since, l.known = fit{}, timed{}, false
	}
	if tokens > 0 {
		t := float64(tokens) / l.budget
		add(&l.since.prefill, 1, t, t*t)
	}
	if decoding > 0 {
		add(&l.since.decode, 1, share, share*share)
	}
}

func add(sums *[3]float64, x ...float64) {
	for i, v := range x {
		sums[i] += v
	}
}

// observe takes in some passes and their time.
func (l *learner) observe(o timed) {
	if !(o.millis > 0) || o.millis > 60e3 {
		return
	}
	switch prefill, decode := o.prefill[0] > 0, o.decode[0] > 0; {
	case decode && !prefill:
		l.decode.add(o.decode, o.millis)
	case prefill && !decode:
		l.prefill.add(o.prefill, o.millis)
	case prefill && l.decode.count >= enough:
		l.prefill.add(o.prefill, o.millis-l.decode.predict(o.decode))
	case prefill:
		// The engine was never without prompts to compute, so decode was never seen alone. To know its timing roughly
		// is better than not to know it: an unknown engine is priced by its backlog, and the central queue keeps that
		// small, so the one that holds what everybody asks for would get everything.
		l.prefill.add(o.prefill, max(o.millis-typical.Decode[0]*o.decode[0], 0.3*o.millis))
	}
	l.dirty = true
}

// timing returns what was learned. It is false while too little was seen to tell how long a quarter of a full pass takes,
// or a full one: an engine that has more to do than it can from the start shows only full ones.
func (l *learner) timing() (Timing, bool) {
	if l.dirty {
		l.dirty = false
		quarter, full := l.prefill.leverage([3]float64{1, 0.25, 0.0625}), l.prefill.leverage([3]float64{1, 1, 1})
		l.known = l.prefill.count >= enough && min(quarter, full) < 1
		p, d := l.prefill.solved(), typical.Decode
		if l.decode.count >= enough {
			d = l.decode.solved()
		}
		l.cached = Timing{Prefill: [3]float64{p[0], p[1] / l.budget, p[2] / l.budget / l.budget}, Decode: d}
	}
	return l.cached, l.known
}

// fit is a least-squares fit of three terms that forgets.
type fit struct {
	count  int
	a      symmetric  // sums of x0x0, x0x1, x0x2, x1x1, x1x2, x2x2
	b      [3]float64 // sums of xi*y
	spread float64    // how far off observations usually are
	first  [enough]sample

	stale   bool       // what follows is not of the last observations
	w       [3]float64 // the solution
	inverse symmetric  // of what is pulled
	known   bool       // there is one
}

type sample struct {
	x [3]float64
	y float64
}

func (f *fit) predict(x [3]float64) float64 {
	w := f.solved()
	return w[0]*x[0] + w[1]*x[1] + w[2]*x[2]
}

// add takes in an observation. One that lies far off is moved to the edge of where it may lie, which is wide where
// nothing like it was seen before.
func (f *fit) add(x [3]float64, y float64) {
	if f.count++; f.count <= enough {
		f.first[f.count-1] = sample{x, y}
		if f.count == enough {
			f.begin()
		}
		return
	}
	expected := f.predict(x)
	off, edge := y-expected, 3*f.spread+0.5
	f.spread += 0.05 * (min(math.Abs(off), edge) - f.spread)
	if math.Abs(off) > edge && f.leverage(x) > 0.5 {
		edge = max(edge, 2*math.Abs(expected))
	}
	f.sum(x, y-off+max(-edge, min(edge, off)), forget, 1)
}

// begin fits the first observations by their absolute differences, so that the first requests after a start, which
// can take seconds, do not spoil it.
func (f *fit) begin() {
	weights := [enough]float64{}
	for i := range weights {
		weights[i] = 1
	}
	for range 20 {
		f.a, f.b = symmetric{}, [3]float64{}
		for i, s := range f.first {
			f.sum(s.x, s.y, 1, weights[i])
		}
		f.spread = 0
		for i, s := range f.first {
			off := math.Abs(s.y - f.predict(s.x))
			weights[i] = 1 / max(off, 0.1)
			f.spread += min(off, 0.3*s.y) / enough
		}
	}
	// From here on as if each had been seen once, the far ones where the others say.
	w := f.solved()
	f.a, f.b = symmetric{}, [3]float64{}
	for _, s := range f.first {
		fitted := w[0]*s.x[0] + w[1]*s.x[1] + w[2]*s.x[2]
		f.sum(s.x, fitted+max(-f.spread, min(f.spread, s.y-fitted)), 1, 1)
	}
}

func (f *fit) sum(x [3]float64, y, keep, weight float64) {
	f.stale = true
	for i, v := range [6]float64{x[0] * x[0], x[0] * x[1], x[0] * x[2], x[1] * x[1], x[1] * x[2], x[2] * x[2]} {
		f.a[i] = keep*f.a[i] + weight*v
	}
	for i := range x {
		f.b[i] = keep*f.b[i] + weight*x[i]*y
	}
}

// leverage is how little the observations say of x: the variance of its prediction in units of theirs.
func (f *fit) leverage(x [3]float64) float64 {
	f.refresh()
	if !f.known {
		return math.Inf(1)
	}
	v := f.inverse.times(x)
	return v[0]*x[0] + v[1]*x[1] + v[2]*x[2]
}

// pulled is a with a little weight that pulls coefficients to nothing, the square's most, so that terms that the
// passes seen do not tell apart stay small.
func (f *fit) pulled() *symmetric {
	a := f.a
	a[0], a[3], a[5] = a[0]+0.002, a[3]+0.002, a[5]+0.5
	return &a
}

// solved returns the coefficients.
func (f *fit) solved() [3]float64 {
	f.refresh()
	return f.w
}

// refresh solves for the observations since the last time.
func (f *fit) refresh() {
	if !f.stale {
		return
	}
	f.stale, f.w = false, [3]float64{}
	if f.inverse, f.known = f.pulled().invert(); f.known {
		f.w = f.inverse.times(f.b)
	}
}

// symmetric is a symmetric matrix of three rows, in the order of fit.a.
type symmetric [6]float64

// invert returns the inverse, by cofactors; false: there is none.
func (a *symmetric) invert() (v symmetric, ok bool) {
	v[0] = a[3]*a[5] - a[4]*a[4]
	v[1] = a[2]*a[4] - a[1]*a[5]
	v[2] = a[1]*a[4] - a[2]*a[3]
	v[3] = a[0]*a[5] - a[2]*a[2]
	v[4] = a[1]*a[2] - a[0]*a[4]
	v[5] = a[0]*a[3] - a[1]*a[1]
	det := a[0]*v[0] + a[1]*v[1] + a[2]*v[2]
	scale := 1 / det
	for i := range v {
		v[i] *= scale
	}
	return v, det > 1e-18
}

func (a *symmetric) times(b [3]float64) [3]float64 {
	return [3]float64{
		a[0]*b[0] + a[1]*b[1] + a[2]*b[2],
		a[1]*b[0] + a[3]*b[1] + a[4]*b[2],
		a[2]*b[0] + a[4]*b[1] + a[5]*b[2],
	}
}
