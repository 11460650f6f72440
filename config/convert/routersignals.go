// Semantic Router's signals to ours, and the conditions of its rules to ours.

package convert

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"kvasir/classify"
	"kvasir/wording"
)

// A kindOfSignal is one list of signals: its name since v0.1, that before, and how an element of it
// becomes ours.
type kindOfSignal struct {
	name, flat string
	read       func(r *signalReader, v *value, name string)
}

// kindsOfSignal are those that have a counterpart; routerLost says something of the others.
func kindsOfSignal() []kindOfSignal {
	return []kindOfSignal{
		{"domains", "categories", (*signalReader).domain},
		{"keywords", "keyword_rules", (*signalReader).keywords},
		{"embeddings", "embedding_rules", (*signalReader).embedding},
		{"context", "context_rules", (*signalReader).context},
		{"structure", "structure_rules", (*signalReader).structure},
		{"conversation", "conversation_rules", (*signalReader).conversation},
		{"reasks", "reask_rules", (*signalReader).reask},
		{"language", "language_rules", (*signalReader).language},
		{"complexity", "complexity_rules", (*signalReader).complexity},
		{"jailbreak", "jailbreak", (*signalReader).jailbreak},
		{"pii", "pii", (*signalReader).personal},
	}
}

// A signalReader takes over the signals, and knows afterwards what rules may ask for.
type signalReader struct {
	file    *router
	domains map[string][]string        // categories, by the name of a domain
	made    map[classify.Kind]renaming // signals of ours, by kind and their name
	pii     map[string][]string        // what a signal for personal data looks for, by its name

	expressions int // bytes of regular expressions
}

// A renaming is ours of a name of theirs.
type renaming map[string]string

func readSignals(of *router) *signalReader {
	r := &signalReader{file: of, domains: map[string][]string{}, made: map[classify.Kind]renaming{}, pii: map[string][]string{}}
	for _, kind := range kindsOfSignal() {
		for _, v := range r.file.signalsOf(kind.name, kind.flat) {
			name := v.either("name", "category").text()
			if name == "" {
				v.drop("has no name, so no decision can ask for it")
				continue
			}
			v.quiet("description")
			kind.read(r, v, name)
		}
	}
	return r
}

// Bounds of what the classifier is asked whether it takes it: signals, and bytes of their regular
// expressions, which are the dearest to read.
const (
	mostSignals     = 1000
	mostExpressions = 64 << 10
)

// make adds a signal of ours, if the classifier takes it.
func (r *signalReader) make(v *value, name string, o classify.SignalOptions) {
	if len(r.file.d.signals) == mostSignals {
		v.drop(fmt.Sprintf("is left out: there are %d signals already", mostSignals))
		return
	}
	if o.Method == "regex" {
		if r.expressions += len(strings.Join(o.Keywords, "")); r.expressions > mostExpressions {
			v.drop(fmt.Sprintf("is left out: there are %d KiB of regular expressions already", mostExpressions>>10))
			return
		}
	}
	o.Name = either(plainName(name), "signal")
	if _, err := classify.New(classify.Options{Signals: []classify.SignalOptions{o}}); err != nil {
		if inner := errors.Unwrap(err); inner != nil {
			err = inner
		}
		v.drop("can be no signal here: " + err.Error())
		return
	}
	o.Name = r.file.d.signalNames.unique(o.Name)
	if r.made[o.Kind] == nil {
		r.made[o.Kind] = renaming{}
	}
	r.made[o.Kind][name] = o.Name
	r.file.d.signals = append(r.file.d.signals, signal{options: o, at: v})
}

// domain: what a decision asks for under this name are categories.
func (r *signalReader) domain(v *value, name string) {
	asked := v.get("mmlu_categories").texts()
	if len(asked) == 0 {
		asked = []string{name}
	}
	r.domains[name] = []string{}
	for _, c := range asked {
		category := strings.ReplaceAll(strings.ToLower(c), "_", " ")
		if known(classify.KindCategory, category) {
			r.domains[name] = append(r.domains[name], category)
		} else {
			r.file.doc.note(v, wording.Quote(c)+" is no category of Kvasir, which has the 14 of MMLU-Pro. A signal with keywords or phrases can replace it")
		}
	}
}

func (r *signalReader) keywords(v *value, name string) {
	o := classify.SignalOptions{Kind: classify.KindKeyword, Keywords: v.get("keywords").texts(), CaseSensitive: v.get("case_sensitive").is(false)}
	o.Operator = map[string]string{"AND": "all", "NOR": "none"}[strings.ToUpper(v.get("operator").text())]
	method := strings.ToLower(v.get("method").text())
	if v.get("fuzzy_match").is(false) {
		method = "fuzzy"
	}
	switch method {
	case "bm25":
		o.Method = "bm25"
		r.file.scale(v.get("bm25_threshold"), "scores of bm25 are on another scale here, where 0.5 is usual")
	case "ngram":
		o.Method = "fuzzy"
		r.file.doc.note(v.get("method"), "ngram becomes fuzzy, which allows for slips in words, with its own threshold")
		v.quiet("ngram_threshold", "ngram_arity")
	case "fuzzy":
		o.Method = "fuzzy"
		if percent, ok := v.get("fuzzy_threshold").within(1, 100); ok {
			o.Threshold = math.Round(percent) / 100
		}
		o.CaseSensitive = false
	case "regex":
		o.Method = "regex"
	default:
		o.Method = "exact"
		v.quiet("fuzzy_threshold", "bm25_threshold", "ngram_threshold", "ngram_arity")
	}
	r.make(v, name, o)
}

func (r *signalReader) embedding(v *value, name string) {
	if modality := v.get("query_modality").text(); modality != "" && modality != "text" {
		v.drop("Kvasir embeds texts alone, so this signal is left out")
		return
	}
	o := classify.SignalOptions{Kind: classify.KindEmbedding, Phrases: v.get("candidates").texts(), Aggregate: v.get("aggregation_method").text()}
	o.Threshold, _ = v.get("threshold").within(0, 1)
	r.make(v, name, o)
}

// tokensOf is a count as 32K, 1.5M or 800.
func tokensOf(v *value) (float64, bool) {
	text := strings.ToUpper(strings.TrimSpace(v.text()))
	scale := 1.0
	switch {
	case strings.HasSuffix(text, "K"):
		scale, text = 1e3, text[:len(text)-1]
	case strings.HasSuffix(text, "M"):
		scale, text = 1e6, text[:len(text)-1]
	}
	n, err := strconv.ParseFloat(text, 64)
	if text != "" && (err != nil || math.IsNaN(n) || n < 0 || n > 1e6) {
		v.doc.note(v, "is no number of tokens, so it is left out")
		return 0, false
	}
	return math.Floor(n * scale), text != ""
}

func (r *signalReader) context(v *value, name string) {
	f := classify.Feature{Name: "tokens"}
	f.Min, _ = tokensOf(v.get("min_tokens"))
	if most, ok := tokensOf(v.get("max_tokens")); ok && most > 0 {
		f.Max = &most
	}
	r.measured(v, name, classify.KindContext, f)
}

// measured makes a signal of bounds, if there are any.
func (r *signalReader) measured(v *value, name string, kind classify.Kind, f classify.Feature) {
	if f.Min <= 0 && f.Max == nil {
		v.drop("bounds nothing, so it is left out")
		return
	}
	r.make(v, name, classify.SignalOptions{Kind: kind, Features: []classify.Feature{f}})
}

// bounds are those of a predicate; one that is missing asks for one at least.
func (r *signalReader) bounds(v *value, f *classify.Feature) {
	p := v.get("predicate")
	if !p.there() {
		f.Min = 1
		return
	}
	if n, ok := p.get("gte").within(0, 1e9); ok {
		f.Min = n
	}
	if n, ok := p.get("gt").within(0, 1e9); ok {
		f.Min = math.Floor(n) + 1
	}
	if n, ok := p.get("lte").within(0, 1e9); ok {
		f.Max = &n
	}
	if n, ok := p.get("lt").within(0, 1e9); ok {
		n = math.Ceil(n) - 1
		f.Max = &n
	}
}

// structure: what is counted by an expression has no counterpart, but for whether it is there.
func (r *signalReader) structure(v *value, name string) {
	kind, of := v.get("feature", "type").text(), v.get("feature", "source", "type").text()
	pattern := v.get("feature", "source", "pattern")
	switch {
	case kind == "exists" && of == "regex":
		r.make(v, name, classify.SignalOptions{Kind: classify.KindKeyword, Method: "regex", Keywords: []string{pattern.text()}, CaseSensitive: true})
		r.inherit(classify.KindKeyword, classify.KindStructure, name)
	case kind == "count" && of == "regex" && slices.Contains([]string{"[?？]", "[？?]", `\?`}, pattern.text()):
		f := classify.Feature{Name: "questions"}
		r.bounds(v, &f)
		r.measured(v, name, classify.KindStructure, f)
	case kind == "count" && of == "text_bytes":
		f := classify.Feature{Name: "bytes"}
		r.bounds(v, &f)
		r.measured(v, name, classify.KindStructure, f)
	default:
		v.drop("Kvasir counts bytes, words, lines, code blocks, URLs, questions, numbers, lists and formulas, and nothing else")
	}
}

// inherit lets conditions that ask for one kind get a signal of another.
func (r *signalReader) inherit(from, to classify.Kind, name string) {
	if ours := r.made[from][name]; ours != "" {
		if r.made[to] == nil {
			r.made[to] = renaming{}
		}
		r.made[to][name] = string(from) + " " + ours
	}
}

func (r *signalReader) conversation(v *value, name string) {
	source := v.get("feature", "source", "type").text()
	role := v.get("feature", "source", "role").text()
	kind := v.get("feature", "type").text()
	measure := map[string]string{
		"message ": "messages", "message user": "turns", "message tool": "results", "tool_definition ": "tools",
		"assistant_tool_cycle ": "results", "image ": "images", "image_content ": "images",
	}[source+" "+role]
	if measure == "" || kind != "count" && kind != "exists" {
		v.drop("Kvasir counts turns of the user, messages, tools, images and results of tools, and nothing else")
		return
	}
	f := classify.Feature{Name: measure}
	r.bounds(v, &f)
	r.measured(v, name, classify.KindConversation, f)
}

func (r *signalReader) reask(v *value, name string) {
	f := classify.Feature{Name: "reask", Min: 0.8}
	if n, ok := v.get("threshold").within(0.001, 1); ok {
		f.Min = n
	}
	if n, ok := v.get("lookback_turns").number(); ok && n > 1 {
		r.file.doc.note(v.get("lookback_turns"), "Kvasir compares with the nearest of up to three earlier turns, not with each of so many")
	}
	r.measured(v, name, classify.KindReask, f)
}

func (r *signalReader) language(v *value, _ string) {
	if n, ok := v.get("threshold").number(); ok && n > 0 {
		r.file.doc.note(v.get("threshold"), "the language is the most likely one here, without a threshold")
	}
}

func (r *signalReader) complexity(v *value, _ string) {
	r.file.doc.note(v, "conditions use Kvasir's own easy, medium and hard instead, one measure for all requests; the examples are left out")
	v.done()
}

// jailbreak: the guard has one threshold, so the lowest of all holds.
func (r *signalReader) jailbreak(v *value, _ string) {
	g := &r.file.d.guards
	if n, ok := v.get("threshold").within(0.001, 1); ok && (g.jailbreakAbove == 0 || n < g.jailbreakAbove) {
		g.jailbreakAbove, g.jailbreakAt = n, v
	}
	if v.has("jailbreak_patterns") || v.has("benign_patterns") {
		r.file.doc.note(v, "Kvasir's guard against attacks is a trained classifier; the examples are left out")
		v.quiet("jailbreak_patterns", "benign_patterns")
	}
	v.quiet("method", "include_history")
}

// personal: what a decision asks for under this name are all types but those that may pass.
func (r *signalReader) personal(v *value, name string) {
	g := &r.file.d.guards
	if n, ok := v.get("threshold").within(0.001, 1); ok && (g.piiAbove == 0 || n < g.piiAbove) {
		g.piiAbove, g.piiAt = n, v
	}
	allowed := r.file.types(v.get("pii_types_allowed"))
	r.pii[name] = []string{}
	for _, t := range classify.Values(classify.KindPII) {
		if !slices.Contains(allowed, t) {
			r.pii[name] = append(r.pii[name], t)
		}
	}
	v.quiet("include_history")
}

// leaf is the condition that asks for one signal; why says what keeps it from being one.
func (r *signalReader) leaf(kind, name string) (c *classify.Condition, why string) {
	ours := func(k classify.Kind) (*classify.Condition, string) {
		made := r.made[k][name]
		if other, signal, ok := strings.Cut(made, " "); ok {
			return is(classify.Kind(other), signal), ""
		}
		if made == "" {
			return nil, fmt.Sprintf("there is no %s signal %s here", k, wording.Quote(name))
		}
		return is(k, made), ""
	}
	switch strings.ToLower(strings.TrimSpace(kind)) {
	case "domain":
		categories, defined := r.domains[name]
		if !defined {
			if category := strings.ReplaceAll(strings.ToLower(name), "_", " "); known(classify.KindCategory, category) {
				categories = []string{category}
			}
		}
		if len(categories) == 0 {
			return nil, wording.Quote(name) + " stands for no category of Kvasir's"
		}
		return is(classify.KindCategory, categories...), ""
	case "keyword":
		return ours(classify.KindKeyword)
	case "embedding":
		return ours(classify.KindEmbedding)
	case "context":
		return ours(classify.KindContext)
	case "structure":
		return ours(classify.KindStructure)
	case "conversation":
		return ours(classify.KindConversation)
	case "reask":
		return ours(classify.KindReask)
	case "language":
		if !known(classify.KindLanguage, name) {
			return nil, wording.Quote(name) + " is no language that Kvasir tells"
		}
		return is(classify.KindLanguage, name), ""
	case "complexity":
		level := "hard"
		if _, l, ok := strings.Cut(name, ":"); ok {
			level = l
		}
		if !known(classify.KindComplexity, level) {
			return nil, wording.Quote(level) + " is no complexity here"
		}
		return is(classify.KindComplexity, level), ""
	case "jailbreak":
		return is(classify.KindJailbreak, classify.Values(classify.KindJailbreak)...), ""
	case "pii":
		types, ok := r.pii[name]
		if !ok || len(types) == 0 {
			return nil, "there is no signal " + wording.Quote(name) + " for personal data"
		}
		return is(classify.KindPII, types...), ""
	}
	return nil, "Kvasir has no signal of the kind " + wording.Quote(kind)
}
