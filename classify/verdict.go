// Verdict: what was found in a request, and what follows.

package classify

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"kvasir/classify/pii"
)

// A Verdict is the result of one Judge. It is valid until Release.
type Verdict struct {
	Jailbreak  Jailbreak
	PII        PII
	Category   Category
	Language   Language
	Complexity Complexity
	Tokens     int // estimated, of all texts; 0: not counted
	Hidden     int // characters of all texts that no reader sees and a model reads; no attack by themselves

	Decision *Decision // the one that holds; nil: none
	Matched  []Match   // signals of the user's own that hold, and values that decisions asked for
	Took     []Timing  // one for each signal that was computed

	Embedding []float32 // Dim values of the last user text; nil: not computed

	c         *Classifier
	embedding [Dim]float32 // what Embedding shows
}

// A Jailbreak is what the guard against attacks found.
type Jailbreak struct {
	Judged  bool
	Score   float64 // probability that there is an attack
	Type    string  // jailbreak, prompt_injection, indirect_injection; "" below the threshold
	Message int32   // where
	Flagged bool    // Score reaches the threshold
	Err     error   // it could not be judged
}

// PII is what the guard of personal data found.
type PII struct {
	Judged bool
	Spans  []Entity // all above the threshold, allowed or not, by text and place
	Denied []string // the types among them that may not pass, sorted
	Err    error
}

// An Entity is one piece of personal data in a text. Those of a text do not
// overlap, but for what a stretch of base64 or the like spells: each entity in
// there stands at the whole stretch.
type Entity struct {
	Text int // index in Request.Texts
	pii.Span
}

// A Category is the topic of the last user text.
type Category struct {
	Judged     bool
	Label      string  // the best, before the threshold
	Confidence float64 // calibrated
	Second     string
	Entropy    float64 // bits
	Name       string  // what counts: Label, or `other` below the threshold
	Scores     [len(Categories)]float32
}

// A Language is that of the last user text.
type Language struct {
	Code       string // ISO 639-1; "": unknown
	Confidence float64
}

// A Complexity is how hard the last user text is to answer.
type Complexity struct {
	Level string // easy, medium, hard
	Score float64
}

// A Match is one signal that holds.
type Match struct {
	Kind  Kind
	Name  string
	Score float64
}

// A Timing is how long one signal took, without others that it asked for.
type Timing struct {
	Kind Kind
	Took time.Duration
	Err  bool
}

// A Guard is what refuses a request.
type Guard uint8

// The guards, and those that could not judge what they must.
const (
	Passed Guard = iota
	ByJailbreak
	ByPII
	ByFailedJailbreak
	ByFailedPII
)

func (g Guard) String() string {
	return [...]string{"passed", "jailbreak", "pii", "failed jailbreak", "failed pii"}[g]
}

// Errors of a guard that could not judge. A *PanicError is one too.
var (
	ErrTimeout  = errors.New("judging took longer than the timeout")
	ErrGone     = errors.New("nobody waits for the verdict any more")
	ErrBusy     = errors.New("too many requests wait to be judged")
	ErrUnread   = errors.New("the request has parts that cannot be read, such as images, audio or files")
	errUnjudged = errors.New("judging was cut short")
)

// A PanicError is a panic while a signal was computed: a bug, kept from taking
// the request or the process with it.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("a signal panicked: %v", e.Value) }

func newPanicError(value any) *PanicError { return &PanicError{value, debug.Stack()} }

// Blocked is the guard that refuses the request, or Passed. A guard that should
// block or redact and could not judge refuses too, unless it allows on error.
func (v *Verdict) Blocked() Guard {
	o := &v.c.options
	switch {
	case v.Jailbreak.Flagged && o.Jailbreak.Action == Block:
		return ByJailbreak
	case v.Jailbreak.Err != nil && mandatory(&o.Jailbreak):
		return ByFailedJailbreak
	case len(v.PII.Denied) > 0 && o.PII.Action == Block:
		return ByPII
	case v.PII.Err != nil && mandatory(&o.PII.GuardOptions):
		return ByFailedPII
	}
	return Passed
}

// mandatory says that nothing may pass this guard unjudged.
func mandatory(o *GuardOptions) bool { return o.Action >= Redact && !o.AllowOnError }

// Denies says that this type may not pass: it was found and is not allowed.
func (p *PII) Denies(t pii.Type) bool {
	for _, denied := range p.Denied {
		if denied == t.String() {
			return true
		}
	}
	return false
}

// verdict takes one from the pool. Guards that are on hold an error from here
// until they have judged.
func (c *Classifier) verdict() *Verdict {
	v, _ := c.verdicts.Get().(*Verdict)
	if v == nil {
		v = &Verdict{c: c}
	}
	if c.options.Jailbreak.Action != Off {
		v.Jailbreak.Err = errUnjudged
	}
	if c.options.PII.Action != Off {
		v.PII.Err = errUnjudged
	}
	return v
}

// cut says why the guards that have not judged did not.
func (v *Verdict) cut(why error) {
	if errors.Is(v.Jailbreak.Err, errUnjudged) {
		v.Jailbreak.Err = why
	}
	if errors.Is(v.PII.Err, errUnjudged) {
		v.PII.Err = why
	}
}

// maxKept is how many spans a verdict keeps memory for.
const maxKept = 1024

// Release gives the verdict back; nothing of it may be used after.
func (v *Verdict) Release() {
	if cap(v.PII.Spans) > maxKept {
		return
	}
	*v = Verdict{
		c:       v.c,
		PII:     PII{Spans: v.PII.Spans[:0], Denied: v.PII.Denied[:0]},
		Matched: v.Matched[:0],
		Took:    v.Took[:0],
	}
	v.c.verdicts.Put(v)
}
