// Judge: the way of one request through guards, signals and decisions.

package classify

import (
	"errors"
	"slices"
	"time"

	"kvasir/classify/pii"
	"kvasir/unseen"
)

// A judging is the state of judging one request. Its memory is reused for the next.
//
//  1. Guards come first, and a guard's error is cleared only once it has seen
//     everything that it must see.
//  2. A signal is computed at most once: done and own remember.
//  3. Slices of texts stay valid until forget.
type judging struct {
	c        *Classifier
	r        *Request
	v        *Verdict
	deadline time.Duration // by clock
	late     bool          // the deadline has passed, or nobody waits for the verdict
	why      error         // why it is late; nil: the deadline has passed
	broken   bool          // there was a panic: this memory must not be used again

	turn      turnTaken // of the thread that judges
	stopwatch stopwatch // of signals

	done []outcome // of Classifier.table
	own  []answer  // of Classifier.own

	reader  reader
	folds   folds
	joined  []byte     // texts judged together
	still   []byte     // a text without its noise
	order   []int32    // texts as they are read
	edges   []edge     // of joined, where parts of a message meet
	halves  []Entity   // of personal data that lie over two parts
	last    []byte     // the last user text; see lastUser
	lastBuf []byte     // where it had to be put together
	spans   []pii.Span // of one text
	hits    hits
	shape   shape // of the last user message

	batch *batch // nil before the first
}

// A turnTaken is the time that a judging has a thread for. Where all threads are taken,
// requests of different clients (flows) have them in turn.
type turnTaken struct {
	from   *flow         // whose turn it is; nil: it did not have to wait
	began  time.Duration // by clock
	waited time.Duration // for a thread, in all
	lost   bool          // it let others have the thread and did not get one again
}

// A stopwatch tells how long each signal took by itself, without the signals that it asked
// for.
type stopwatch struct {
	now    time.Duration // the last reading of clock: the end of a signal is the beginning of the next
	depth  int           // how many signals are under way, each asked for by the one before
	within time.Duration // how much of the signal under way went to others that it asked for
}

// An outcome is whether a signal was computed.
type outcome struct {
	done bool
	err  error
}

// An answer is what a signal of the user's own came to.
type answer struct {
	outcome
	score float64
	holds bool
}

func newJudging(c *Classifier) *judging {
	j := &judging{c: c, done: make([]outcome, len(c.table)), own: make([]answer, len(c.own))}
	j.reader = c.weights.newReader(stops{j.stop, j.stopLate})
	return j
}

// maxMemory is how much one thread keeps between requests, in bytes, beside
// what the weights need.
const maxMemory = 4 << 20

func (j *judging) huge() bool {
	return j.folds.memory()+cap(j.joined)+cap(j.still)+cap(j.spans)*16+(cap(j.edges)+cap(j.halves))*24 > maxMemory
}

// forget lets go of the request.
func (j *judging) forget() {
	j.r, j.v, j.late, j.last, j.shape = nil, nil, false, nil, shape{}
	j.turn.from, j.turn.lost, j.why = nil, false, nil
	clear(j.done)
	clear(j.own)
	j.folds.reset()
	j.reader.forget()
}

// judge is the whole way, in order.
func (j *judging) judge(r *Request, v *Verdict, deadline time.Duration) {
	j.r, j.v, j.deadline, j.stopwatch.within = r, v, deadline, 0
	j.folds.begin(len(r.Texts))
	j.judgeBatch()
	if j.c.options.Jailbreak.Action != Off || j.c.options.PII.Action != Off {
		for i := range r.Texts {
			v.Hidden += unseen.Count(r.Texts[i].Bytes)
		}
	}
	j.stopwatch.now = clock() // the first signal begins
	if j.c.options.Jailbreak.Action != Off {
		v.Jailbreak.Err = j.guard(KindJailbreak, &j.c.options.Jailbreak)
	}
	var piiErr error
	if j.c.options.PII.Action != Off {
		piiErr = j.guard(KindPII, &j.c.options.PII.GuardOptions)
	}
	if g := v.Blocked(); g == ByJailbreak || g == ByFailedJailbreak {
		v.PII.Err = piiErr
		return
	}
	if r.Auto {
		j.find(KindCategory) // for the headers; its error is in the timings
	}
	for _, kind := range r.Also {
		j.find(kind)
	}
	decide(j)
	j.deny()
	v.PII.Err = piiErr // not before what may not pass is known
}

// guard computes what a guard must know. Its error is nil only when every text
// was judged and there was nothing that could not be read.
func (j *judging) guard(kind Kind, o *GuardOptions) error {
	if err := j.find(kind); err != nil {
		return err
	}
	if j.r.Unread > 0 && o.Action >= Redact {
		return ErrUnread
	}
	return nil
}

// find computes the value of a kind, once. It is nil for a kind that has none.
func (j *judging) find(kind Kind) error {
	if row := j.c.row(kind); row >= 0 {
		return j.findRow(row)
	}
	return nil
}

func (j *judging) findRow(row int) error {
	at := &j.done[row]
	if !at.done && j.c.table[row].find != nil {
		at.err = j.try(row, j.c.table[row].find)
		at.done = true
	}
	return at.err
}

// askOwn computes a signal of the user's own, once.
func (j *judging) askOwn(i int) truth {
	o, at := &j.c.own[i], &j.own[i]
	if !at.done {
		at.err = j.try(o.row, o.step)
		at.done = true
	}
	if at.err != nil {
		return unknown
	}
	return truly(at.holds)
}

// try runs one step of a signal. A panic becomes the signal's error and goes no further.
func (j *judging) try(row int, step func(*judging) error) (err error) {
	if j.stopwatch.depth++; j.stopwatch.depth > 1 {
		j.stopwatch.now = clock() // the signal that asks has worked since the last reading
	}
	kind, start, before := j.c.table[row].kind, j.stopwatch.now, j.stopwatch.within
	j.stopwatch.within = 0
	defer func() {
		if p := recover(); p != nil {
			j.broken = true
			err = newPanicError(p)
		}
		j.stopwatch.now = clock()
		j.stopwatch.depth--
		all := j.stopwatch.now - start
		j.took(kind, all-j.stopwatch.within, err)
		j.stopwatch.within = before + all
	}()
	if j.c.options.Fault != nil {
		j.c.options.Fault(kind)
		j.stopwatch.now = clock()
	}
	if j.overdueAt(j.stopwatch.now) {
		err = ErrTimeout
	} else {
		err = step(j)
	}
	if j.why != nil && errors.Is(err, ErrTimeout) {
		return j.why
	}
	return err
}

// overdue says that judging has to end. Where the turn is over it first lets others have the thread.
func (j *judging) overdue() bool {
	if j.late {
		return true
	}
	now := clock()
	if now-j.turn.began >= turn {
		now = j.giveWay(now)
	}
	return j.overdueAt(now)
}

// stop ends the reading of a text that takes long.
func (j *judging) stop() error {
	if j.r != nil && j.overdue() {
		return ErrTimeout
	}
	return nil
}

// stopLate is stop without giving way, for what takes a few turns at most and holds memory meanwhile.
func (j *judging) stopLate() error {
	if j.r != nil && j.overdueAt(clock()) {
		return ErrTimeout
	}
	return nil
}

// giveWay lets waiting requests have the thread, and returns the time when this one goes on. It ends the judging if
// nobody waits for its verdict any more. The time spent waiting counts neither towards the deadline nor as time of the
// signal under way.
func (j *judging) giveWay(now time.Duration) time.Duration {
	limit := never
	if j.c.patience != never {
		limit = max(j.c.patience-j.turn.waited, 0)
	}
	if j.r.gone() {
		j.late, j.why = true, ErrGone
		return now
	}
	from, ok := j.c.line.giveWay(j.turn.from, j.c.flow(j.r), now-j.turn.began, limit)
	j.turn.from, j.turn.began = from, clock()
	waited := j.turn.began - now
	j.turn.waited += waited
	j.stopwatch.within += waited
	if j.deadline != never {
		j.deadline += waited
	}
	if !ok {
		j.turn.lost, j.late, j.why = true, true, ErrBusy
	}
	return j.turn.began
}

func (j *judging) overdueAt(now time.Duration) bool {
	j.late = j.late || now > j.deadline
	return j.late
}

// took adds up what a kind has cost.
func (j *judging) took(kind Kind, d time.Duration, err error) {
	for i := range j.v.Took {
		if t := &j.v.Took[i]; t.Kind == kind {
			t.Took += d
			t.Err = t.Err || err != nil
			return
		}
	}
	j.v.Took = append(j.v.Took, Timing{kind, d, err != nil})
}

// deny finds the types that may not pass: those found that neither the guard
// nor the decision allows.
func (j *judging) deny() {
	if j.c.options.PII.Action == Off || !j.v.PII.Judged {
		return
	}
	var seen [256]bool // by type
	for i := range j.v.PII.Spans {
		t := j.v.PII.Spans[i].Type
		if seen[t] {
			continue
		}
		seen[t] = true
		name := t.String()
		allowed := slices.Contains(j.c.options.PII.Allow, name) ||
			j.v.Decision != nil && slices.Contains(j.v.Decision.AllowPII, name)
		if !allowed {
			j.v.PII.Denied = append(j.v.PII.Denied, name)
		}
	}
	slices.Sort(j.v.PII.Denied)
}
