// `kvasir explain`: what is found in one request, which decision follows and why, without sending it.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"kvasir/classify"
	"kvasir/proxy"
)

func explainCommand() *cobra.Command {
	var flags configFlags
	var asJSON bool
	var route string
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Say what would become of a request and why, without sending it",
		Long: `Reads the body of one request and says every signal, what the guards do, each
decision with the parts of its condition, what follows, what the cache would be
asked and answer, by its file or its Milvus, and where it would be placed, which
a Kvasir that serves this configuration is asked for on its admin listener. All
of it for a client without a key. Nothing is sent to a worker, but for the text
of the prompt where a worker is asked for its tokens.
Personal data are named by their type and place, never shown.`,
		Example: `  echo '{"model": "MoM", "messages": [{"role": "user", "content": "Solve x+1=3"}]}' | kvasir explain
  kvasir explain --config kvasir.yaml --json < request.json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := flags.load(cmd)
			if err != nil {
				return err
			}
			body, err := io.ReadAll(io.LimitReader(os.Stdin, maxLine))
			if err != nil {
				return fmt.Errorf("cannot read the request: %w", err)
			}
			e, err := explain(g, route, body)
			if err != nil {
				return err
			}
			if asJSON {
				out := json.NewEncoder(cmd.OutOrStdout())
				out.SetIndent("", "  ")
				return out.Encode(e)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), e.text())
			return err
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().StringVar(&route, "route", "/v1/chat/completions", "the route that the body is for")
	return cmd
}

// An explanation is everything that is known of a request before it is sent.
type explanation struct {
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

func explain(g *generation, route string, body []byte) (*explanation, error) {
	c := g.config
	o := c.classifyOptions()
	o.Timeout, o.PII.All = 0, true
	classifier, err := classify.New(o)
	if err != nil {
		return nil, err
	}
	reading := proxy.Reading{ClientTemplates: c.guards().ClientTemplates}
	r, err := reading.Read(route, body)
	if err != nil {
		return nil, err
	}
	r.Also = classify.Telling()
	v, reasons := classifier.Explain(r)
	defer v.Release()
	e := &explanation{Asked: r.Model, Auto: r.Auto, Signals: signalsOf(v), Outcome: outcomeOf(v)}
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
	return e, nil
}

// cacheAskedOf says what the cache would be asked, and fills in the question.
func cacheAskedOf(g *generation, reading *proxy.Reading, v *classify.Verdict, r *classify.Request, question *cacheQuestion) cacheAsked {
	c := &g.config.Cache
	switch {
	case c.Store == "off":
		return cacheAsked{Lookup: "none", Why: "cache.store is off"}
	case noModel(v):
		return cacheAsked{Lookup: "none", Why: "no model is asked"}
	}
	ask := reading.Cache(g.settings, v, g.config.modelFor(v, r))
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

func (a cacheAsked) text() string {
	how := map[string]string{
		"semantic": fmt.Sprintf("asked for this question, and for one that scores %g", a.Threshold), "exact": "asked for this very text",
		"none": "not asked: " + a.Why,
	}[a.Lookup]
	if a.Lookup == "exact" && a.Why != "" {
		how += " (" + a.Why + ")"
	}
	if a.Scope != "" {
		how += ", in scope " + a.Scope
	}
	if a.Kept {
		how += "; the answer may be kept"
	} else {
		how += "; the answer is not kept"
	}
	switch f := a.Found; {
	case a.None != "":
		how += "\n  not looked up here: " + a.None
	case f == nil:
	case f.Entry == "":
		how += "\n  a miss: nothing is near"
	case f.Hit:
		how += fmt.Sprintf("\n  a hit: entry %s, similarity %.4f, score %.4f: %s", f.Entry, f.Similarity, f.Score, f.Question)
	default:
		how += fmt.Sprintf("\n  a miss (%s): nearest is entry %s, similarity %.4f, score %.4f: %s", f.Why, f.Entry, f.Similarity, f.Score, f.Question)
	}
	return how
}

// noModel says whether the request is answered by Kvasir itself.
func noModel(v *classify.Verdict) bool {
	return v.Blocked() != classify.Passed || v.Decision != nil && v.Decision.Refuse != ""
}

// modelFor is the model that answers, before any fallback.
func (c *Config) modelFor(v *classify.Verdict, r *classify.Request) string {
	switch {
	case v.Decision != nil && v.Decision.Model != "":
		return v.Decision.Model
	case r.Auto:
		return c.standardModel()
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
func effectsOf(c *Config, v *classify.Verdict, r *classify.Request) (effects []string) {
	if noModel(v) {
		return []string{"no model is asked"}
	}
	d, model := v.Decision, c.modelFor(v, r)
	effects = append(effects, "model: "+model)
	if c.Classify.PII.Action == "redact" && len(v.PII.Denied) > 0 {
		effects = append(effects, "redacted: "+strings.Join(v.PII.Denied, ", "))
	}
	if d == nil {
		return effects
	}
	if d.SystemPrompt != "" {
		how := "in place of the client's"
		if d.InsertPrompt {
			how = "before the client's"
		}
		effects = append(effects, fmt.Sprintf("system prompt, %s: %s", how, d.SystemPrompt))
	}
	if d.Reasoning != "" {
		family := "none"
		for _, m := range c.Models {
			if m.Name == model {
				family = m.Reasoning
			}
		}
		if family == "none" {
			family = "none: the model has no switch (models[].reasoning)"
		}
		effects = append(effects, fmt.Sprintf("reasoning %s, switched as %s", d.Reasoning, family))
	}
	for _, limit := range []struct {
		name  string
		value float64
	}{{"max_tokens", float64(d.MaxTokens)}, {"temperature", d.MaxTemperature}, {"n", float64(d.MaxChoices)}} {
		if limit.value > 0 {
			effects = append(effects, fmt.Sprintf("%s at most %g", limit.name, limit.value))
		}
	}
	return effects
}

// standardModel is what MoM and auto stand for, as far as the configuration says.
func (c *Config) standardModel() string {
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

// text is the explanation for people.
func (e *explanation) text() string {
	var b strings.Builder
	asked := e.Asked
	if e.Auto {
		asked = strings.TrimSpace(asked + " (left to Kvasir)")
	}
	fmt.Fprintf(&b, "model asked  %s\noutcome      %s\n\nsignals\n", asked, e.Outcome)
	for _, s := range e.Signals {
		fmt.Fprintf(&b, "  %-12s %s (%.0f us)\n", s.Signal, s.Found, s.Micros)
	}
	b.WriteString("\ndecisions\n")
	for _, d := range e.Decisions {
		fmt.Fprintf(&b, "  %-12s %s", d.Name, d.Holds)
		if d.Taken {
			b.WriteString(", taken")
		}
		if d.Why != "" {
			b.WriteString(", " + d.Why)
		}
		b.WriteByte('\n')
		for _, a := range d.Asked {
			fmt.Fprintf(&b, "    %s%s", strings.Repeat("  ", a.Depth), a.What)
			if a.Found != "" {
				b.WriteString(": " + a.Found)
			}
			fmt.Fprintf(&b, " -> %s\n", a.Holds)
		}
	}
	b.WriteString("\neffects\n")
	for _, effect := range e.Effects {
		fmt.Fprintf(&b, "  %s\n", effect)
	}
	fmt.Fprintf(&b, "\ncache\n  %s\n", e.Cache.text())
	fmt.Fprintf(&b, "\nplacement\n  %s\n", e.Placement.text())
	return b.String()
}
