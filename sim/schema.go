// The values that are made for JSON schemas, where a request asks for an answer that fits one.

package sim

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Bounds on schemas and on the values made for them. A schema is a client's: nothing about it may
// cost more than the request's own size allows.
const (
	maxSchema      = 1 << 20   // bytes of a schema
	maxSchemaDepth = 100       // levels of its JSON
	maxValueDepth  = 24        // levels of a value
	fullDepth      = 3         // levels down to which properties and items are made that need not be there
	maxSchemaSteps = 50_000    // schemas looked at for one value, by maker and checker together
	maxValueBytes  = 256 << 10 // text of a value
	maxTogether    = 64        // schemas that one value must fit at the same time
	maxPattern     = 512       // bytes of a regular expression
	maxPatternSize = 2000      // instructions of one
	maxPatternText = 2000      // bytes of a string made by one
	cheap          = 8         // small looks that are one step
)

// schemaError says why no value is made for a schema. The request is refused with it.
type schemaError struct{ message string }

func (e *schemaError) Error() string { return e.message }

func cannotMake(format string, args ...any) *schemaError {
	return &schemaError{"the simulated engine cannot make JSON for this schema: " + fmt.Sprintf(format, args...)}
}

// maker makes one value for a schema. It tries the branches of a schema one after the other and
// takes the first whose value fits, which check decides.
type maker struct {
	root  *node
	steps int          // left
	bytes int          // of text, left
	wrong *schemaError // ends it all: a bound, or a schema that is none
	why   string       // the first reason why a branch was given up

	patterns map[string]*regexp.Regexp // compiled; nil: cannot be
	targets  map[*node]*node           // of each $ref that was followed
}

func newMaker(root *node) *maker {
	return &maker{root: root, steps: maxSchemaSteps, bytes: maxValueBytes, patterns: map[string]*regexp.Regexp{}, targets: map[*node]*node{}}
}

// makeJSON returns a JSON value that is valid against the schema, or says why it makes none.
func makeJSON(schema []byte) ([]byte, error) {
	root, err := parseNode(schema)
	if err != nil {
		return nil, cannotMake("%v", err)
	}
	m := newMaker(root)
	value := m.value([]*node{root}, 0, 0)
	if m.wrong != nil {
		return nil, m.wrong
	}
	if value == nil {
		return nil, cannotMake("%s", orDefault(m.why, "no value fits it"))
	}
	return appendNode(nil, value), nil
}

// step counts one look at a schema, and reports whether the maker may go on.
func (m *maker) step() bool { return m.charge(1) }

// charge counts work as steps.
func (m *maker) charge(steps int) bool {
	if m.steps -= steps; m.steps < 0 {
		m.stop(cannotMake("it needs more than %d steps", maxSchemaSteps))
	}
	return m.wrong == nil
}

func (m *maker) stop(err *schemaError) {
	if m.wrong == nil {
		m.wrong = err
	}
}

// giveUp says why a branch has no value.
func (m *maker) giveUp(format string, args ...any) *node {
	if m.why == "" {
		m.why = fmt.Sprintf(format, args...)
	}
	return nil
}

// value makes a value that fits all of these schemas, or returns nil. vary asks for another one
// than that of 0, where items of an array must differ.
func (m *maker) value(all []*node, depth, vary int) *node {
	if !m.step() {
		return nil
	}
	if depth > maxValueDepth {
		return m.giveUp("it goes deeper than %d levels", maxValueDepth)
	}
	all = m.flatten(all)
	if m.wrong != nil {
		return nil
	}
	return m.choose(all, 0, depth, vary)
}

// flatten adds what $ref and allOf of the schemas name. What it added is not added again.
func (m *maker) flatten(all []*node) []*node {
	out := make([]*node, 0, len(all)+2)
	for queue := all; len(queue) > 0 && m.step(); queue = queue[1:] {
		s := queue[0]
		if slices.Contains(out, s) {
			continue
		}
		out = append(out, s)
		if len(out) > maxTogether {
			m.stop(cannotMake("one value would have to fit more than %d schemas", maxTogether))
		}
		if ref := s.get("$ref"); ref != nil {
			if to := m.follow(ref); to != nil {
				queue = append(slices.Clip(queue), to)
			}
		}
		if list := s.get("allOf"); list != nil {
			queue = append(slices.Clip(queue), list.items...)
		}
	}
	return out
}

// follow finds the schema that a $ref names; only those in the same document are known.
func (m *maker) follow(ref *node) *node {
	if to, known := m.targets[ref]; known || !m.charge(len(ref.text)/cheap) {
		return to
	}
	path, local := strings.CutPrefix(ref.text, "#")
	if ref.kind != '"' || !local || path != "" && path[0] != '/' {
		m.stop(cannotMake("it cannot follow $ref %.100q; only references such as #/$defs/name are known", ref.text))
		return nil
	}
	at := m.root
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for _, name := range strings.Split(path, "/")[1:] {
		name = unescape.Replace(name)
		switch i, err := strconv.Atoi(name); {
		case at.kind == '[' && err == nil && i >= 0 && i < len(at.items):
			at = at.items[i]
		case at.get(name) != nil:
			at = at.get(name)
		default:
			m.stop(cannotMake("$ref %.100q leads nowhere", ref.text))
			return nil
		}
	}
	m.targets[ref] = at
	return at
}

// choose goes through the choices of the schemas from the from-th on: anyOf, oneOf, if. For each
// it takes the first branch that has a value which fits.
func (m *maker) choose(all []*node, from, depth, vary int) *node {
	for i := from; i < len(all); i++ {
		for _, keyword := range []string{"anyOf", "oneOf"} {
			list := all[i].get(keyword)
			if list == nil || !m.charge(len(list.items)/cheap) || slices.ContainsFunc(list.items, func(s *node) bool { return slices.Contains(all, s) }) {
				continue
			}
			for _, branch := range m.inOrder(list.items, depth) {
				if v := m.fitting(append(slices.Clip(all), branch), all[i], i, depth, vary); v != nil || m.wrong != nil {
					return v
				}
			}
			return m.giveUp("no branch of %s has a value that fits", keyword)
		}
		condition := all[i].get("if")
		if condition == nil {
			continue
		}
		for _, branch := range [][]*node{{condition, all[i].get("then")}, {all[i].get("else")}} {
			branch = slices.DeleteFunc(branch, func(s *node) bool { return s == nil })
			if len(branch) == 0 {
				branch = []*node{trueNode}
			}
			if v := m.fitting(append(slices.Clip(all), branch...), all[i], i+1, depth, vary); v != nil || m.wrong != nil {
				return v
			}
		}
		return m.giveUp("neither branch of if has a value that fits")
	}
	return m.plain(all, depth, vary)
}

// fitting makes a value for schemas of which one branch was added, and checks that it fits the
// one that the branch is of.
func (m *maker) fitting(all []*node, of *node, from, depth, vary int) *node {
	if !m.step() {
		return nil
	}
	all = m.flatten(all)
	if m.wrong != nil {
		return nil
	}
	v := m.choose(all, from, depth, vary)
	if v == nil || m.wrong != nil || !m.fits(of, v, 0) {
		return nil
	}
	return v
}

// inOrder returns branches as they stand, but deep down those first that go no deeper.
func (m *maker) inOrder(branches []*node, depth int) []*node {
	if depth < fullDepth {
		return branches
	}
	out := slices.Clone(branches)
	slices.SortStableFunc(out, func(a, b *node) int { return m.reach(a) - m.reach(b) })
	return out
}

// reach guesses how deep a value of the schema goes.
func (m *maker) reach(s *node) int {
	switch {
	case s.get("$ref") != nil:
		return 2
	case s.get("properties") != nil, s.get("items") != nil, s.get("anyOf") != nil, s.get("allOf") != nil, s.get("oneOf") != nil:
		return 1
	}
	return 0
}

// plain makes a value for schemas without choices.
func (m *maker) plain(all []*node, depth, vary int) *node {
	for _, s := range all {
		if s.kind == 'f' {
			return m.giveUp("a schema that is false allows no value")
		}
		if s.kind != '{' && s.kind != 't' {
			m.stop(cannotMake("a schema must be an object or a boolean"))
			return nil
		}
	}
	var v *node
	listed, given := m.listed(all, vary)
	switch {
	case given:
		v = listed
	default:
		for _, kind := range m.kinds(all) {
			if v = m.ofKind(kind, all, depth, vary); v != nil || m.wrong != nil {
				break
			}
		}
	}
	if v == nil || m.wrong != nil {
		return nil
	}
	for _, s := range all {
		switch {
		case m.fits(s, v, 0):
		case m.why == "":
			return m.giveUp("%.100s does not fit", appendNode(nil, v))
		default:
			return nil
		}
	}
	return v
}

// listed picks a value of const or enum that fits all; given says whether there is such a list.
func (m *maker) listed(all []*node, vary int) (v *node, given bool) {
	for _, s := range all {
		if v := s.get("const"); v != nil {
			return m.copied(v), true
		}
	}
	for _, s := range all {
		list := s.get("enum")
		if list == nil {
			continue
		}
		for i := range list.items {
			v := list.items[(i+vary)%len(list.items)]
			if !slices.ContainsFunc(all, func(s *node) bool { return !m.fits(s, v, 0) }) {
				return m.copied(v), true
			}
			if m.wrong != nil {
				return nil, true
			}
		}
		return m.giveUp("no value of enum fits"), true
	}
	return nil, false
}

// copied is a value of the schema that becomes a part of the answer, which its length counts for as
// often as it does.
func (m *maker) copied(v *node) *node {
	if !m.spend(len(appendNode(nil, v))) {
		return nil
	}
	return v
}

// kinds returns the types that all schemas allow, in the order of the first that names any.
func (m *maker) kinds(all []*node) (kinds []string) {
	for _, s := range all {
		own := m.typesOf(s)
		switch {
		case own == nil:
		case kinds == nil:
			kinds = own
		default:
			kinds = bothKinds(kinds, own)
			if len(kinds) == 0 {
				m.giveUp("it asks for two types at once")
				return nil
			}
		}
	}
	if kinds != nil {
		return kinds
	}
	for _, hint := range []struct{ keyword, kind string }{
		{"properties", "object"}, {"required", "object"}, {"minProperties", "object"}, {"items", "array"}, {"prefixItems", "array"},
		{"minItems", "array"}, {"minimum", "number"}, {"exclusiveMinimum", "number"}, {"maximum", "number"}, {"multipleOf", "number"},
	} {
		if slices.ContainsFunc(all, func(s *node) bool { return s.get(hint.keyword) != nil }) {
			return []string{hint.kind, "string", "null", "object", "array", "integer", "boolean"}
		}
	}
	return []string{"string", "null", "object", "array", "integer", "boolean"}
}

// typesOf reads "string" or ["string", "null"]; nil: any.
func (m *maker) typesOf(s *node) (types []string) {
	named := s.get("type")
	if named == nil {
		return nil
	}
	list := named.items
	if named.kind != '[' {
		list = []*node{named}
	}
	if !m.charge(len(list) / cheap) {
		return []string{}
	}
	for _, n := range list {
		switch n.text {
		case "object", "array", "string", "number", "integer", "boolean", "null":
			if !slices.Contains(types, n.text) {
				types = append(types, n.text)
			}
		default:
			m.stop(&schemaError{"Invalid type: " + strings.Trim(string(appendNode(nil, n)), `"`)})
			return []string{}
		}
	}
	return types
}

// bothKinds returns what two lists of types have in common; an integer is a number, too.
func bothKinds(a, b []string) (both []string) {
	for _, kind := range a {
		switch {
		case slices.Contains(b, kind):
			both = append(both, kind)
		case kind == "number" && slices.Contains(b, "integer"), kind == "integer" && slices.Contains(b, "number"):
			both = append(both, "integer")
		}
	}
	return both
}

func (m *maker) ofKind(kind string, all []*node, depth, vary int) *node {
	switch kind {
	case "object":
		return m.object(all, depth, vary)
	case "array":
		return m.array(all, depth, vary)
	case "string":
		return m.text(all, vary)
	case "number", "integer":
		return m.numberOf(all, kind == "integer", vary)
	case "boolean":
		if vary%2 == 1 {
			return trueNode
		}
		return falseNode
	}
	return nullNode
}

// object makes the properties that must be there and, as long as it does not go deep, the others
// that are named, in the order of the schema.
func (m *maker) object(all []*node, depth, vary int) *node {
	v := &node{kind: '{', fields: map[string]*node{}}
	required := map[string]bool{}
	var names []string
	for _, s := range all {
		names = append(names, s.get("properties").namesOf()...)
		for _, name := range s.get("required").itemsOf() {
			required[name.text] = true
		}
	}
	for _, s := range all {
		for _, name := range s.get("required").itemsOf() {
			names = append(names, name.text)
		}
	}
	if !m.charge(len(names) / cheap) {
		return nil
	}
	for _, name := range names {
		if v.get(name) != nil || !required[name] && depth >= fullDepth {
			continue
		}
		property := m.value(m.propertySchemas(all, name), depth+1, vary)
		if m.wrong != nil || property == nil && required[name] {
			return nil
		}
		if property != nil && m.spend(len(name)+8) {
			v.set(name, property)
		}
	}
	least := int(largest(all, "minProperties", 0))
	for i := 1; len(v.names) < least && m.step(); i++ {
		name := "simulated" + strconv.Itoa(i)
		property := m.value(m.propertySchemas(all, name), depth+1, vary)
		if property == nil {
			return nil
		}
		v.set(name, property)
	}
	return v
}

// propertySchemas returns what a property must fit.
func (m *maker) propertySchemas(all []*node, name string) (out []*node) {
	for _, s := range all {
		if p := s.get("properties").get(name); p != nil {
			out = append(out, p)
		} else if p := s.get("additionalProperties"); p != nil {
			out = append(out, p) // also for those of patternProperties; the check tells
		}
	}
	if out == nil {
		out = []*node{trueNode}
	}
	return out
}

func (n *node) namesOf() []string {
	if n == nil {
		return nil
	}
	return n.names
}

func (n *node) itemsOf() []*node {
	if n == nil {
		return nil
	}
	return n.items
}

// array makes as many items as there must be, and at least one where it does not go deep.
func (m *maker) array(all []*node, depth, vary int) *node {
	v := &node{kind: '['}
	least := int(largest(all, "minItems", 0))
	want := least
	if want == 0 && depth < fullDepth && smallest(all, "maxItems", 1) >= 1 {
		want = 1
	}
	for i := 0; i < want && m.wrong == nil; i++ {
		item := m.value(m.itemSchemas(all, i), depth+1, i+vary)
		if item == nil && len(v.items) < least {
			return nil
		}
		if item == nil || !m.spend(2) {
			break
		}
		v.items = append(v.items, item)
	}
	return v
}

// itemSchemas returns what the i-th item of an array must fit.
func (m *maker) itemSchemas(all []*node, i int) (out []*node) {
	for _, s := range all {
		if p := itemSchema(s, i); p != nil {
			out = append(out, p)
		}
		if p := s.get("contains"); p != nil && i < int(largest([]*node{s}, "minContains", 1)) {
			out = append(out, p)
		}
	}
	if out == nil {
		out = []*node{trueNode}
	}
	return out
}

// itemSchema returns a schema's own word on its i-th item, or nil. A list in items is the older
// form of prefixItems.
func itemSchema(s *node, i int) *node {
	first, rest := s.get("prefixItems").itemsOf(), s.get("items")
	if rest != nil && rest.kind == '[' {
		first, rest = rest.items, s.get("additionalItems")
	}
	if i < len(first) {
		return first[i]
	}
	return rest
}

// largest returns the largest number that the schemas name for a keyword, and smallest the
// smallest; standard if none does.
func largest(all []*node, keyword string, standard float64) float64 {
	found := false
	for _, s := range all {
		if n := s.get(keyword); n != nil && n.kind == '0' && (!found || n.number > standard) {
			standard, found = clampSize(n.number), true
		}
	}
	return standard
}

func smallest(all []*node, keyword string, standard float64) float64 {
	found := false
	for _, s := range all {
		if n := s.get(keyword); n != nil && n.kind == '0' && (!found || n.number < standard) {
			standard, found = clampSize(n.number), true
		}
	}
	return standard
}

// clampSize keeps a number of items or characters where it can be counted with.
func clampSize(n float64) float64 { return min(max(n, 0), 1<<30) }

// spend counts bytes of the value, and reports whether there may be as many.
func (m *maker) spend(n int) bool {
	if m.bytes -= n; m.bytes < 0 {
		m.stop(cannotMake("its value would be longer than %d bytes", maxValueBytes))
	}
	return m.wrong == nil
}
