// Known keys: the tree of every key there is, read from the tags of Config.
package main

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"kvasir/classify"
)

// A kind says what stands under a key.
type kind string

const (
	kindGroup    kind = "mapping"
	kindList     kind = "list"
	kindMap      kind = "mapping of strings"
	kindText     kind = "string"
	kindPath     kind = "path"
	kindBool     kind = "boolean"
	kindInt      kind = "integer"
	kindFloat    kind = "number"
	kindDuration kind = "duration"
	kindSize     kind = "size"
	kindWhen     kind = "condition"
)

// A knownKey is one node of the tree. It is never changed once built.
type knownKey struct {
	name     string
	path     string // "workers[].url"; "" is the root
	kind     kind
	children []*knownKey // of a group, in the order of Config
	elem     *knownKey   // of a list
	value    any         // the default as the decoder would give it; nil: the zero value
	oneOf    []string    // of an enumeration
	min, max any         // bounds of the same type as value; nil: none
	words    []string    // of a path: what is no path
	restart  bool
	secret   bool // messages do not quote values
}

// knownKeys is the whole tree.
var knownKeys = buildKnownKeys()

func buildKnownKeys() *knownKey {
	root := keyOf(reflect.TypeFor[Config](), "", "", "")
	root.inheritSecret()
	return root
}

// keyOf builds the key of one Go type. The tags were written by us, so what
// is wrong with them is a bug.
func keyOf(t reflect.Type, tag reflect.StructTag, name, path string) *knownKey {
	k := &knownKey{name: name, path: path, restart: tag.Get("restart") == "yes", secret: tag.Get("secret") == "yes"}
	switch {
	case t == reflect.TypeFor[time.Duration]():
		k.kind = kindDuration
	case t == reflect.TypeFor[size]():
		k.kind = kindSize
	case t == reflect.TypeFor[filePath]():
		k.kind = kindPath
	case t == reflect.TypeFor[classify.Condition]():
		k.kind = kindWhen
		return k
	case t.Kind() == reflect.Struct:
		k.kind = kindGroup
		for i := range t.NumField() {
			f := t.Field(i)
			n := f.Tag.Get("koanf")
			if n == ",remain" {
				k.children = append(k.children, boundKeys(path)...)
				continue
			}
			k.children = append(k.children, keyOf(f.Type, f.Tag, n, join(path, n)))
		}
		return k
	case t.Kind() == reflect.Slice:
		k.kind = kindList
		k.elem = keyOf(t.Elem(), "", "", path+"[]")
		return k
	default:
		k.kind = map[reflect.Kind]kind{
			reflect.Map: kindMap, reflect.String: kindText, reflect.Bool: kindBool,
			reflect.Int: kindInt, reflect.Float64: kindFloat,
		}[t.Kind()]
	}
	k.oneOf = strings.Fields(tag.Get("oneof"))
	k.words = strings.Fields(tag.Get("words"))
	k.value = k.mustParse(tag, "default")
	k.max = k.mustParse(tag, "max")
	k.min = k.mustParse(tag, "min")
	return k
}

// boundKeys are the keys of a signal that set bounds to measures, as the
// classifier's table has them.
func boundKeys(path string) (keys []*knownKey) {
	ofRange := func(name, path string) *knownKey { return keyOf(reflect.TypeFor[rangeConfig](), "", name, path) }
	for _, m := range classify.Makings() {
		at := join(path, m.Key)
		switch {
		case m.Measures == nil:
		case isAlone(&m):
			keys = append(keys, ofRange(m.Key, at))
		default:
			group := &knownKey{name: m.Key, path: at, kind: kindGroup}
			for _, name := range m.Measures {
				group.children = append(group.children, ofRange(name, join(at, name)))
			}
			keys = append(keys, group)
		}
	}
	return keys
}

func (k *knownKey) mustParse(tag reflect.StructTag, which string) any {
	text, ok := tag.Lookup(which)
	if !ok {
		return nil
	}
	v, err := k.parse(text)
	if err != nil {
		panic(fmt.Sprintf("BUG: %s of %s: %v", which, k.path, err))
	}
	return v
}

// inheritSecret makes secret what stands under a secret key.
func (k *knownKey) inheritSecret() {
	for _, c := range k.children {
		c.secret = c.secret || k.secret
		c.inheritSecret()
	}
	if k.elem != nil {
		k.elem.secret = k.elem.secret || k.secret
		k.elem.inheritSecret()
	}
}

// child is the key of that name directly under k, or nil.
func (k *knownKey) child(name string) *knownKey {
	for _, c := range k.children {
		if c.name == name {
			return c
		}
	}
	return nil
}

// mainKey is the child that tells the elements of a list apart.
func (k *knownKey) mainKey() string {
	if k.child("url") != nil {
		return "url"
	}
	return k.children[0].name
}

// find is the key at a dotted path without list indices, or nil.
func (k *knownKey) find(path string) *knownKey {
	for name := range strings.SplitSeq(path, ".") {
		if k = k.child(name); k == nil {
			return nil
		}
	}
	return k
}

// leaves calls f for every key under k that can be set by its own path:
// everything but groups and what stands inside list elements.
func (k *knownKey) leaves(f func(*knownKey)) {
	if k.kind != kindGroup {
		f(k)
		return
	}
	for _, c := range k.children {
		c.leaves(f)
	}
}

// all calls f for every key under k, groups and those in list elements too.
func (k *knownKey) all(f func(*knownKey)) {
	if k.name != "" {
		f(k)
	}
	if k.elem != nil {
		k.elem.all(f)
	}
	for _, c := range k.children {
		c.all(f)
	}
}

// defaults are the values of a group when nobody sets any. Groups without any
// are left out.
func (k *knownKey) defaults() map[string]any {
	m := map[string]any{}
	for _, c := range k.children {
		if sub := c.defaults(); len(sub) > 0 {
			m[c.name] = sub
		} else if c.value != nil {
			m[c.name] = c.value
		}
	}
	return m
}

// variable is the environment variable that sets the key: KVASIR_SERVER_MAX_BODY.
func (k *knownKey) variable() string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(k.path, ".", "_"))
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
