// Options: what a Classifier is told.

package classify

import "time"

// Options are the settings of one generation of the configuration.
type Options struct {
	Timeout     time.Duration // of judging one request, without waiting for a thread; 0: none
	Threads     int           // requests judged at once; 0: one for each processor
	Models      string        // a directory of own weights (tagger.Own), read by New; empty: the embedded ones
	Category    CategoryOptions
	Jailbreak   GuardOptions
	PII         PIIOptions
	SecondStage bool            // an encoder judges what the embedded weights leave open; not beside a model of the user's own
	Embedding   OwnModel        // without labels, in place of the embedded one
	Signals     []SignalOptions // facts of the user's own making
	Decisions   []Decision      // in the order of the configuration
	Priority    bool            // the highest Decision.Priority that holds is taken, not the first

	// Fault, for tests of what happens then, is called with the name of each
	// signal before it is computed; it may panic or take its time.
	Fault func(Kind)
}

// CategoryOptions say when a category counts.
type CategoryOptions struct {
	Threshold float64 // of confidence; below it the category is `other`
	Model     OwnModel
}

// An Action is what a guard does about what it finds.
type Action uint8

// The actions.
const (
	Off      Action = iota // it is not asked
	Annotate               // it says so in headers, log and metrics
	Redact                 // personal data are replaced by [TYPE]
	Block                  // the request is refused
)

func (a Action) String() string { return [...]string{"off", "annotate", "redact", "block"}[a] }

// GuardOptions are a guard's.
type GuardOptions struct {
	Action       Action
	Threshold    float64 // probability from which it acts
	AllowOnError bool    // what could not be judged passes (and is counted) instead of being refused
	Model        OwnModel
}

// PIIOptions are the PII guard's.
type PIIOptions struct {
	GuardOptions
	Allow []string // types that may pass
	All   bool     // look also for names that may pass: somebody asks for what there is
}

// A Kind is one kind of signal, by the name it has in the configuration. The
// kinds stand in the table of signals.go.
type Kind string

// SignalOptions describe one signal of the user's own. Kind says which fields
// count; the others are zero.
type SignalOptions struct {
	Name string
	Kind Kind

	// keyword
	Keywords      []string
	Method        string // exact, regex, fuzzy, bm25; default exact
	Operator      string // any, all, none; default any
	CaseSensitive bool
	Threshold     float64 // fuzzy: 0..1, share of equal letters; bm25: score; embedding: cosine; 0: the method's default

	// embedding
	Phrases   []string
	Aggregate string // max, mean, any; default max

	// context, conversation, structure
	Features []Feature // all of them
}

// A Condition holds or does not. All parts that are set must hold; one without
// parts always holds.
type Condition struct {
	Is  []Is // each of them
	All []Condition
	Any []Condition // at least one
	Not *Condition
}

// Is asks whether a signal has one of these values, or, for a kind with names,
// whether one of the signals so named holds.
type Is struct {
	Kind   Kind
	Values []string
}

// A Decision is what follows from signals. Empty fields change nothing.
type Decision struct {
	Name     string
	Priority int
	When     Condition
	Explicit bool // it also concerns requests that named their model

	Model          string
	SystemPrompt   string
	InsertPrompt   bool   // before the client's own system prompt instead of in its place
	Reasoning      string // "": as it came; off, on, or an effort: minimal, low, medium, high, xhigh
	AllowPII       []string
	CacheThreshold float64 // 0: the cache's own
	CacheOff       bool    // its answers are neither looked up nor kept
	Refuse         string  // the text of a refusal; "": none
	MaxTokens      int     // caps; 0: none
	MaxTemperature float64 // with CapTemperature
	CapTemperature bool
	MaxChoices     int // of n; 0: none
}
