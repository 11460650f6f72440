// What is found in one request, which decision follows and why.

// Package explain says what would become of a request without sending it:
// signals, decision, what the cache would answer and where it would be placed.
//
//	e, err := explain.Request(generation, "/v1/chat/completions", body)
//	fmt.Print(e.Text())
package explain

import (
	"math"
	"strings"

	"kvasir/classify"
	"kvasir/command/wiring"
	"kvasir/config"
	"kvasir/proxy"
)

// An Explanation is everything that is known of a request before it is sent.
type Explanation struct {
	Asked     string           `json:"model_asked"`
	Auto      bool             `json:"auto"`
	Signals   []signalFound    `json:"signals"`
	Outcome   string           `json:"outcome"` // passed, blocked by jailbreak ...
	Decisions []decisionTested `json:"decisions"`
	Effects   []string         `json:"effects"`
	Cache     cacheAsked       `json:"cache"`
	Placement placementAsked   `json:"placement"`
}

// A cacheAsked is what the cache would be asked, and what it would say.
type cacheAsked struct {
	Lookup    string  `json:"lookup"`        // semantic, exact, none
	Why       string  `json:"why,omitempty"` // none
	Kept      bool    `json:"kept"`          // the answer may be kept
	Threshold float64 `json:"threshold,omitempty"`
	Scope     string  `json:"scope,omitempty"` // without a key and without headers

	Found *cacheFound `json:"found,omitempty"` // nil: nothing was looked up
	None  string      `json:"none,omitempty"`  // why not
}

type signalFound struct {
	Signal string  `json:"signal"`
	Found  string  `json:"found"`
	Micros float64 `json:"micros"`
}

type decisionTested struct {
	Name  string       `json:"name"`
	Holds string       `json:"holds"` // yes, no, unknown
	Taken bool         `json:"taken"`
	Why   string       `json:"why,omitempty"`
	Asked []conditions `json:"asked,omitempty"`
}

type conditions struct {
	Depth int    `json:"depth"`
	What  string `json:"what"`
	Found string `json:"found"`
	Holds string `json:"holds"`
}

// Request explains the body of a request for a route, as the configuration says it
// for a client without a key. The error says what is wrong with the request.
func Request(g *config.Generation, route string, body []byte) (*Explanation, error) {
	c := g.Config
	o := wiring.Classify(c)
	o.Timeout, o.PII.All = 0, true
	classifier, err := classify.New(o)
	if err != nil {
		return nil, err
	}
	reading := proxy.Reading{ClientTemplates: wiring.Guards(c).ClientTemplates}
	r, err := reading.Read(route, body)
	if err != nil {
		return nil, err
	}
	r.Also = classify.Telling()
	v, reasons := classifier.Explain(r)
	defer v.Release()
	e := &Explanation{Asked: r.Model, Auto: r.Auto, Signals: signalsOf(v), Outcome: outcomeOf(v)}
	for _, reason := range reasons {
		d := decisionTested{Name: reason.Decision, Holds: reason.Holds, Taken: reason.Taken, Why: reason.Why}
		for _, a := range reason.Asked {
			d.Asked = append(d.Asked, conditions(a))
		}
		e.Decisions = append(e.Decisions, d)
	}
	e.Effects = effectsOf(c, v, r)
	question := &cacheQuestion{classifier: classifier}
	e.Cache = cacheAskedOf(g, &reading, v, r, question)
	e.Cache.look(g, question)
	e.Placement = placementOf(c, route, body, v, r)
	if f := e.Placement.Found; f != nil && f.Problem != "" && v.Blocked() == classify.Passed && !noModel(v) {
		e.Outcome = "fails: " + f.Problem
	}
	return e, nil
}

// cacheAskedOf says what the cache would be asked, and fills in the question.
func cacheAskedOf(g *config.Generation, reading *proxy.Reading, v *classify.Verdict, r *classify.Request, question *cacheQuestion) cacheAsked {
	c := &g.Config.Cache
	switch {
	case c.Store == "off":
		return cacheAsked{Lookup: "none", Why: "cache.store is off"}
	case noModel(v):
		return cacheAsked{Lookup: "none", Why: "no model is asked"}
	}
	ask := reading.Cache(wiring.Settings(g), v, answeringModel(g.Config, v, r))
	a := cacheAsked{Lookup: "semantic", Kept: ask.Kept, Threshold: c.Threshold}
	if d := v.Decision; d != nil && d.CacheThreshold > 0 {
		a.Threshold = d.CacheThreshold
	}
	if ask.Exact || ask.Literal != "" {
		a.Lookup, a.Why, a.Threshold = "exact", ask.Literal, 0
	}
	if ask.Why != "" {
		a.Lookup, a.Why, a.Threshold = "none", ask.Why, 0
	}
	if len(ask.Question) > 0 {
		a.Scope = ask.Scope.String()
		question.scope, question.text = ask.Scope, ask.Question
	}
	return a
}

// noModel says whether the request is answered by Kvasir itself.
func noModel(v *classify.Verdict) bool {
	return v.Blocked() != classify.Passed || v.Decision != nil && v.Decision.Refuse != ""
}

// answeringModel is the model that answers, before any fallback.
func answeringModel(c *config.Config, v *classify.Verdict, r *classify.Request) string {
	switch {
	case v.Decision != nil && v.Decision.Model != "":
		return v.Decision.Model
	case r.Auto:
		return standardModel(c)
	}
	return r.Model
}

func outcomeOf(v *classify.Verdict) string {
	switch v.Blocked() {
	case classify.ByJailbreak:
		return "blocked by the jailbreak guard: " + v.Jailbreak.Type
	case classify.ByPII:
		return "blocked by the pii guard: " + strings.Join(v.PII.Denied, ", ")
	case classify.ByFailedJailbreak:
		return "refused: the jailbreak guard cannot judge it: " + v.Jailbreak.Err.Error()
	case classify.ByFailedPII:
		return "refused: the pii guard cannot judge it: " + v.PII.Err.Error()
	}
	if v.Decision != nil && v.Decision.Refuse != "" {
		return "refused by the decision " + v.Decision.Name
	}
	return "passes"
}

// signalsOf are the signals that were computed, guards first.
func signalsOf(v *classify.Verdict) (found []signalFound) {
	for _, t := range v.Took {
		text := "could not be computed"
		if !t.Err {
			text = v.Report(t.Kind)
		}
		found = append(found, signalFound{string(t.Kind), text, float64(t.Took.Nanoseconds()) / 1000})
	}
	return found
}

// effectsOf says what the decision changes.
func effectsOf(c *config.Config, v *classify.Verdict, r *classify.Request) (effects []string) {
	if noModel(v) {
		return []string{"no model is asked"}
	}
	d, model := v.Decision, answeringModel(c, v, r)
	effects = append(effects, "model: "+model)
	if c.Classify.PII.Action == "redact" && len(v.PII.Denied) > 0 {
		effects = append(effects, "redacted: "+strings.Join(v.PII.Denied, ", "))
	}
	if d == nil {
		return effects
	}
	family := ""
	for _, m := range c.Models {
		if m.Name == model {
			family = m.Reasoning
		}
	}
	return append(effects, proxy.Effects(d, family)...)
}

// standardModel is what MoM and auto stand for, as far as the configuration says.
func standardModel(c *config.Config) string {
	for _, m := range c.Models {
		if m.Default {
			return m.Name
		}
	}
	for _, s := range c.Simulate {
		return s.Model
	}
	return "the first model that is served"
}

// round keeps four digits, as the headers show.
func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }
