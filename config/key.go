// Key: the tree of every key there is, read from the tags of Config.

package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"kvasir/classify"
	"kvasir/discovery"
	"kvasir/kvroute"
	"kvasir/proxy/compatible"
	"kvasir/upstream"
)

// A Kind says what stands under a key.
type Kind string

// What may stand under a key.
const (
	KindGroup    Kind = "mapping"
	KindList     Kind = "list"
	KindMap      Kind = "mapping of strings"
	KindText     Kind = "string"
	KindPath     Kind = "path"
	KindBool     Kind = "boolean"
	KindInt      Kind = "integer"
	KindFloat    Kind = "number"
	KindDuration Kind = "duration"
	KindSize     Kind = "size"
	KindWhen     Kind = "condition"
)

// A Key is one node of the tree. It is never changed once built.
type Key struct {
	Name     string
	path     string // "workers[].url"; "" is the root
	Kind     Kind
	Children []*Key   // of a group, in the order of Config
	Elem     *Key     // of a list
	OneOf    []string // of an enumeration: its values
	of       string   // the table of another package that they come from; "": none
	value    any      // the default as the decoder would give it; nil: the zero value
	min, max any      // bounds of the same type as value; nil: none
	words    []string // of a path: what is no path
	policies []string // of a key of routing: the policies that look at it; nil: all
	also     []string // other programs' names for it, which are read as its own
	restart  bool
	secret   bool // messages do not quote values
}

// tables are the enumerations that other packages know the values of, by the tag of.
var tables = map[string]func() []string{
	"engines": upstream.EngineNames, "sources": discovery.KindNames, "policies": kvroute.PolicyNames, "disaggregate": kvroute.DisaggregateNames,
	"systems": compatible.Systems,
}

// policyGroups are the properties of policies by which keys are theirs, by the tag
// policy.
var policyGroups = map[string]func(kvroute.Policy) bool{"priced": kvroute.Policy.Priced, "weighed": kvroute.Policy.Weighed}

// knownKeys is the whole tree.
var knownKeys = buildKnownKeys()

func buildKnownKeys() *Key {
	root := keyOf(reflect.TypeFor[Config](), "", "", "")
	root.inheritSecret()
	return root
}

// keyOf builds the key of one Go type. The tags were written by us, so what
// is wrong with them is a bug.
func keyOf(t reflect.Type, tag reflect.StructTag, name, path string) *Key {
	k := &Key{Name: name, path: path, restart: tag.Get("restart") == "yes", secret: tag.Get("secret") == "yes"}
	switch {
	case t == reflect.TypeFor[time.Duration]():
		k.Kind = KindDuration
	case t == reflect.TypeFor[Size]():
		k.Kind = KindSize
	case t == reflect.TypeFor[Path]():
		k.Kind = KindPath
	case t == reflect.TypeFor[classify.Condition]():
		k.Kind = KindWhen
		return k
	case t.Kind() == reflect.Struct:
		k.Kind = KindGroup
		for i := range t.NumField() {
			f := t.Field(i)
			n := f.Tag.Get("koanf")
			if n == ",remain" {
				k.Children = append(k.Children, boundKeys(path)...)
				continue
			}
			k.Children = append(k.Children, keyOf(f.Type, f.Tag, n, join(path, n)))
		}
		return k
	case t.Kind() == reflect.Slice:
		k.Kind = KindList
		k.Elem = keyOf(t.Elem(), ofElements(tag), "", path+"[]")
		return k
	default:
		k.Kind = map[reflect.Kind]Kind{
			reflect.Map: KindMap, reflect.String: KindText, reflect.Bool: KindBool,
			reflect.Int: KindInt, reflect.Float64: KindFloat,
		}[t.Kind()]
	}
	k.OneOf = strings.Fields(tag.Get("oneof"))
	if of, ok := tag.Lookup("of"); ok {
		k.of, k.OneOf = of, tables[of]()
	}
	k.words, k.also = strings.Fields(tag.Get("words")), strings.Fields(tag.Get("also"))
	if group, ok := tag.Lookup("policy"); ok {
		k.policies = kvroute.PoliciesThat(policyGroups[group])
	}
	k.value = k.mustParse(tag, "default")
	k.max = k.mustParse(tag, "max")
	k.min = k.mustParse(tag, "min")
	return k
}

// ofElements is what the tag of a list says of its elements: the values of an enumeration.
func ofElements(tag reflect.StructTag) reflect.StructTag {
	if of, ok := tag.Lookup("of"); ok {
		return reflect.StructTag(`of:"` + of + `"`)
	}
	return ""
}

// boundKeys are the keys of a signal that set bounds to measures, as the
// classifier's table has them.
func boundKeys(path string) (keys []*Key) {
	ofRange := func(name, path string) *Key { return keyOf(reflect.TypeFor[Range](), "", name, path) }
	for _, m := range classify.Makings() {
		at := join(path, m.Key)
		switch {
		case m.Measures == nil:
		case isAlone(&m):
			keys = append(keys, ofRange(m.Key, at))
		default:
			group := &Key{Name: m.Key, path: at, Kind: KindGroup}
			for _, name := range m.Measures {
				group.Children = append(group.Children, ofRange(name, join(at, name)))
			}
			keys = append(keys, group)
		}
	}
	return keys
}

func (k *Key) mustParse(tag reflect.StructTag, which string) any {
	text, ok := tag.Lookup(which)
	if !ok {
		return nil
	}
	v, err := k.Parse(text)
	if err != nil {
		panic(fmt.Sprintf("BUG: %s of %s: %v", which, k.path, err))
	}
	return v
}

// inheritSecret makes every key under a secret one secret.
func (k *Key) inheritSecret() {
	for _, c := range k.Children {
		c.secret = c.secret || k.secret
		c.inheritSecret()
	}
	if k.Elem != nil {
		k.Elem.secret = k.Elem.secret || k.secret
		k.Elem.inheritSecret()
	}
}

// child is the key of that name directly under k, which may be another program's name for it, or nil.
func (k *Key) child(name string) *Key {
	for _, c := range k.Children {
		if c.Name == name || slices.Contains(c.also, name) {
			return c
		}
	}
	return nil
}

// mainKey is the child that tells the elements of a list apart.
func (k *Key) mainKey() string {
	if k.child("url") != nil {
		return "url"
	}
	return k.Children[0].Name
}

// Find is the key at a dotted path without list indices, such as
// "server.listen"; nil: there is none.
func Find(path string) *Key { return knownKeys.find(path) }

// Paths are the paths of all keys that can be set by their own path.
func Paths() (paths []string) {
	knownKeys.leaves(func(k *Key) { paths = append(paths, k.path) })
	return paths
}

// find is the key at a dotted path under k.
func (k *Key) find(path string) *Key {
	for name := range strings.SplitSeq(path, ".") {
		if k = k.child(name); k == nil {
			return nil
		}
	}
	return k
}

// leaves calls f for every key under k that can be set by its own path:
// everything but groups and what stands inside list elements.
func (k *Key) leaves(f func(*Key)) {
	if k.Kind != KindGroup {
		f(k)
		return
	}
	for _, c := range k.Children {
		c.leaves(f)
	}
}

// all calls f for every key under k, groups and those in list elements too.
func (k *Key) all(f func(*Key)) {
	if k.Name != "" {
		f(k)
	}
	if k.Elem != nil {
		k.Elem.all(f)
	}
	for _, c := range k.Children {
		c.all(f)
	}
}

// values calls f for every key under k that can be set by its own path, with its
// value in v, which is of the type that k was made of.
func (k *Key) values(v reflect.Value, f func(k *Key, value any)) {
	if k.Kind != KindGroup {
		f(k, v.Interface())
		return
	}
	for i, c := range k.Children {
		c.values(v.Field(i), f)
	}
}

// Defaults are the values of a group when nobody sets any. Groups without any
// are left out.
func (k *Key) Defaults() map[string]any {
	m := map[string]any{}
	for _, c := range k.Children {
		if sub := c.Defaults(); len(sub) > 0 {
			m[c.Name] = sub
		} else if c.value != nil {
			m[c.Name] = c.value
		}
	}
	return m
}

// variable is the environment variable that sets the key: KVASIR_SERVER_MAX_BODY.
func (k *Key) variable() string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(k.path, ".", "_"))
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
