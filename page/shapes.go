// Shapes: requests as JSON.

package page

import (
	"time"

	"kvasir/proxy/record"
	"kvasir/proxy/roster"
)

// A Short is a request in a list.
type Short struct {
	Seq      uint64      `json:"seq"`
	ID       string      `json:"id"`
	Time     roster.Time `json:"time"` // when it had come whole
	Route    string      `json:"route"`
	Asked    string      `json:"asked"`
	Model    string      `json:"model"`
	Worker   string      `json:"worker"`
	Prefill  string      `json:"prefill,omitempty"`
	Key      string      `json:"key,omitempty"`
	Status   int         `json:"status"`
	Outcome  string      `json:"outcome"`
	End      string      `json:"end"`
	Stream   bool        `json:"stream"`
	Byte     float64     `json:"first_byte_ms"`
	Total    float64     `json:"total_ms"`
	Overhead float64     `json:"overhead_ms"`

	Prompt     *int `json:"prompt_tokens,omitempty"`
	Completion *int `json:"completion_tokens,omitempty"`
	Cached     *int `json:"cached_tokens,omitempty"`

	Category string `json:"category,omitempty"`
	Decision string `json:"decision,omitempty"`
	Cache    string `json:"cache"`
	Retries  int    `json:"retries"`
}

// A Full is all that is kept of a request.
type Full struct {
	Short
	Steps     []Step        `json:"steps"`
	StepsLeft int           `json:"steps_left_out"`
	Placement *Placement    `json:"placement,omitempty"`
	Signals   Signals       `json:"signals"`
	Made      *Decision     `json:"decision,omitempty"` // in place of the name alone
	Recalled  *CacheVerdict `json:"cache_detail,omitempty"`
	Trace     string        `json:"trace_id,omitempty"`
}

// A Step is one step of a request; times count from its arrival.
type Step struct {
	Name   string  `json:"name"`
	Begin  float64 `json:"begin_ms"`
	End    float64 `json:"end_ms"`
	Worker string  `json:"worker,omitempty"`
	Rank   *int    `json:"rank,omitempty"`
	Status int     `json:"status,omitempty"`
	Note   string  `json:"note,omitempty"` // why it did not go well
}

// A Placement is the last choice of workers for a request.
type Placement struct {
	Policy      string      `json:"policy"`
	Why         string      `json:"why"`
	Tokens      int         `json:"tokens"`
	Exact       bool        `json:"exact"` // they were counted as the engine counts them
	Approximate string      `json:"no_tokens,omitempty"`
	Overlap     int         `json:"overlap_blocks"`
	Blocks      int         `json:"prompt_blocks"`
	BlockTokens int         `json:"block_tokens"`
	Cost        float64     `json:"cost"`
	TTFT        float64     `json:"predicted_first_byte_ms,omitempty"`
	Candidates  []Candidate `json:"candidates"`
	LeftOut     int         `json:"left_out"`
	Problem     string      `json:"error,omitempty"` // why there is none
}

// A Candidate is a worker, or one rank of it, with its price.
type Candidate struct {
	Worker   string             `json:"worker"`
	Rank     *int               `json:"rank,omitempty"`
	Leg      string             `json:"leg"`
	Chosen   bool               `json:"chosen"`
	Cost     float64            `json:"cost"`
	Parts    map[string]float64 `json:"parts"`
	Overlap  int                `json:"overlap_blocks"`
	Of       int                `json:"of"`
	Requests int                `json:"requests"`
	Decoding int                `json:"decoding"`
	Backlog  int                `json:"backlog_tokens"`
	Context  int                `json:"context_tokens"`
	TTFT     float64            `json:"predicted_first_byte_ms,omitempty"`
	Slow     float64            `json:"slow,omitempty"`
	Aside    bool               `json:"aside"`
}

// Signals are what was found in a request.
type Signals struct {
	Category   *Category  `json:"category,omitempty"`
	Jailbreak  *Jailbreak `json:"jailbreak,omitempty"`
	PII        *PII       `json:"pii,omitempty"`
	Language   string     `json:"language,omitempty"`
	Complexity string     `json:"complexity,omitempty"`
	Matched    []Matched  `json:"matched"`
	Hidden     int        `json:"hidden_characters"`
	Unjudged   string     `json:"unjudged,omitempty"` // the guard that could not judge and let pass
}

// A Category is the best label.
type Category struct {
	Label      string  `json:"label"` // `other` below the threshold
	Confidence float64 `json:"confidence"`
	Threshold  float64 `json:"threshold"`
}

// A Jailbreak is what the guard against attacks says.
type Jailbreak struct {
	Score     float64 `json:"score"`
	Threshold float64 `json:"threshold"`
	Type      string  `json:"type"` // "": it is none
	Action    string  `json:"action"`
}

// PII is the personal data that was found.
type PII struct {
	Types     []string `json:"types"`
	Denied    []string `json:"denied"`
	Threshold float64  `json:"threshold"`
	Action    string   `json:"action"`
	Redacted  int      `json:"redacted,omitempty"`
}

// A Matched is a signal that held.
type Matched struct {
	Kind  string  `json:"kind"`
	Name  string  `json:"name"`
	Score float64 `json:"score"`
}

// A Decision is what followed from the signals.
type Decision struct {
	Name      string `json:"name"`
	Reasoning string `json:"reasoning"`
	Injected  bool   `json:"injected"`
	Guard     string `json:"guard,omitempty"` // that blocked
}

// A CacheVerdict is what became of a request at the cache.
type CacheVerdict struct {
	Result     string   `json:"result"`
	Why        string   `json:"why,omitempty"`
	Entry      string   `json:"entry,omitempty"`
	Similarity *float64 `json:"similarity,omitempty"`
	Age        *float64 `json:"age_ms,omitempty"`
}

// shortOf is a request in a list. It keeps nothing of r.
func shortOf(seq uint64, r *record.Record) Short {
	s := Short{
		Seq: seq, ID: r.ID, Time: roster.Time{Time: r.Began}, Route: r.Route, Asked: r.Asked, Model: r.Model, Worker: r.Worker, Prefill: r.Prefill,
		Key: r.Key, Status: r.Status, Outcome: string(r.Outcome()), End: r.End, Stream: r.Streamed,
		Byte: milliseconds(r.FirstByte), Total: milliseconds(r.Total), Overhead: milliseconds(r.Overhead),
		Prompt: known(r.Prompt), Completion: known(r.Completion), Cached: known(r.CachedTokens),
		Category: r.Judgement.Category, Decision: r.Judgement.Decision, Cache: r.Cache.Result, Retries: r.Retries,
	}
	if s.End == "" {
		s.End = "ok"
	}
	return s
}

// fullOf is all that is kept of a request, with scores against the thresholds of now.
func fullOf(seq uint64, r *record.Record, t *Thresholds) *Full {
	f := &Full{Short: shortOf(seq, r), Steps: []Step{}, StepsLeft: r.StepsLeft, Placement: placementOf(&r.Placement), Signals: signalsOf(&r.Judgement, t), Made: decisionOf(&r.Judgement)}
	for i := range r.Steps {
		s := &r.Steps[i]
		one := Step{Name: s.Name.String(), Begin: milliseconds(s.Begin), End: milliseconds(s.End)}
		if l := s.Leg; l != nil {
			one.Worker, one.Rank, one.Status, one.Note = l.Worker, known(l.Rank), l.Status, l.Failure
		}
		f.Steps = append(f.Steps, one)
	}
	if r.Trace.On() {
		f.Trace = r.Trace.Trace.String()
	}
	if c := &r.Cache; c.Result != "" {
		f.Recalled = &CacheVerdict{Result: c.Result, Why: c.Why, Entry: c.Entry}
		if c.Similarity > 0 {
			similarity := rounded(c.Similarity)
			f.Recalled.Similarity = &similarity
		}
		if c.Result == "hit" {
			age := milliseconds(c.Age)
			f.Recalled.Age = &age
		}
	}
	return f
}

// placementOf is nil where no worker was chosen.
func placementOf(p *record.Placement) *Placement {
	if p.Why == "" && len(p.Candidates) == 0 {
		return nil
	}
	out := &Placement{
		Policy: p.Policy, Why: p.Why, Tokens: p.Tokens, Exact: p.Priced && p.Approximate == "", Approximate: p.Approximate,
		Overlap: p.Overlap, Blocks: p.Blocks, BlockTokens: p.BlockTokens, Cost: rounded(p.Cost), TTFT: milliseconds(p.TTFT),
		Candidates: []Candidate{}, LeftOut: p.LeftOut,
	}
	for i := range p.Candidates {
		c := &p.Candidates[i]
		one := Candidate{
			Worker: c.Worker, Rank: known(c.Rank), Leg: c.Leg, Chosen: c.Chosen, Cost: rounded(c.Cost), Parts: map[string]float64{},
			Overlap: c.Overlap, Of: c.Of, Requests: c.Requests, Decoding: c.Decoding, Backlog: c.Backlog, Context: c.Context,
			TTFT: milliseconds(c.TTFT), Slow: rounded(c.Slow), Aside: c.Aside,
		}
		for _, part := range c.Parts {
			if part.Name != "" {
				one.Parts[part.Name] = rounded(part.Value)
			}
		}
		out.Candidates = append(out.Candidates, one)
	}
	return out
}

func signalsOf(j *record.Judgement, t *Thresholds) Signals {
	s := Signals{Language: j.Language, Complexity: j.Complexity, Hidden: j.Hidden, Unjudged: j.Unjudged, Matched: []Matched{}}
	if j.Category != "" {
		s.Category = &Category{Label: j.Category, Confidence: rounded(j.Confidence), Threshold: t.Category}
	}
	if j.GuardJudged {
		s.Jailbreak = &Jailbreak{Score: rounded(j.Score), Threshold: t.Attack, Type: j.Attack, Action: t.AttackAction}
	}
	if j.Judged && t.PIIAction != "off" {
		s.PII = &PII{Types: append([]string{}, j.Types...), Denied: append([]string{}, j.Denied...), Threshold: t.PII, Action: t.PIIAction, Redacted: j.Redacted}
	}
	for _, m := range j.Matched {
		s.Matched = append(s.Matched, Matched{m.Kind, m.Name, rounded(m.Score)})
	}
	return s
}

// decisionOf is nil where nothing followed.
func decisionOf(j *record.Judgement) *Decision {
	if j.Decision == "" && j.Guard == "" {
		return nil
	}
	return &Decision{Name: j.Decision, Reasoning: j.Reasoning, Injected: j.Injected, Guard: j.Guard}
}

// known is a number that is not known where it is negative.
func known(n int) *int {
	if n < 0 {
		return nil
	}
	return &n
}

func milliseconds(d time.Duration) float64 { return rounded(float64(d) / float64(time.Millisecond)) }
