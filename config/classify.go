// Classify: what no single key shows of guards, signals and decisions, and what the classifier is told of a signal.

package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"kvasir/classify"
	"kvasir/wording"
)

// kinds are the kinds of signal that the keys of s belong to. A good signal has
// keys of exactly one.
func (s *Signal) kinds() (kinds []classify.Kind) {
	lists := map[string][]string{"keywords": s.Keywords, "phrases": s.Phrases}
	for _, m := range classify.Makings() {
		if len(lists[m.Key]) > 0 || len(s.features(&m)) > 0 {
			kinds = append(kinds, m.Kind)
		}
	}
	return kinds
}

// Options are what the classifier is told of a signal. One that is of no kind, or
// of several, has the first of them.
func (s *Signal) Options() classify.SignalOptions {
	o := classify.SignalOptions{
		Name: s.Name, Keywords: s.Keywords, Method: s.Method, Operator: s.Operator, CaseSensitive: s.CaseSensitive,
		Phrases: s.Phrases, Aggregate: s.Aggregate, Threshold: s.Threshold,
	}
	if kinds := s.kinds(); len(kinds) > 0 {
		o.Kind = kinds[0]
	}
	for _, m := range classify.Makings() {
		if m.Kind == o.Kind {
			o.Features = s.features(&m)
		}
	}
	return o
}

// features are the bounds that are set under the key of a kind, by the names of
// its measures.
func (s *Signal) features(m *classify.Making) (list []classify.Feature) {
	ranges, _ := s.Bounds[m.Key].(map[string]any)
	for _, name := range m.Measures {
		set := ranges
		if !isAlone(m) {
			set, _ = ranges[name].(map[string]any)
		}
		least, _ := set["min"].(float64)
		most, bounded := set["max"].(float64)
		bounded = bounded && most >= 0
		if least == 0 && !bounded {
			continue // nobody has set it
		}
		f := classify.Feature{Name: name, Min: least}
		if bounded {
			f.Max = &most
		}
		list = append(list, f)
	}
	return list
}

// isAlone says that the key has bounds itself, not one measure or more under it.
func isAlone(m *classify.Making) bool { return len(m.Measures) == 1 && m.Measures[0] == m.Key }

// signals finds what is wrong with signals, and the names that conditions may ask for.
func (v *validation) signals(c *Config) map[classify.Kind][]string {
	names := map[string]string{}
	byKind := map[classify.Kind][]string{}
	for i := range c.Signals {
		s := &c.Signals[i]
		path := fmt.Sprintf("signals[%d]", i)
		v.label(path+".name", s.Name, names, "is the name of another signal")
		kinds := s.kinds()
		switch len(kinds) {
		case 0:
			var keys []string
			for _, m := range classify.Makings() {
				keys = append(keys, m.Key)
			}
			v.add("says nothing to look for; give it "+wording.List(keys, "or"), path)
		case 1:
			byKind[kinds[0]] = append(byKind[kinds[0]], s.Name)
			if s.Name != "" {
				v.compiles(path, s.Options())
			}
		default:
			v.add(fmt.Sprintf("is of several kinds at once (%s and %s); make a signal of each and ask for both in a decision", kinds[0], kinds[1]), path)
		}
	}
	return byKind
}

// compiles lets the classifier itself judge a signal: it knows expressions,
// methods and bounds.
func (v *validation) compiles(path string, o classify.SignalOptions) {
	_, err := classify.New(classify.Options{Signals: []classify.SignalOptions{o}})
	if err == nil {
		return
	}
	if inner := errors.Unwrap(err); inner != nil {
		err = inner // without the name: the place says it
	}
	v.add(err.Error(), path)
}

// label wants a signal or a decision to have a name, and no other to have it.
func (v *validation) label(path, name string, seen map[string]string, twice string) {
	if name == "" {
		v.add("is missing", path)
		return
	}
	v.name(path, name, wording.Quote(name))
	v.once(seen, name, path, wording.Quote(name)+" "+twice)
}

func (v *validation) classify(c *Config) {
	if dir := string(c.Classify.Models); dir != "" {
		if err := classify.CheckModels(dir); err != nil {
			v.add(err.Error(), "classify.models")
		}
	}
	v.encoders(&c.Classify)
	v.types("classify.pii.allow", c.Classify.PII.Allow)
	if c.Classify.PII.Restore && c.Classify.PII.Action != "redact" {
		v.add("puts back what redact replaces; set classify.pii.action to redact, or leave it out", "classify.pii.restore")
	}
	byKind := v.signals(c)
	models := c.knownModels()
	names := map[string]string{}
	for i := range c.Decisions {
		d := &c.Decisions[i]
		path := fmt.Sprintf("decisions[%d]", i)
		v.label(path+".name", d.Name, names, "is the name of another decision")
		v.types(path+".pii.allow", d.PII.Allow)
		if d.Model != "" && len(models) > 0 && !slices.Contains(models, d.Model) {
			v.add(fmt.Sprintf("%s is not a model of this configuration%s; add it to models, or to the models of a worker", wording.Quote(d.Model), hint(d.Model, models)), path+".model")
		}
		v.condition(path+".when", &d.When, byKind)
	}
}

// OwnModel is what the classifier is told of an encoder of the user's own.
func OwnModel(dir Path, labels map[string]string, combine string) classify.OwnModel {
	return classify.OwnModel{Dir: string(dir), Labels: labels, Beside: combine == "max"}
}

// encoders looks at the encoders of the user's own, without their weights.
func (v *validation) encoders(c *Classify) {
	for _, m := range []struct {
		path string
		use  classify.Kind
		of   classify.OwnModel
	}{
		{"classify.category", classify.KindCategory, OwnModel(c.Category.Model, c.Category.Labels, c.Category.Combine)},
		{"classify.jailbreak", classify.KindJailbreak, OwnModel(c.Jailbreak.Model, c.Jailbreak.Labels, c.Jailbreak.Combine)},
		{"classify.pii", classify.KindPII, OwnModel(c.PII.Model, c.PII.Labels, c.PII.Combine)},
		{"classify.embedding", classify.KindSentence, OwnModel(c.Embedding.Model, nil, "")},
	} {
		if m.of.Dir == "" {
			if len(m.of.Labels) > 0 {
				v.add("says what labels of a model mean, and there is none; set "+m.path+".model", m.path+".labels")
			}
			if m.of.Beside {
				v.add("takes the higher score of a model and the embedded weights, and there is no model; set "+m.path+".model", m.path+".combine")
			}
			continue
		}
		if err := classify.CheckModel(m.use, &m.of); err != nil {
			v.add(err.Error(), m.path+".model")
		}
	}
}

// knownModels are all models, as far as the configuration tells them; none where
// it leaves one worker to be asked for its models.
func (c *Config) knownModels() []string {
	known := map[string]bool{}
	for _, m := range c.Models {
		known[m.Name] = true
	}
	for _, w := range c.Workers {
		if len(w.Models) == 0 {
			return nil
		}
		for _, m := range w.Models {
			known[m] = true
		}
	}
	for _, s := range c.Simulate {
		known[s.Model] = true
	}
	return slices.Sorted(maps.Keys(known))
}

func (v *validation) types(path string, types []string) {
	known := classify.Values(classify.KindPII)
	for i, t := range types {
		if !slices.Contains(known, t) {
			better := wording.DidYouMean(t, known)
			if better == "" {
				better = "; the types are " + wording.List(known, "and")
			}
			v.add(wording.Quote(t)+" is no type of personal data"+better, fmt.Sprintf("%s[%d]", path, i))
		}
	}
}

// condition looks for signals that a condition names and nobody has defined.
func (v *validation) condition(path string, c *classify.Condition, byKind map[classify.Kind][]string) {
	for _, is := range c.Is {
		if !classify.IsMade(is.Kind) {
			continue // the decoder has compared it with the kind's own values
		}
		for i, name := range is.Values {
			if !slices.Contains(byKind[is.Kind], name) {
				v.add(fmt.Sprintf("there is no %s signal %s%s; add it to signals", is.Kind, wording.Quote(name), hint(name, byKind[is.Kind])),
					fmt.Sprintf("%s.%s[%d]", path, is.Kind, i))
			}
		}
	}
	for i := range c.All {
		v.condition(fmt.Sprintf("%s.all[%d]", path, i), &c.All[i], byKind)
	}
	for i := range c.Any {
		v.condition(fmt.Sprintf("%s.any[%d]", path, i), &c.Any[i], byKind)
	}
	if c.Not != nil {
		v.condition(path+".not", c.Not, byKind)
	}
}
