// Semantic Router's guards and thresholds to ours.

package convert

import (
	"fmt"
	"slices"

	"kvasir/classify"
)

// A guardReader takes over the guards and their thresholds.
type guardReader struct{ file *router }

func (r guardReader) read() {
	g := &r.file.d.guards
	category := r.file.first(path("global", "model_catalog", "modules", "classifier", "domain"), path("classifier", "category_model"))
	if n, ok := category.get("threshold").within(0.001, 1); ok {
		g.category, g.categoryAt = n, category.get("threshold")
	}
	guard := r.file.first(path("global", "model_catalog", "modules", "prompt_guard"), path("prompt_guard"))
	pii := r.file.first(path("global", "model_catalog", "modules", "classifier", "pii"), path("classifier", "pii_model"))
	r.attacks(g, guard)
	r.personalGuard(g, pii)
	if n, ok := guard.get("threshold").within(0.001, 1); ok && g.jailbreakAbove == 0 && g.jailbreak != "off" {
		g.jailbreakAbove = n
	}
	if n, ok := pii.get("threshold").within(0.001, 1); ok && g.piiAbove == 0 && g.pii != "off" {
		g.piiAbove = n
	}
	if g.jailbreak == "off" {
		g.jailbreakAbove = 0
	}
	if g.pii == "off" {
		g.piiAbove = 0
	}
	r.high(g.jailbreakAt, g.jailbreakAbove)
	r.high(g.piiAt, g.piiAbove)
	for _, m := range []*value{category, guard, pii} {
		m.quiet("threshold", "model_id", "model_ref", "use_cpu", "use_modernbert", "use_mmbert_32k", "enabled",
			"category_mapping_path", "jailbreak_mapping_path", "pii_mapping_path", "use_vllm")
	}
}

// high notes a threshold by which less is found than by our own.
func (r guardReader) high(at *value, threshold float64) {
	if threshold > usual {
		r.file.doc.note(at, fmt.Sprintf("the threshold is kept, but it was chosen for another classifier and is above Kvasir's own, %g, so less is found. Remove it unless you have tried it with kvasir explain", usual))
	}
}

// usual is the threshold of our guards, unless the configuration has another.
const usual = 0.7

// attacks: since v0.3 only decisions act on them, before that the guard does.
func (r guardReader) attacks(g *guards, guard *value) {
	if g.jailbreakAt == nil {
		g.jailbreakAt = guard
	}
	switch {
	case r.file.shape == shapeV03 && g.jailbreak == "" && r.file.d.asks(classify.KindJailbreak):
		g.jailbreak, g.jailbreakComment = "annotate", "decisions say what follows"
	case r.file.shape == shapeV03 && g.jailbreak == "":
		g.jailbreak, g.jailbreakComment = "off", "no decision of the file uses it"
		if guard.get("enabled").is(false) {
			r.file.doc.note(guard, "is enabled, but no decision of the file uses it, so it has no effect there and is off here. To block attacks, set classify.jailbreak.action: block")
		}
	case g.jailbreak != "": // a decision switches it on
		g.jailbreakComment = "since a decision has it on"
		if !guard.get("enabled").is(r.file.shape == shapeV01) {
			r.file.doc.note(r.file.first(path("decisions"), path("categories")), "in Kvasir the guard against attacks is on for all requests, not for some decisions only")
		}
	case guard.get("enabled").is(r.file.shape == shapeV01):
		g.jailbreak = "block"
		if !guard.there() {
			g.jailbreakComment = "the default of Semantic Router"
		}
	default:
		g.jailbreak, g.jailbreakComment = "off", "not enabled in the file"
	}
}

// personalGuard: where no decision denies any, none is looked for.
func (r guardReader) personalGuard(g *guards, pii *value) {
	switch {
	case g.pii != "":
	case r.file.d.asks(classify.KindPII):
		g.pii, g.piiComment = "annotate", "decisions say what follows"
	default:
		g.pii, g.piiComment = "off", "no decision of the file denies any"
	}
	if g.piiAt == nil {
		g.piiAt = pii
	}
}

// asks says whether the condition of any decision asks for a kind of signal.
func (d *draft) asks(kind classify.Kind) bool {
	return slices.ContainsFunc(d.decisions, func(of decision) bool { return of.when != nil && asksFor(of.when, kind) })
}

func asksFor(c *classify.Condition, kind classify.Kind) bool {
	nested := func(n classify.Condition) bool { return asksFor(&n, kind) }
	return slices.ContainsFunc(c.Is, func(i classify.Is) bool { return i.Kind == kind }) ||
		slices.ContainsFunc(c.All, nested) || slices.ContainsFunc(c.Any, nested) || c.Not != nil && asksFor(c.Not, kind)
}
