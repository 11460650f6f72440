// The check of a value against a JSON schema: what is made for a client fits, or is not sent.

package sim

import (
	"math"
	"slices"
	"unicode/utf8"
)

// unchecked are keywords that make a difference and that nothing here reads. A schema with one of
// them is refused instead of being half obeyed.
var unchecked = []string{"dependentSchemas", "dependencies", "unevaluatedItems", "$dynamicRef", "$recursiveRef"}

// fits reports whether a value is valid against a schema. When a bound is met it sets m.wrong, and
// the result means nothing.
func (m *maker) fits(s, v *node, depth int) bool {
	if !m.step() {
		return false
	}
	if depth > maxSchemaDepth {
		m.stop(cannotMake("its references go round in a circle"))
		return false
	}
	switch s.kind {
	case 't':
		return true
	case '{':
	default:
		return false
	}
	for _, keyword := range unchecked {
		if s.get(keyword) != nil {
			m.stop(cannotMake("it does not know the keyword %s", keyword))
			return false
		}
	}
	return m.fitsType(s, v) && m.fitsListed(s, v) && m.fitsOthers(s, v, depth) && m.fitsKind(s, v, depth)
}

func (m *maker) fitsType(s, v *node) bool {
	types := m.typesOf(s)
	return types == nil || slices.ContainsFunc(types, func(kind string) bool { return isKind(v, kind) })
}

func isKind(v *node, kind string) bool {
	switch kind {
	case "object":
		return v.kind == '{'
	case "array":
		return v.kind == '['
	case "string":
		return v.kind == '"'
	case "number":
		return v.kind == '0'
	case "integer":
		return v.kind == '0' && v.number == math.Trunc(v.number)
	case "boolean":
		return v.kind == 't' || v.kind == 'f'
	}
	return v.kind == 'n'
}

func (m *maker) fitsListed(s, v *node) bool {
	if c := s.get("const"); c != nil && !m.equal(c, v) {
		return false
	}
	list := s.get("enum")
	return list == nil || slices.ContainsFunc(list.items, func(n *node) bool { return m.equal(n, v) })
}

// equal compares two values as JSON schema does: 1 and 1.0 are the same number.
func (m *maker) equal(a, b *node) bool {
	if a == b || !m.step() {
		return a == b
	}
	if a.kind != b.kind || len(a.items) != len(b.items) || len(a.fields) != len(b.fields) {
		return false
	}
	if a.kind == '0' {
		return a.number == b.number
	}
	for name, value := range a.fields {
		if other := b.fields[name]; other == nil || !m.equal(value, other) {
			return false
		}
	}
	return a.text == b.text && slices.EqualFunc(a.items, b.items, m.equal)
}

// fitsOthers checks the schemas that a schema names for the same value.
func (m *maker) fitsOthers(s, v *node, depth int) bool {
	if ref := s.get("$ref"); ref != nil {
		to := m.follow(ref)
		if to == nil || !m.fits(to, v, depth+1) {
			return false
		}
	}
	for _, one := range s.get("allOf").itemsOf() {
		if !m.fits(one, v, depth+1) {
			return false
		}
	}
	if list := s.get("anyOf"); list != nil && !slices.ContainsFunc(list.items, func(one *node) bool { return m.fits(one, v, depth+1) }) {
		return false
	}
	if list := s.get("oneOf"); list != nil {
		fitting := 0
		for _, one := range list.items {
			if m.fits(one, v, depth+1) {
				fitting++
			}
		}
		if fitting != 1 {
			return false
		}
	}
	if not := s.get("not"); not != nil && m.fits(not, v, depth+1) {
		return false
	}
	condition := s.get("if")
	if condition == nil {
		return true
	}
	branch := s.get("then")
	if !m.fits(condition, v, depth+1) {
		branch = s.get("else")
	}
	return branch == nil || m.fits(branch, v, depth+1)
}

// fitsKind checks what a schema says of values of the value's type.
func (m *maker) fitsKind(s, v *node, depth int) bool {
	switch v.kind {
	case '{':
		return m.fitsObject(s, v, depth)
	case '[':
		return m.fitsArray(s, v, depth)
	case '"':
		return m.fitsText(s, v.text)
	case '0':
		return fitsNumber(s, v.number)
	}
	return true
}

func (m *maker) fitsObject(s, v *node, depth int) bool {
	one := []*node{s}
	if float64(len(v.names)) < largest(one, "minProperties", 0) || float64(len(v.names)) > smallest(one, "maxProperties", math.Inf(1)) {
		return false
	}
	if !m.charge((len(s.get("required").itemsOf()) + len(s.get("dependentRequired").namesOf())) / cheap) {
		return false
	}
	for _, name := range s.get("required").itemsOf() {
		if v.get(name.text) == nil {
			return false
		}
	}
	if together := s.get("dependentRequired"); together != nil {
		for name, others := range together.fields {
			if v.get(name) != nil && m.charge(len(others.items)/cheap) && slices.ContainsFunc(others.items, func(o *node) bool { return v.get(o.text) == nil }) {
				return false
			}
		}
	}
	for _, name := range v.names {
		if !m.fitsProperty(s, name, v.get(name), depth) {
			return false
		}
	}
	// Only what is named is made, so that what a schema leaves unevaluated is seldom there.
	if rest := s.get("unevaluatedProperties"); rest != nil && rest.kind == 'f' &&
		slices.ContainsFunc(v.names, func(name string) bool { return !m.evaluates(s, name, 0) }) {
		return false
	}
	return true
}

// fitsProperty checks one property by its name.
func (m *maker) fitsProperty(s *node, name string, v *node, depth int) bool {
	if p := s.get("propertyNames"); p != nil && !m.fits(p, &node{kind: '"', text: name}, depth+1) {
		return false
	}
	p := s.get("properties").get(name)
	named := p != nil
	if named && !m.fits(p, v, depth+1) {
		return false
	}
	for _, pattern := range s.get("patternProperties").namesOf() {
		if !m.charge(1 + len(name)*maxPatternSize>>10) {
			return false
		}
		re := m.compile(pattern)
		if re == nil {
			m.stop(cannotMake("it cannot read the pattern %.100q", pattern))
			return false
		}
		if !re.MatchString(name) {
			continue
		}
		named = true
		if !m.fits(s.get("patternProperties").get(pattern), v, depth+1) {
			return false
		}
	}
	p = s.get("additionalProperties")
	return named || p == nil || m.fits(p, v, depth+1)
}

// evaluates reports whether a schema, or one that it names for the same value, has a word on a
// property.
func (m *maker) evaluates(s *node, name string, depth int) bool {
	if depth > maxValueDepth || !m.step() || s == nil {
		return false
	}
	if s.get("properties").get(name) != nil || s.get("additionalProperties") != nil {
		return true
	}
	if ref := s.get("$ref"); ref != nil && m.evaluates(m.follow(ref), name, depth+1) {
		return true
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		if slices.ContainsFunc(s.get(keyword).itemsOf(), func(one *node) bool { return m.evaluates(one, name, depth+1) }) {
			return true
		}
	}
	return m.evaluates(s.get("then"), name, depth+1) || m.evaluates(s.get("else"), name, depth+1)
}

func (m *maker) fitsArray(s, v *node, depth int) bool {
	one := []*node{s}
	if float64(len(v.items)) < largest(one, "minItems", 0) || float64(len(v.items)) > smallest(one, "maxItems", math.Inf(1)) {
		return false
	}
	containing := 0
	for i, item := range v.items {
		if p := itemSchema(s, i); p != nil && !m.fits(p, item, depth+1) {
			return false
		}
		if p := s.get("contains"); p != nil && m.fits(p, item, depth+1) {
			containing++
		}
		if unique := s.get("uniqueItems"); unique != nil && unique.kind == 't' &&
			slices.ContainsFunc(v.items[:i], func(other *node) bool { return m.equal(other, item) }) {
			return false
		}
	}
	return s.get("contains") == nil || float64(containing) >= largest(one, "minContains", 1) &&
		float64(containing) <= smallest(one, "maxContains", math.Inf(1))
}

// fitsText checks a string. A pattern that Go does not know (one that looks ahead, say) is taken
// as met where a format says what the string is.
func (m *maker) fitsText(s *node, text string) bool {
	one, length := []*node{s}, float64(utf8.RuneCountInString(text))
	if length < largest(one, "minLength", 0) || length > smallest(one, "maxLength", math.Inf(1)) {
		return false
	}
	pattern := s.get("pattern")
	if pattern == nil {
		return true
	}
	re := m.compile(pattern.text)
	if re == nil {
		return formats[s.get("format").textOf()] == text
	}
	return m.charge(1+maxPatternSize*len(text)>>10) && re.MatchString(text)
}

func fitsNumber(s *node, v float64) bool {
	for _, bound := range []struct {
		keyword string
		broken  func(n float64) bool
	}{
		{"minimum", func(n float64) bool { return v < n }},
		{"maximum", func(n float64) bool { return v > n }},
		{"exclusiveMinimum", func(n float64) bool { return v <= n }},
		{"exclusiveMaximum", func(n float64) bool { return v >= n }},
		{"multipleOf", func(n float64) bool { return n > 0 && math.Abs(v/n-math.Round(v/n)) > 1e-9 }},
	} {
		if n := s.get(bound.keyword); n != nil && n.kind == '0' && bound.broken(n.number) {
			return false
		}
	}
	return !excludes4(s, "exclusiveMinimum", "minimum", v) && !excludes4(s, "exclusiveMaximum", "maximum", v)
}
