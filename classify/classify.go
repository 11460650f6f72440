// Package classify says what a request is about, whether it may pass, and what
// follows: text to signals to a decision. It knows neither HTTP nor YAML.
//
//	c, err := classify.New(options)
//	v := c.Judge(&request)
//	defer v.Release()
//	switch guard := v.Blocked(); {
//	case guard != classify.Passed: // refused; v.Jailbreak and v.PII say why
//	case v.Decision != nil:        // model, system prompt, reasoning ... as it says
//	}
//
// Everything fails closed: a guard that must judge holds an error until it has
// judged, so whatever cuts it short leaves one behind.
package classify

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"
)

// A Role is who says a text.
type Role uint8

// The roles. All are judged: Tool and Document for instructions in what is
// only to be read, the others for attacks, with the odds of priors.
const (
	User           Role = iota // also prompts, inputs and queries
	System                     // system, developer, instructions
	Assistant                  // earlier answers, reasoning, arguments of calls
	Tool                       // results of tools and functions
	ToolDefinition             // descriptions of the tools on offer
	Document                   // documents to answer from or to rank
	Other                      // a role that we do not know
)

// A Text is one string of a request as the model reads it: JSON escapes are
// resolved, nothing else is changed.
type Text struct {
	Bytes   []byte // the caller's; read until Judge returns
	Role    Role
	Message int32 // index of its message or input item; -1: in none
}

// A Request is what is judged. It is the caller's and may be reused after
// Judge has returned.
type Request struct {
	Client uint64 // any number of whose it is: where there is a queue, clients take turns
	For    Waiter // who waits for the verdict; nil: it is wanted in any case

	Texts []Text // in the body's order
	Model string // as the client named it
	Auto  bool   // it left the choice to us: MoM, auto

	Messages int  // in the conversation, whoever says them
	Turns    int  // of them, the user's
	Tools    int  // on offer
	Media    int  // parts that are images, audio or video: the measure `images`
	Unread   int  // parts whose content nobody here can read: images, audio, files, unknown types
	Results  int  // tool results: a tool loop is under way
	Streamed bool // the answer

	Also []Kind // computed whatever else asks for them, of those with a value of their own
}

// A Waiter waits for a verdict until it has gone. Gone is asked from the goroutine that called Judge.
type Waiter interface{ Gone() bool }

// A Classifier judges requests by one generation of the configuration. It is
// never changed; all its methods may be called at the same time.
type Classifier struct {
	options  Options
	table    []signal
	own      []own  // signals of the user's making, in their order
	auto     []rule // in the order in which they are asked
	explicit []rule // those of auto that also concern requests that named a model
	weights  weights
	names    bool // the tagger has to look for names
	second   bool // the guard against attacks has a second stage
	shared   *shared
	queue    queue

	autoAsked, explicitAsked asked

	line     *line         // for the threads
	patience time.Duration // how long a request waits in it
	verdicts sync.Pool

	mu   sync.Mutex // guards the rest
	free []*judging // memory of threads that judge nothing now, the warmest last
}

// Renew is New, but that the embedding stays the one of c: what the cache has kept was made with it.
func (c *Classifier) Renew(o Options) (*Classifier, error) {
	o.Embedding = c.options.Embedding
	w, err := openWeights(&o, c)
	if err != nil {
		return nil, err
	}
	return newWith(o, w)
}

// New returns a classifier. What is wrong in the options is an error that names
// the signal, the decision or the file of weights; an *UnknownError within knows
// what would do.
func New(o Options) (*Classifier, error) {
	w, err := openWeights(&o, nil)
	if err != nil {
		return nil, err
	}
	return newWith(o, w)
}

// With returns a classifier with other options and the same weights.
func (c *Classifier) With(o Options) (*Classifier, error) { return newWith(o, c.weights) }

func newWith(o Options, w weights) (*Classifier, error) {
	c := &Classifier{options: o, table: table(), weights: w, shared: newShared()}
	if c.options.Threads <= 0 {
		c.options.Threads = runtime.GOMAXPROCS(0)
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := c.compileSignals(o.Signals); err != nil {
		return nil, err
	}
	if err := c.compileDecisions(&o); err != nil {
		return nil, err
	}
	c.autoAsked, c.explicitAsked = c.askedBy(c.auto), c.askedBy(c.explicit)
	c.line = newLine(c.options.Threads)
	c.patience = c.waitsFor()
	return c, nil
}

// check looks at the options of the guards and the category.
func (c *Classifier) check() error {
	o := &c.options
	o.Category.Threshold = cmp.Or(o.Category.Threshold, 0.6)
	o.Jailbreak.Threshold = cmp.Or(o.Jailbreak.Threshold, 0.7)
	o.PII.Threshold = cmp.Or(o.PII.Threshold, 0.7)
	for _, t := range []struct {
		of    string
		value float64
	}{{"category", o.Category.Threshold}, {"jailbreak", o.Jailbreak.Threshold}, {"pii", o.PII.Threshold}} {
		if !(t.value > 0 && t.value <= 1) {
			return fmt.Errorf("cannot use the threshold %v of %s: it is not above 0 and at most 1", t.value, t.of)
		}
	}
	if o.Jailbreak.Action == Redact {
		return fmt.Errorf("cannot redact attacks: jailbreak blocks, annotates or is off")
	}
	for _, t := range o.PII.Allow {
		if err := oneOf("PII type", t, piiTypes()); err != nil {
			return fmt.Errorf("cannot allow a type of personal data: %w", err)
		}
	}
	o.PII.Allow = slices.Clone(o.PII.Allow)
	c.second = o.SecondStage && o.Jailbreak.Model.Dir == ""
	c.names = c.asksForNames(o.Decisions)
	return nil
}

// Idle says that requests of this kind (auto: they leave the choice to us) are
// never asked about anything, so that their texts need not even be collected.
func (c *Classifier) Idle(auto bool) bool {
	return !auto && c.options.Jailbreak.Action == Off && c.options.PII.Action == Off && len(c.explicit) == 0
}

// Decides says that a decision may hold for requests of this kind (auto: they leave the choice to us).
func (c *Classifier) Decides(auto bool) bool { return auto && len(c.auto) > 0 || len(c.explicit) > 0 }

// Judge says what was found in the request and what follows. It runs on the
// caller's goroutine and waits until fewer than Options.Threads others judge. That wait
// has a bound of its own (ErrBusy) and does not count towards the timeout. The verdict
// is the caller's until Release.
func (c *Classifier) Judge(r *Request) (v *Verdict) { // named: it is there also after a panic
	v = c.verdict()
	j := c.acquire(r, c.patience)
	if j == nil {
		v.cut(ErrBusy)
		return v
	}
	defer func() { c.release(j, recover()) }()
	if r.gone() { // while it waited
		v.cut(ErrGone)
		return v
	}
	j.judge(r, v, c.deadline())
	return v
}

func (r *Request) gone() bool { return r != nil && r.For != nil && r.For.Gone() }

// never is a deadline that does not come; half of what there is, because clock may be below 0 on a test's.
const never time.Duration = math.MaxInt64 / 2

// deadline is when judging that begins now must end, by clock.
func (c *Classifier) deadline() time.Duration {
	if c.options.Timeout <= 0 || c.options.Timeout >= never {
		return never
	}
	return clock() + c.options.Timeout
}

// waitsFor is how long a request waits for a thread. A request that may pass unjudged waits no longer than judging may
// take.
func (c *Classifier) waitsFor() time.Duration {
	o := &c.options
	if o.Timeout > 0 && (mandatory(&o.Jailbreak) || mandatory(&o.PII.GuardOptions)) {
		return maxWait
	}
	return c.moment()
}

// moment is how long a caller waits for a thread that can do without one.
func (c *Classifier) moment() time.Duration {
	if c.options.Timeout <= 0 {
		return never
	}
	return min(c.options.Timeout, maxWait)
}

// acquire waits for a thread; nil: none was free within limit. While r waits, its
// last text may be judged in another request's batch; without r there is only the wait.
func (c *Classifier) acquire(r *Request, limit time.Duration) *judging {
	var from *flow
	var waited time.Duration
	if !c.line.take() {
		began, ok := clock(), false
		if from, ok = c.waitInQueue(r, limit); !ok {
			return nil
		}
		waited = clock() - began
	}
	j := c.memory()
	j.turn.from, j.turn.waited, j.turn.began = from, waited, clock()
	return j
}

// memory is that of a thread.
func (c *Classifier) memory() *judging {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := len(c.free) - 1
	if last < 0 {
		return newJudging(c)
	}
	j := c.free[last]
	c.free = c.free[:last]
	return j
}

func (c *Classifier) waitInQueue(r *Request, limit time.Duration) (*flow, bool) {
	if w, ok := c.shortText(r); ok {
		c.queue.join(w)
		defer c.queue.leave(r)
	}
	return c.line.wait(c.flow(r), limit)
}

// flow is the flow that the request waits in.
func (c *Classifier) flow(r *Request) (key flowKey) {
	if r == nil {
		return key
	}
	size := 0
	for i := range r.Texts {
		size += len(r.Texts[i].Bytes)
	}
	// An encoder of the user's own takes longer than a turn for any text, and holds memory of its own meanwhile.
	_, slow := c.weights.(ownWeights)
	return flowKey{r.Client, slow || size > shortBytes}
}

// release gives the thread back. Its memory is dropped instead of kept where a panic
// left it half changed, or where one huge request made it grow.
func (c *Classifier) release(j *judging, panicked any) {
	if panicked != nil {
		j.v.cut(newPanicError(panicked))
	}
	from, used, lost := j.turn.from, clock()-j.turn.began, j.turn.lost
	if panicked == nil && !j.broken && !j.huge() {
		j.forget()
		c.mu.Lock()
		if len(c.free) < c.options.Threads { // more were begun than judge at once
			c.free = append(c.free, j)
		}
		c.mu.Unlock()
	}
	if !lost {
		c.line.leave(from, used)
	}
}
