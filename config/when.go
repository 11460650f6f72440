// When: the condition of a decision, a mapping of signals to values that may nest.

package config

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"kvasir/classify"
	"kvasir/wording"
)

// maxWhen is how deep conditions may nest.
const maxWhen = 16

// nesting are the keys of a condition that hold conditions.
var nesting = []string{"all", "any", "not"}

// when reads a condition:
//
//	when: {category: [math, physics], keyword: urgent}   # each key, any of its values
//	when: {any: [{language: zh}, {not: {complexity: easy}}]}
//
// Names of signals are looked up later: they may stand further down.
func (d *decoder) when(k *Key, path string, n *yaml.Node, depth int) (any, bool) {
	if n.Kind != yaml.MappingNode {
		d.problem(n, path, "must be a mapping of signals to values, such as {category: [math, physics]}, is %s", k.describe(n))
		return nil, false
	}
	if depth == maxWhen {
		d.problem(n, path, "is nested more than %d deep", maxWhen)
		return nil, false
	}
	var c classify.Condition
	good := true
	for _, e := range d.entries(k, n, path) {
		name := e.key.Value
		at := join(path, shorten(name))
		if !slices.Contains(nesting, name) {
			is, ok := d.is(k, at, e)
			good = good && ok
			c.Is = append(c.Is, is)
			continue
		}
		ok := d.nested(k, &c, at, e, depth)
		good = good && ok
	}
	return c, good
}

// nested reads all, any and not.
func (d *decoder) nested(k *Key, c *classify.Condition, path string, e entry, depth int) bool {
	n, ok := d.visit(e.value, path)
	if !ok {
		return false
	}
	d.places[path] = d.at(e.value)
	if e.key.Value == "not" {
		v, ok := d.when(k, path, n, depth+1)
		if ok {
			inner := v.(classify.Condition)
			c.Not = &inner
		}
		return ok
	}
	if n.Kind != yaml.SequenceNode {
		d.problem(n, path, "must be a list of conditions, is %s", k.describe(n))
		return false
	}
	if len(n.Content) == 0 {
		d.problem(n, path, "is empty; give it one condition or more")
		return false
	}
	var list []classify.Condition
	for i, element := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		element, visited := d.visit(element, at)
		if !visited {
			return false
		}
		v, good := d.when(k, at, element, depth+1)
		if !good {
			ok = false
			continue
		}
		list = append(list, v.(classify.Condition))
	}
	if e.key.Value == "all" {
		c.All = list
	} else {
		c.Any = list
	}
	return ok
}

// is reads one signal and the values it may have.
func (d *decoder) is(k *Key, path string, e entry) (classify.Is, bool) {
	is := classify.Is{Kind: classify.Kind(e.key.Value)}
	var kinds []string
	for _, kind := range classify.Kinds() {
		kinds = append(kinds, string(kind))
	}
	if !slices.Contains(kinds, e.key.Value) {
		d.problem(e.key, path, "is no signal%s; a condition asks for %s, or all, any, not", hint(e.key.Value, append(kinds, nesting...)), wording.List(kinds, "or"))
		return is, false
	}
	n, ok := d.visit(e.value, path)
	if !ok {
		return is, false
	}
	d.places[path] = d.at(e.value)
	list := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		list = n.Content
	}
	if len(list) == 0 {
		d.problem(n, path, "is empty; give one value or a list of them")
		return is, false
	}
	text := &Key{Kind: KindText, path: k.path + ".*", OneOf: classify.Values(is.Kind)}
	for i, element := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		v, good := d.value(text, at, element)
		if !good {
			ok = false
			continue
		}
		is.Values = append(is.Values, v.(string))
	}
	return is, ok
}
