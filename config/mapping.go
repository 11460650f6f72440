// Mappings: the entries of a YAML mapping, with merge keys resolved and duplicates told.

package config

import "go.yaml.in/yaml/v3"

// An entry is one key of a mapping with its value.
type entry struct{ key, value *yaml.Node }

// entries are the mapping's own keys, and then those that its merge keys (<<)
// add. Duplicates are noted and left out. k is the key that it stands under.
func (d *decoder) entries(k *Key, n *yaml.Node, path string) []entry {
	var own []entry
	first := map[string]*yaml.Node{}
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.AliasNode && key.Alias != nil {
			key = &yaml.Node{Kind: key.Alias.Kind, Tag: key.Alias.Tag, Value: key.Alias.Value, Line: key.Line, Column: key.Column}
		}
		switch before := first[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			d.problem(key, path, "a key must be plain text, is %s", k.describe(key))
		case before != nil:
			d.problem(key, join(path, k.shown(key.Value)), "duplicate key, first at %s", d.at(before))
			d.problems[len(d.problems)-1].kept = true // the first one
		case key.ShortTag() == "!!merge":
			first[key.Value] = key
			merges = append(merges, value)
		default:
			first[key.Value] = key
			own = append(own, entry{key, value})
		}
	}
	for _, m := range merges {
		own = d.merge(k, own, first, m, path, 0)
	}
	return own
}

// merge adds the keys of a merge key's mapping, or list of mappings, that are
// not there yet.
func (d *decoder) merge(k *Key, to []entry, have map[string]*yaml.Node, n *yaml.Node, path string, depth int) []entry {
	n, ok := d.visit(n, path)
	if !ok {
		return to
	}
	if depth > maxMerges {
		d.problem(n, path, "merge keys (<<) are nested more than %d deep", maxMerges)
		return to
	}
	switch n.Kind {
	case yaml.SequenceNode:
		for _, c := range n.Content {
			to = d.merge(k, to, have, c, path, depth+1)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if key.Kind != yaml.ScalarNode || d.tooLarge {
				continue // noted where the anchor stands
			}
			d.nodes++
			if key.ShortTag() == "!!merge" {
				to = d.merge(k, to, have, value, path, depth+1)
			} else if have[key.Value] == nil {
				have[key.Value] = key
				to = append(to, entry{key, value})
			}
		}
	default:
		d.problem(n, path, "a merge key (<<) takes a mapping, not %s", k.describe(n))
	}
	return to
}
