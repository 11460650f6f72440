// Reading: a YAML tree of a stranger without aliases, which knows what of it was read.

package convert

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"kvasir/config"
	"kvasir/wording"
)

// Bounds of one file: values, aliases counted each time, and how deep they nest. A file of
// Semantic Router with everything in it has 2,500 values, nine deep.
const (
	mostValues = 20_000
	mostDeep   = 64
)

// A doc is one file that is read, and what there is to say of it.
type doc struct {
	name  string
	notes []Note
	count int
	lost  []lost // what has no counterpart, and what to do
}

// A value is what stands at one place of the file. One that is not there has no node, and reads as
// empty.
type value struct {
	doc   *doc
	node  *yaml.Node
	above *value // nil: it is the whole file
	key   string // under which it stands in a mapping
	index int    // in a list; -1: it is in none
	kids  []*value
	at    map[string]int // of a mapping: where in kids each key is
	read  bool
}

// A lost row says what of the other program has no counterpart; * in a path is any key.
type lost struct {
	path string // divided by spaces, since keys may have dots
	text string // what to do; "": not worth a word
}

// read makes the tree of a file.
func read(name string, data []byte) (*doc, *value, error) {
	root, err := config.Document(name, data)
	if err != nil {
		return nil, nil, err
	}
	doc := &doc{name: name}
	if root == nil {
		return nil, nil, fmt.Errorf("%s is empty", name)
	}
	v, err := doc.tree(root, &value{doc: doc, index: -1}, 0)
	if err != nil {
		return nil, nil, err
	}
	if v.node.Kind != yaml.MappingNode {
		return nil, nil, fmt.Errorf("%s:%d: is no mapping of keys to values, so no configuration", name, v.line())
	}
	return doc, v, nil
}

// tree fills v, which has its path, and all under it.
func (d *doc) tree(n *yaml.Node, v *value, depth int) (*value, error) {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	if d.count++; d.count > mostValues {
		return nil, fmt.Errorf("%s:%d: is too large: it has more than %d values, those that aliases repeat among them", d.name, n.Line, mostValues)
	}
	if depth > mostDeep {
		return nil, fmt.Errorf("%s:%d: is nested more than %d deep, or an alias holds itself", d.name, n.Line, mostDeep)
	}
	v.node = n
	switch n.Kind {
	case yaml.SequenceNode:
		for i, e := range n.Content {
			kid, err := d.tree(e, &value{doc: d, above: v, index: i}, depth+1)
			if err != nil {
				return nil, err
			}
			v.kids = append(v.kids, kid)
		}
	case yaml.MappingNode:
		return v, d.mapping(n, v, depth)
	}
	return v, nil
}

// mapping reads the entries of a mapping, and those that << brings, which its own override.
func (d *doc) mapping(n *yaml.Node, v *value, depth int) error {
	var merged []*value
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		if n.Content[i].Tag == "!!merge" {
			from, err := d.tree(n.Content[i+1], &value{doc: d, above: v, index: -1}, depth+1)
			if err != nil {
				return err
			}
			parts := []*value{from}
			if from.node.Kind == yaml.SequenceNode {
				parts = from.kids
			}
			for _, p := range parts {
				if p.node.Kind == yaml.MappingNode {
					merged = append(merged, p.kids...)
				}
			}
			continue
		}
		kid, err := d.tree(n.Content[i+1], &value{doc: d, above: v, key: key, index: -1}, depth+1)
		if err != nil {
			return err
		}
		if at := v.find(key); at >= 0 {
			d.note(v.kids[at], "is there twice; the later one counts")
			v.kids[at] = kid
			continue
		}
		v.add(kid)
	}
	for _, m := range merged {
		if v.find(m.key) < 0 {
			m.above = v
			v.add(m)
		}
	}
	return nil
}

// path is how messages call the place of v.
func (v *value) path() string {
	switch {
	case v.above == nil:
		return ""
	case v.index >= 0:
		return fmt.Sprintf("%s[%d]", v.above.path(), v.index)
	}
	return under(v.above.path(), v.key)
}

// keys are the keys that lead to v, without indices.
func (v *value) keys() []string {
	switch {
	case v.above == nil:
		return nil
	case v.index >= 0:
		return v.above.keys()
	}
	return append(v.above.keys(), v.key)
}

// under is the path of a key; one that would not read as a key is quoted.
func under(path, key string) string {
	if len(key) > 60 || key == "" || strings.ContainsFunc(key, func(r rune) bool { return r == ' ' || r == '[' || r > 0xfff || !unicode.IsPrint(r) }) {
		key = wording.Quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func (v *value) find(key string) int {
	if i, ok := v.at[key]; ok {
		return i
	}
	return -1
}

// add puts an entry into a mapping.
func (v *value) add(kid *value) {
	if v.at == nil {
		v.at = map[string]int{}
	}
	v.at[kid.key] = len(v.kids)
	v.kids = append(v.kids, kid)
}

// get is what stands under a path of keys.
func (v *value) get(keys ...string) *value {
	for _, key := range keys {
		i := v.find(key)
		if i < 0 {
			return &value{doc: v.doc, above: v, key: key, index: -1}
		}
		v = v.kids[i]
	}
	return v
}

// either is the first of several keys that is there.
func (v *value) either(keys ...string) *value {
	for _, key := range keys {
		if v.has(key) {
			return v.get(key)
		}
	}
	return v.get(keys[0])
}

// there says whether there is a value, and not null.
func (v *value) there() bool {
	return v.node != nil && (v.node.Kind != yaml.ScalarNode || v.node.ShortTag() != "!!null")
}

func (v *value) has(keys ...string) bool { return v.get(keys...).there() }

func (v *value) line() int {
	if v.node == nil {
		return 1
	}
	return max(1, v.node.Line)
}

// text is a scalar as it is written; "" where there is none.
func (v *value) text() string {
	if !v.there() {
		return ""
	}
	if v.node.Kind != yaml.ScalarNode {
		v.drop("should be a text, so it is left out")
		return ""
	}
	v.read = true
	return v.node.Value
}

// number is a number; ok is false where there is none.
func (v *value) number() (n float64, ok bool) {
	text := v.text()
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		v.doc.note(v, "is no number, so it is left out")
		return 0, false
	}
	return n, true
}

// within is a number between two bounds; one beyond them is left out.
func (v *value) within(least, most float64) (float64, bool) {
	n, ok := v.number()
	if ok && (n < least || n > most) {
		v.doc.note(v, fmt.Sprintf("is not within %g and %g, as Kvasir wants it, so it is left out", least, most))
		return 0, false
	}
	return n, ok
}

// is says whether a value is true; standard is what counts where there is none. Both programs read
// YAML's older words, too: a guard that is "on" is on.
func (v *value) is(standard bool) bool {
	switch text := strings.ToLower(v.text()); text {
	case "true", "yes", "on", "y", "t", "1":
		return true
	case "false", "no", "off", "n", "f", "0":
		return false
	case "":
	default:
		v.doc.note(v, fmt.Sprintf("is neither true nor false, so it counts as %v", standard))
	}
	return standard
}

// items are the elements of a list; a single scalar is a list of one.
func (v *value) items() []*value {
	if !v.there() {
		return nil
	}
	switch v.node.Kind {
	case yaml.SequenceNode:
		return v.kids
	case yaml.ScalarNode:
		return []*value{v}
	}
	v.drop("should be a list, so it is left out")
	return nil
}

// texts are the scalars of a list.
func (v *value) texts() (list []string) {
	for _, e := range v.items() {
		if s := e.text(); s != "" {
			list = append(list, s)
		}
	}
	return list
}

// entries are the values of a mapping, each with its key.
func (v *value) entries() []*value {
	if !v.there() {
		return nil
	}
	if v.node.Kind != yaml.MappingNode {
		v.drop("should be a mapping, so it is left out")
		return nil
	}
	return v.kids
}

// quiet marks what stands under keys as read: it means nothing to us and needs no word.
func (v *value) quiet(keys ...string) {
	for _, key := range keys {
		v.get(key).done()
	}
}

// done marks a value and all under it as read.
func (v *value) done() {
	v.read = true
	for _, k := range v.kids {
		k.done()
	}
}

// drop notes that a value is not taken over, and why.
func (v *value) drop(text string) {
	if v.there() {
		v.doc.note(v, text)
	}
	v.done()
}
