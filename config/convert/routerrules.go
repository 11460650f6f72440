// Semantic Router's rules, a tree of AND, OR and NOT, to conditions.

package convert

import (
	"slices"
	"strings"

	"kvasir/classify"
	"kvasir/wording"
)

// deepest is how deep conditions may nest in ours.
const deepest = 15

// condition is ours of a node of rules. always: it holds for every request. why says what keeps it
// from being one: a part of an OR that is none is left out and noted, but a condition that lost a
// part of an AND, or anything below a NOT, would hold where the file's does not.
func (r *signalReader) condition(v *value, depth int) (c *classify.Condition, always bool, why string) {
	return r.conditionOf(v, depth, false)
}

// conditionOf is condition; whole: nothing of it may be left out.
func (r *signalReader) conditionOf(v *value, depth int, whole bool) (c *classify.Condition, always bool, why string) {
	if depth > deepest {
		return nil, false, "it nests too deep"
	}
	if kind := v.get("type").text(); kind != "" {
		c, why = r.leaf(kind, v.get("name").text())
		v.quiet("description")
		return c, false, why
	}
	parts := v.get("conditions").items()
	switch operator := strings.ToUpper(v.get("operator").text()); operator {
	case "AND":
		return r.all(parts, depth, whole)
	case "NOT":
		return r.not(parts, depth)
	case "OR", "":
		return r.any(parts, depth, whole)
	default:
		return nil, false, "Kvasir has no operator " + wording.Quote(operator)
	}
}

func (r *signalReader) all(parts []*value, depth int, whole bool) (*classify.Condition, bool, string) {
	var list []classify.Condition
	for _, p := range parts {
		c, always, why := r.conditionOf(p, depth+1, whole)
		if why != "" {
			return nil, false, why
		}
		if !always {
			list = append(list, *c)
		}
	}
	switch {
	case len(list) == 0:
		return nil, true, ""
	case len(list) == 1:
		return &list[0], false, ""
	case plain(list, false):
		together := &classify.Condition{}
		for _, c := range list {
			together.Is = append(together.Is, c.Is[0])
		}
		return together, false, ""
	}
	return &classify.Condition{All: list}, false, ""
}

func (r *signalReader) any(parts []*value, depth int, whole bool) (*classify.Condition, bool, string) {
	var list []classify.Condition
	var left []func()
	reason := "it asks for nothing"
	for _, p := range parts {
		c, always, why := r.conditionOf(p, depth+1, whole)
		switch {
		case why != "" && whole:
			return nil, false, why
		case why != "":
			reason = why
			left = append(left, func() { r.file.doc.note(p, why+", so this part of an OR is left out") })
		case always:
			return nil, true, ""
		default:
			list = append(list, *c)
		}
	}
	if len(list) == 0 {
		return nil, false, reason
	}
	for _, note := range left {
		note()
	}
	if len(list) == 1 {
		return &list[0], false, ""
	}
	if plain(list, true) {
		together := is(list[0].Is[0].Kind)
		for _, c := range list {
			for _, value := range c.Is[0].Values {
				if !slices.Contains(together.Is[0].Values, value) {
					together.Is[0].Values = append(together.Is[0].Values, value)
				}
			}
		}
		return together, false, ""
	}
	return &classify.Condition{Any: list}, false, ""
}

func (r *signalReader) not(parts []*value, depth int) (*classify.Condition, bool, string) {
	if len(parts) != 1 {
		return nil, false, "a NOT has one part"
	}
	c, always, why := r.conditionOf(parts[0], depth+1, true)
	if why == "" && always {
		why = "it never holds"
	}
	if why != "" {
		return nil, false, why
	}
	return &classify.Condition{Not: c}, false, ""
}

// plain says whether every condition asks for one signal alone: all of one kind, or all of
// different ones.
func plain(list []classify.Condition, same bool) bool {
	kinds := map[classify.Kind]bool{}
	for _, c := range list {
		if len(c.Is) != 1 || len(c.All)+len(c.Any) > 0 || c.Not != nil {
			return false
		}
		kinds[c.Is[0].Kind] = true
	}
	return same && len(kinds) == 1 || !same && len(kinds) == len(list)
}
