// Decoding: a YAML tree to plain values, checked against the known keys, with the place of each.

package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"kvasir/wording"
)

// Bounds of one document. A real configuration of 1,000 workers has about
// 20,000 nodes; aliases could make far more of a few bytes.
const (
	maxNodes    = 200_000
	maxMerges   = 8 // merge keys inside merge keys
	maxExpanded = 4 << 20
)

// A decoder turns the nodes of one source into values. It never stops at a
// problem: what cannot be used is left out and noted.
type decoder struct {
	at       func(n *yaml.Node) place
	env      func(string) (string, bool) // for ${VAR}; nil: not replaced
	dir      string                      // where relative file paths start; "": the working directory
	places   places
	problems Problems

	nodes    int        // visited so far, aliases counted each time
	expanded int        // bytes made by ${VAR} so far
	put      expansions // made where env is
	tooLarge bool
}

func (d *decoder) problem(n *yaml.Node, path, format string, args ...any) {
	d.problems = append(d.problems, problem{at: d.at(n), path: path, text: fmt.Sprintf(format, args...)})
}

// visit counts a node against the bound. Past it the rest is left out, and
// one problem says so.
func (d *decoder) visit(n *yaml.Node, path string) (*yaml.Node, bool) {
	if d.nodes++; d.nodes > maxNodes {
		if !d.tooLarge {
			d.problem(n, path, "the configuration is too large: its aliases make more than %d values", maxNodes)
		}
		d.tooLarge = true
		return nil, false
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n, n != nil
}

// value reads whatever stands under k. ok is false if there is nothing that
// can be used; a null is a key that nobody set.
func (d *decoder) value(k *Key, path string, n *yaml.Node) (v any, ok bool) {
	written := n
	n, ok = d.visit(n, path)
	if !ok {
		return nil, false
	}
	d.places[path] = d.at(written)
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return nil, false
	}
	switch k.Kind {
	case KindGroup:
		return d.group(k, path, n)
	case KindList:
		return d.list(k, path, n)
	case KindMap:
		return d.stringMap(k, path, n)
	case KindWhen:
		return d.when(k, path, n, 0)
	}
	return d.scalar(k, path, n)
}

func (d *decoder) group(k *Key, path string, n *yaml.Node) (any, bool) {
	if n.Kind != yaml.MappingNode {
		d.problem(n, path, "must be a mapping of %s, is %s%s", wording.List(childNames(k), "and"), k.describe(n), missingBlank(k, n))
		return nil, false
	}
	m := map[string]any{}
	said := map[*Key]*yaml.Node{}
	for _, e := range d.entries(k, n, path) {
		c := k.child(e.key.Value)
		if c == nil {
			d.problem(e.key, join(path, k.shown(e.key.Value)), "unknown key%s", unknownHint(k, e.key.Value))
			continue
		}
		if before := said[c]; before != nil {
			d.problem(e.key, join(path, e.key.Value), "is the same key as %s at %s; keep one of them", before.Value, d.at(before))
			continue
		}
		said[c] = e.key
		v, ok := d.value(c, join(path, c.Name), e.value)
		if ok {
			m[c.Name] = v
		}
	}
	return m, true
}

// missingBlank recognises "url:http://a" as a key and its value.
func missingBlank(k *Key, n *yaml.Node) string {
	name, _, _ := strings.Cut(n.Value, ":")
	if n.Kind == yaml.ScalarNode && k.child(name) != nil {
		return "; put a space after " + wording.Quote(name+":")
	}
	return ""
}

func (d *decoder) list(k *Key, path string, n *yaml.Node) (any, bool) {
	if n.Kind != yaml.SequenceNode {
		hint := ""
		if n.Kind == yaml.ScalarNode && len(n.Value) <= 80 && !k.secret {
			elements := strings.Split(n.Value, ",")
			for i := range elements {
				if k.Elem.Kind == KindGroup {
					elements[i] = fmt.Sprintf("{%s: %s}", k.Elem.mainKey(), strings.TrimSpace(elements[i]))
				}
			}
			hint = fmt.Sprintf("; did you mean [%s]?", strings.Join(elements, ","))
		} else if n.Kind == yaml.MappingNode {
			hint = "; begin each element with -"
		}
		d.problem(n, path, "must be a list, is %s%s", k.describe(n), hint)
		return nil, false
	}
	list := make([]any, 0, len(n.Content))
	for i, c := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		if c.Kind == yaml.ScalarNode && c.ShortTag() == "!!null" {
			d.problem(c, at, "is empty")
			continue
		}
		v, ok := d.value(k.Elem, at, c)
		if d.tooLarge {
			break
		}
		if !ok {
			// An element keeps its index, so that later problems name the right one.
			v = k.Elem.value
			if k.Elem.Kind == KindGroup {
				v = map[string]any{}
			}
		}
		if m, isGroup := v.(map[string]any); isGroup {
			v = withDefaults(k.Elem, m)
		}
		if v == nil {
			v = ""
		}
		list = append(list, v)
	}
	return list, true
}

// withDefaults fills in what an element of a list did not say.
func withDefaults(k *Key, m map[string]any) map[string]any {
	for name, v := range k.Defaults() {
		have, ok := m[name]
		if !ok {
			m[name] = v
		} else if sub, isGroup := have.(map[string]any); isGroup && k.child(name).Kind == KindGroup {
			withDefaults(k.child(name), sub)
		}
	}
	return m
}

func (d *decoder) stringMap(k *Key, path string, n *yaml.Node) (any, bool) {
	if n.Kind != yaml.MappingNode {
		d.problem(n, path, "must be a mapping of names to strings, is %s", k.describe(n))
		return nil, false
	}
	text := &Key{Kind: KindText, path: k.path + ".*", secret: k.secret}
	m := map[string]any{}
	for _, e := range d.entries(k, n, path) {
		if v, ok := d.value(text, join(path, k.shown(e.key.Value)), e.value); ok {
			m[e.key.Value] = v
		}
	}
	return m, true
}

func (d *decoder) scalar(k *Key, path string, n *yaml.Node) (any, bool) {
	if n.Kind != yaml.ScalarNode {
		d.problem(n, path, "must be a %s, is %s", k.Kind, k.describe(n))
		return nil, false
	}
	text, replaced, err := d.expand(k, n.Value)
	if err != nil {
		d.problem(n, path, "%v", err)
		return nil, false
	}
	if replaced {
		at := d.places[path]
		at.written = n.Value
		d.places[path] = at
	}
	isBool := n.ShortTag() == "!!bool" && !replaced
	if isBool && (k.Kind == KindText || k.Kind == KindPath) && len(k.OneOf) == 0 {
		d.problem(n, path, "must be a string, is a boolean; put it in quotes")
		return nil, false
	}
	if n.ShortTag() == "!!binary" {
		d.problem(n, path, "must be a %s, is !!binary", k.Kind)
		return nil, false
	}
	v, err := k.Parse(text)
	if err != nil && k.secret {
		err = errors.New("must be " + k.wanted())
	}
	if err != nil {
		d.problem(n, path, "%v", err)
		return nil, false
	}
	if k.Kind == KindPath && !slices.Contains(k.words, v.(string)) {
		v = d.resolve(v.(string))
	}
	return v, true
}

// resolve makes a relative path start at the directory of its source.
func (d *decoder) resolve(path string) string {
	if path == "" || d.dir == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(d.dir, path)
}

// shorten keeps an unknown key printable in a path.
func shorten(name string) string {
	if len(name) > 40 || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\ufeff' }) {
		return wording.Quote(name[:min(len(name), 40)])
	}
	return name
}

// shown is the name of an entry under k as a message may quote it. Under a secret
// key the name may hold the secret: "Authorization: Bearer KEY" in quotes is one
// long name. So a header's is shown up to the first character that no header's
// name has, and that of an unknown key only if it resembles a known one.
func (k *Key) shown(name string) string {
	switch {
	case !k.secret || wording.Nearest(name, childNames(k)) != "":
		return shorten(name)
	case k.Kind == KindMap:
		token := strings.TrimLeft(name, tokenChars)
		if token != "" {
			return shorten(name[:len(name)-len(token)]) + "..."
		}
		return shorten(name)
	}
	return "*"
}

// describe names what stands under k, for "must be a list, is ...".
func (k *Key) describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!null":
		return "empty"
	case "!!bool":
		return k.article("boolean", n.Value)
	case "!!int", "!!float":
		return k.article("number", n.Value)
	}
	return k.article("string", n.Value)
}

func (k *Key) article(noun, value string) string {
	if k.secret {
		return "a " + noun
	}
	return "the " + noun + " " + wording.Quote(value)
}
