// Values: what Python's templates compute with.

package template

import (
	"math"
	"strings"
)

// Beside the types below a value is nil (None), bool, int64, float64, string, and what a rendering makes
// itself: undefined, markup, macros, functions, namespaces and loops.

// BigInt is an integer beyond 64 bits in decimal digits. It can be written, and that is all.
type BigInt string

// List is a list, or what Python has beside it that behaves almost like one.
type List struct {
	Items []any
	kind  listKind
}

type listKind uint8

const (
	isList listKind = iota
	isTuple
	isView      // of a dict: no index
	isGenerator // no index, no length, always true
)

// Dict is a dict: keys in the order in which they were first set.
type Dict struct {
	keys  []any
	vals  []any
	index map[string]int // of text keys, once there are more than few
}

const few = 8

// NewList returns a list of these values.
func NewList(items ...any) *List { return &List{Items: items} }

// roomy is how many keys have room beside a dict: a message has two to four.
const roomy = 4

// NewDict returns an empty dict with room for n keys.
func NewDict(n int) *Dict {
	if n > roomy {
		return &Dict{keys: make([]any, 0, n), vals: make([]any, 0, n)}
	}
	d := &struct {
		Dict
		keys, vals [roomy]any
	}{}
	d.Dict.keys, d.Dict.vals = d.keys[:0], d.vals[:0]
	return &d.Dict
}

// boxed is a text as a value. Those that are in each message are there already.
func boxed(s string) any {
	switch s {
	case "role":
		return "role"
	case "content":
		return "content"
	case "system":
		return "system"
	case "user":
		return "user"
	case "assistant":
		return "assistant"
	case "tool":
		return "tool"
	case "type":
		return "type"
	case "text":
		return "text"
	}
	return s
}

// Len is the number of keys.
func (d *Dict) Len() int {
	if d == nil {
		return 0
	}
	return len(d.keys)
}

// At returns the i-th key and value.
func (d *Dict) At(i int) (key, value any) { return d.keys[i], d.vals[i] }

func (d *Dict) find(key string) int {
	if d == nil {
		return -1
	}
	if d.index != nil {
		if i, ok := d.index[key]; ok {
			return i
		}
		return -1
	}
	for i, k := range d.keys {
		if s, ok := k.(string); ok && s == key {
			return i
		}
	}
	return -1
}

// Get is the value of a text key.
func (d *Dict) Get(key string) (any, bool) {
	if i := d.find(key); i >= 0 {
		return d.vals[i], true
	}
	return nil, false
}

// Set sets the value of a text key; a key that is there keeps its place.
func (d *Dict) Set(key string, value any) {
	if i := d.find(key); i >= 0 {
		d.vals[i] = value
		return
	}
	if d.index == nil && len(d.keys) >= few {
		d.index = make(map[string]int, 2*few)
		for i, k := range d.keys {
			if s, ok := k.(string); ok {
				d.index[s] = i
			}
		}
	}
	if d.index != nil {
		d.index[key] = len(d.keys)
	}
	d.keys, d.vals = append(d.keys, boxed(key)), append(d.vals, value)
}

// Delete removes a text key.
func (d *Dict) Delete(key string) {
	i := d.find(key)
	if i < 0 {
		return
	}
	d.keys = append(d.keys[:i:i], d.keys[i+1:]...)
	d.vals = append(d.vals[:i:i], d.vals[i+1:]...)
	d.index = nil
	if len(d.keys) > few {
		d.index = make(map[string]int, len(d.keys))
		for i, k := range d.keys {
			if s, ok := k.(string); ok {
				d.index[s] = i
			}
		}
	}
}

// Clone copies the dict, not what is in it.
func (d *Dict) Clone() *Dict {
	c := NewDict(d.Len() + 1)
	for i, k := range d.keys {
		c.put(k, d.vals[i])
	}
	return c
}

func hashable(key any) {
	switch key.(type) {
	case *Dict:
		fail(ErrRender, "a dict cannot be a key")
	case *List:
		fail(ErrUnsupported, "a list as a key")
	}
}

// put is Set for any key.
func (d *Dict) put(key, value any) {
	if s, ok := key.(string); ok {
		d.Set(s, value)
		return
	}
	hashable(key)
	for i, k := range d.keys {
		if equal(k, key) {
			d.vals[i] = value
			return
		}
	}
	d.keys, d.vals = append(d.keys, key), append(d.vals, value)
}

// lookup is Get for any key.
func (d *Dict) lookup(key any) (any, bool) {
	if s, ok := key.(string); ok {
		return d.Get(s)
	}
	hashable(key)
	for i, k := range d.keys {
		if equal(k, key) {
			return d.vals[i], true
		}
	}
	return nil, false
}

// undefined is what a name or an attribute gives that is not there. Written it is nothing; anything
// else that is done with it, but for asking whether it is there, is an error.
type undefined struct{ what string }

// markup is text that was marked as safe or escaped. It can be written; Python's way of escaping
// whatever it meets is not built here.
type markup string

func isUndefined(v any) bool {
	_, ok := v.(undefined)
	return ok
}

// truth is Python's bool().
func truth(v any) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case markup:
		return v != ""
	case *List:
		return len(v.Items) > 0 || v.kind == isGenerator
	case *Dict:
		return v.Len() > 0
	}
	return true
}

// number is a value as a number: whole where it is an integer or a bool.
func number(v any) (whole int64, float float64, isWhole, ok bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, 1, true, true
		}
		return 0, 0, true, true
	case int64:
		return v, float64(v), true, true
	case float64:
		return 0, v, false, true
	}
	return 0, 0, false, false
}

// equal compares what can be a key of a dict.
func equal(a, b any) bool {
	if s, ok := a.(string); ok {
		t, ok := b.(string)
		return ok && s == t
	}
	if x, f, whole, ok := number(a); ok {
		y, g, whole2, ok := number(b)
		if !ok {
			return false
		}
		if whole && whole2 {
			return x == y
		}
		return f == g && (math.Abs(f) < 1<<53 || !whole && !whole2)
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case undefined:
		return isUndefined(b)
	case BigInt:
		c, ok := b.(BigInt)
		return ok && a == c
	case markup:
		fail(ErrUnsupported, "comparing marked text")
	}
	return identical(a, b)
}

// identical is Python's `is` for values that have an identity.
func identical(a, b any) bool {
	switch a.(type) {
	case *macro, *function, *namespace, *loop, *Dict, *List:
		return a == b
	}
	return false
}

// same is Python's ==.
func same(cost *budget, a, b any, depth int) bool {
	deeper(cost, depth)
	switch a := a.(type) {
	case string:
		b, ok := b.(string)
		if !ok || len(a) != len(b) {
			return false
		}
		cost.step(copying(len(a)))
		return a == b
	case *List:
		b, ok := b.(*List)
		return ok && sameLists(cost, a, b, depth+1)
	case *Dict:
		b, ok := b.(*Dict)
		return ok && sameDicts(cost, a, b, depth+1)
	}
	return equal(a, b)
}

func sameLists(cost *budget, l, m *List, depth int) bool {
	if l.kind != m.kind || l.kind >= isView {
		return l == m
	}
	if len(l.Items) != len(m.Items) {
		return false
	}
	for i, v := range l.Items {
		if !same(cost, v, m.Items[i], depth) {
			return false
		}
	}
	return true
}

func sameDicts(cost *budget, d, e *Dict, depth int) bool {
	if d.Len() != e.Len() {
		return false
	}
	for i, k := range d.keys {
		v, ok := lookup(cost, e, k)
		if !ok || !same(cost, d.vals[i], v, depth) {
			return false
		}
	}
	return true
}

// order compares numbers, texts and lists; other pairs are errors.
func ordered(cost *budget, a, b any, sign string, depth int) int {
	deeper(cost, depth)
	if x, f, whole, ok := number(a); ok {
		if y, g, whole2, ok := number(b); ok {
			switch {
			case whole && whole2 && x < y || !(whole && whole2) && f < g:
				return -1
			case whole && whole2 && x == y || !(whole && whole2) && f == g:
				return 0
			}
			return 1
		}
	}
	switch a := a.(type) {
	case string:
		if b, ok := b.(string); ok {
			cost.step(copying(min(len(a), len(b))))
			return strings.Compare(a, b)
		}
	case *List:
		if b, ok := b.(*List); ok && a.kind == b.kind && a.kind < isView {
			for i := range min(len(a.Items), len(b.Items)) {
				if !same(cost, a.Items[i], b.Items[i], depth+1) {
					return ordered(cost, a.Items[i], b.Items[i], sign, depth+1)
				}
			}
			return len(a.Items) - len(b.Items)
		}
	}
	fail(ErrRender, "'%s' between %s and %s", sign, typeName(a), typeName(b))
	return 0
}

// search is the steps to find a key: the hash of a text, or a look at each key.
func (d *Dict) search(key any) int {
	s, ok := key.(string)
	if !ok {
		return d.Len()
	}
	n := copying(len(s))
	if d != nil && d.index == nil {
		n *= few
		if len(d.keys) > few {
			n += len(d.keys)
		}
	}
	return n
}

func lookup(cost *budget, d *Dict, key any) (any, bool) {
	cost.step(d.search(key))
	return d.lookup(key)
}

func put(cost *budget, d *Dict, key, value any) {
	cost.step(1 + d.search(key))
	cost.made(sizePair)
	d.put(key, value)
}

func clone(cost *budget, d *Dict) *Dict {
	cost.made(sizePair)
	c := NewDict(d.Len() + 1)
	for i, k := range d.keys {
		cost.step(4)
		put(cost, c, k, d.vals[i])
	}
	return c
}

func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case undefined:
		return "undefined " + v.what
	case bool:
		return "bool"
	case int64, BigInt:
		return "int"
	case float64:
		return "float"
	case string, markup:
		return "str"
	case *Dict:
		return "dict"
	case *List:
		return [...]string{"list", "tuple", "a view of a dict", "a generator"}[v.kind]
	}
	return "an object"
}
