// Sources: what /readyz and metrics say of where workers come from.

package proxy

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvasir/openai"
	"kvasir/wording"
)

// foundBy is what is said behind the name of a worker that the configuration does not name.
func foundBy(source string) string {
	if source == "" {
		return ""
	}
	return " (" + source + ")"
}

// noneFound says whether there is no worker at all, and sources may find some yet.
func (s *state) noneFound() bool {
	return len(s.backends) == 0 && s.settings.Sources != nil && len(s.settings.Sources()) > 0
}

// unserved is the answer to a model that no worker serves. While none has been found at all
// that is no word about the model: clients do not ask again after a 404.
func (s *state) unserved(asked, model string) *openai.Error {
	if s.noneFound() {
		return unavailable("no worker has been found yet: none of the sources under discovery knows one; try again", time.Second)
	}
	if isLeftToUs(asked) {
		return unservedStandard(asked, model)
	}
	return unknownModel(model)
}

// unservedStandard is the answer to a client that left the model to us, and need not know the
// name that the configuration has for that.
func unservedStandard(asked, model string) *openai.Error {
	err := unknownModel(model)
	if asked == "" {
		asked = "auto"
	}
	err.Message = fmt.Sprintf("%q stands for the model %q here, which no worker serves; GET /v1/models lists those that are", asked, model)
	return err
}

// sourceReasons say which sources of workers do not answer, and what they do not agree
// about.
func (s *Settings) sourceReasons() (why []string) {
	if s.Sources == nil {
		return nil
	}
	for _, src := range s.Sources() {
		if src.Problem == "" {
			continue
		}
		text := "discovery: " + src.Source + ": " + strings.ReplaceAll(src.Problem, "\n", "; ")
		if src.Workers > 0 {
			text += fmt.Sprintf("; what it said before holds (%s)", wording.Count(src.Workers, "worker"))
		}
		why = append(why, text)
	}
	for _, c := range s.Conflicts {
		why = append(why, "discovery: "+c)
	}
	return why
}

// A sourceCollector reads how the sources of workers fare when it is asked for.
type sourceCollector struct{ p *Proxy }

var (
	sourceWorkers   = sourceDesc("kvasir_discovery_workers", "Workers that the source knows.", "source")
	sourceStale     = sourceDesc("kvasir_discovery_stale", "1 while the source fails, and what it said before holds.", "source")
	sourceErrors    = sourceDesc("kvasir_discovery_errors_total", "Looks of the source that failed.", "source")
	sourceChanges   = sourceDesc("kvasir_discovery_changes_total", "Looks of the source that found other workers than before.", "source")
	sourceConflicts = sourceDesc("kvasir_discovery_conflicts", "Workers that sources do not agree about.")
)

func sourceDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe and Collect are prometheus.Collector.
func (sourceCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{sourceWorkers, sourceStale, sourceErrors, sourceChanges, sourceConflicts} {
		out <- d
	}
}

func (c sourceCollector) Collect(out chan<- prometheus.Metric) {
	s := c.p.state.Load()
	if s == nil || s.settings.Sources == nil {
		return
	}
	to := told(out)
	for _, src := range s.settings.Sources() {
		stale := 0.0
		if src.Problem != "" {
			stale = 1
		}
		to.gauge(sourceWorkers, float64(src.Workers), src.Source)
		to.gauge(sourceStale, stale, src.Source)
		to.counter(sourceErrors, src.Errors, src.Source)
		to.counter(sourceChanges, src.Changes, src.Source)
	}
	to.gauge(sourceConflicts, float64(s.settings.Disagree))
}
