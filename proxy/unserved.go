// Unserved models: names in the configuration that no worker serves, which is a mistake that no single request shows.

package proxy

import (
	"fmt"
	"slices"
	"strings"

	"kvasir/wording"
)

// maxUnserved bounds what /readyz says of unserved models, and how many served ones are named
// where none has a similar name.
const (
	maxUnserved = 20
	maxNamed    = 5
)

// An Unserved is a name in the configuration of a model that no worker serves.
type Unserved struct {
	Where    string // who names it: the default, a decision, a fallback, a key
	Model    string
	Hint     string // what was meant, perhaps
	Standard bool   // auto and MoM stand for it, and no fallback of it is served: requests for them fail
}

func (u *Unserved) String() string {
	return fmt.Sprintf("model %q (%s) is served by no worker%s", u.Model, u.Where, u.Hint)
}

// Unserved returns what the settings name of models that are not among the served ones, in the
// order of the configuration.
func (s *Settings) Unserved(served []string) (all []Unserved) {
	add := func(model string, standard bool, where string, args ...any) {
		if model == "" || isAutoModel(model) || slices.Contains(served, model) {
			return
		}
		all = append(all, Unserved{fmt.Sprintf(where, args...), model, servedHint(model, served), standard})
	}
	for _, m := range s.Models {
		if m.Default {
			answered := slices.ContainsFunc(m.Fallback, func(f string) bool { return slices.Contains(served, f) })
			add(m.Name, !answered, "the default")
		}
		for _, f := range m.Fallback {
			add(f, false, "a fallback of %q", m.Name)
		}
	}
	for i := range s.Classify.Decisions {
		d := &s.Classify.Decisions[i]
		add(d.Model, false, "of decision %q", d.Name)
	}
	for i := range s.Keys {
		for _, m := range s.Keys[i].Models {
			add(m, false, "of key %q", s.Keys[i].Name)
		}
	}
	return all
}

func servedHint(model string, served []string) string {
	if hint := wording.DidYouMean(model, served); hint != "" {
		return hint
	}
	if len(served) > maxNamed {
		return "; GET /v1/models lists those that are"
	}
	return "; served: " + strings.Join(served, ", ")
}

// unservedModels is Unserved of what is served now. It is empty as long as a worker has yet to say
// what it serves, and where nothing is served at all: the reasons for that are others.
func (s *state) unservedModels() []Unserved {
	served, sure := s.pool.ServedNames()
	if !sure || len(served) == 0 {
		return nil
	}
	return s.settings.Unserved(served)
}

// unservedReasons are the reasons of /readyz, and whether auto and MoM stand for nothing.
func (s *state) unservedReasons() (why []string, standard bool) {
	all := s.unservedModels()
	for i := range all {
		standard = standard || all[i].Standard
		if i < maxUnserved {
			why = append(why, all[i].String())
		}
	}
	if more := len(all) - maxUnserved; more > 0 {
		why = append(why, fmt.Sprintf("and %d more names of models that no worker serves", more))
	}
	return why, standard
}

// noteUnserved logs names that have become unserved since it was called last: workers have said
// what they serve, or the configuration is another.
func (p *Proxy) noteUnserved() {
	s := p.state.Load()
	if s == nil {
		return // the first configuration is being applied, which looks itself
	}
	now, _ := s.unservedReasons()
	p.unserved.Lock()
	defer p.unserved.Unlock()
	for _, why := range now {
		if !slices.Contains(p.unserved.told, why) {
			p.log.Warn().Msg(why)
		}
	}
	p.unserved.told = now
}
