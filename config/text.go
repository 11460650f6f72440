// Text: values of variables and flags, which have no YAML around them.

package config

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// textValue reads the text of a variable or flag: a scalar as it stands, a
// list from commas or YAML's [..], other things as YAML.
func textValue(k *Key, text string, here place, at places) (v any, usable bool, bad Problems) {
	at.drop(k.path)
	at[k.path] = here
	d := &decoder{at: func(*yaml.Node) place { return here }, places: at}
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: text}
	trimmed := strings.TrimSpace(text)
	switch {
	case len(text) > maxFile:
		d.problem(n, k.path, "is larger than %d MiB", maxFile>>20)
		return nil, false, d.problems
	case k.Kind == KindText || k.Kind == KindPath:
		n.Style = yaml.DoubleQuotedStyle // a string whatever it looks like
	case k.Kind == KindList && k.Elem.Kind == KindText && !strings.HasPrefix(trimmed, "["):
		n = commaList(trimmed)
	case k.Kind == KindList || k.Kind == KindMap:
		root, p := parseDocument([]byte(text))
		if p != nil {
			d.problem(n, k.path, "%s", p.text)
			return nil, false, d.problems
		}
		if root == nil {
			root = &yaml.Node{Kind: map[Kind]yaml.Kind{KindList: yaml.SequenceNode, KindMap: yaml.MappingNode}[k.Kind]}
		}
		n = root
	default:
		n.Value = trimmed
		if trimmed == "" {
			d.problem(n, k.path, "is empty")
			return nil, false, d.problems
		}
	}
	v, usable = d.value(k, k.path, n)
	return v, usable, d.problems
}

func commaList(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	if text == "" {
		return n
	}
	for part := range strings.SplitSeq(text, ",") {
		n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: strings.TrimSpace(part), Style: yaml.DoubleQuotedStyle})
	}
	return n
}

// put sets a dotted path in nested maps.
func put(m map[string]any, path string, v any) {
	for {
		name, rest, nested := strings.Cut(path, ".")
		if !nested {
			m[name] = v
			return
		}
		sub, ok := m[name].(map[string]any)
		if !ok {
			sub = map[string]any{}
			m[name] = sub
		}
		m, path = sub, rest
	}
}
