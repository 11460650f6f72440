// The parser of statements.

package template

import (
	"fmt"
	"slices"
)

func sprintf(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// parser reads tokens. A variable's name is a number, its place among the names.
type parser struct {
	tokens []token
	pos    int
	depth  int
	line   *int
	names  []string
	ids    map[string]int
	loads  []int // names that are read somewhere; undeclared looks closer
	loops  int   // for loops that are open, for break and continue
}

func (p *parser) id(name string) int {
	i, ok := p.ids[name]
	if !ok {
		i = len(p.names)
		p.ids[name] = i
		p.names = append(p.names, name)
	}
	return i
}

func (p *parser) peek() token { return p.tokens[p.pos] }

func (p *parser) next() token {
	t := p.tokens[p.pos]
	if t.kind != tokenEnd {
		p.pos++
	}
	*p.line = t.line
	return t
}

func (p *parser) is(kind tokenKind, text string) bool {
	t := p.tokens[p.pos]
	return t.kind == kind && t.text == text
}

func (p *parser) skip(kind tokenKind, text string) bool {
	if p.is(kind, text) {
		p.next()
		return true
	}
	return false
}

func (p *parser) expect(kind tokenKind, text string) {
	if !p.skip(kind, text) {
		p.unexpected()
	}
}

func (p *parser) unexpected() {
	t := p.next()
	*p.line = t.line
	if t.kind == tokenEnd {
		fail(ErrSyntax, "unexpected end")
	}
	fail(ErrSyntax, "unexpected %.40q", t.text)
}

func (p *parser) name() string {
	if p.peek().kind != tokenName {
		p.unexpected()
	}
	return p.next().text
}

// nest guards the recursion; call the result when done.
func (p *parser) nest() func() {
	if p.depth++; p.depth > maxNested {
		fail(ErrLimit, "nested more than %d deep", maxNested)
	}
	return func() { p.depth-- }
}

// link guards the recursion through what is written in a row and is evaluated within each other.
func (p *parser) link(links *int) {
	if *links++; *links > maxNested {
		fail(ErrLimit, "more than %d operations in a row", maxNested)
	}
}

func (p *parser) template() []statement {
	body, _ := p.statements()
	return body
}

// statements reads up to a block that begins with one of ends, whose name it returns; its other words
// come next. Without ends it reads to the end of the template.
func (p *parser) statements(ends ...string) ([]statement, string) {
	defer p.nest()()
	var body []statement
	for {
		t := p.next()
		switch t.kind {
		case tokenEnd:
			if len(ends) > 0 {
				fail(ErrSyntax, "no %s", ends[0])
			}
			return body, ""
		case tokenText:
			body = append(body, &textStatement{t.text})
		case tokenOpen:
			body = append(body, &outputStatement{p.tuple(true), t.line})
			p.expect(tokenClose, "")
		case tokenBlock:
			name := p.name()
			if slices.Contains(ends, name) {
				return body, name
			}
			if s := p.block(name, t.line); s != nil {
				body = append(body, s)
			}
		default:
			p.unexpected()
		}
	}
}

// rest reads the end of a tag, and the body up to the block end, with that block's tag.
func (p *parser) rest(end string) []statement {
	p.expect(tokenBlockEnd, "")
	body, _ := p.statements(end)
	p.expect(tokenBlockEnd, "")
	return body
}

func (p *parser) block(name string, line int) statement {
	switch name {
	case "for":
		return p.forLoop(line)
	case "if":
		return p.ifElse(line)
	case "set":
		return p.set(line)
	case "macro":
		m := &macroStatement{id: p.id(p.name()), line: line}
		p.signature(&m.macroCode)
		m.macroCode.name = p.names[m.id]
		m.body = p.macroBody("endmacro")
		return m
	case "call":
		c := &callStatement{line: line}
		if p.is(tokenSign, "(") {
			p.signature(&c.macroCode)
		}
		call, ok := p.expression(true).(*callNode)
		if !ok {
			fail(ErrSyntax, "call without a call")
		}
		c.call = call
		c.body = p.macroBody("endcall")
		return c
	case "generation":
		return &scopeStatement{body: p.macroBody("endgeneration")}
	case "filter":
		f := &filterStatement{line: line}
		f.filters = p.filters(nil, true)
		f.body = p.rest("endfilter")
		return f
	case "with":
		return p.with()
	case "break", "continue":
		if p.loops == 0 {
			fail(ErrSyntax, "%s outside of a loop", name)
		}
		p.expect(tokenBlockEnd, "")
		if name == "break" {
			return &jumpStatement{jumpBreak}
		}
		return &jumpStatement{jumpContinue}
	case "include", "import", "from", "extends", "block", "autoescape":
		fail(ErrUnsupported, "the tag %s", name)
	}
	fail(ErrSyntax, "the tag %.40q", name)
	return nil
}

// macroBody reads a body that loops outside of it do not reach into.
func (p *parser) macroBody(end string) []statement {
	loops := p.loops
	p.loops = 0
	body := p.rest(end)
	p.loops = loops
	return body
}

func (p *parser) forLoop(line int) statement {
	f := &forStatement{line: line, loopID: p.id("loop")}
	f.target = p.target(false, true)
	p.expect(tokenName, "in")
	f.items = p.tuple(false)
	if p.skip(tokenName, "if") {
		f.test = p.expression(true)
	}
	if p.is(tokenName, "recursive") {
		fail(ErrUnsupported, "recursive loops")
	}
	p.expect(tokenBlockEnd, "")
	p.loops++
	body, end := p.statements("endfor", "else")
	p.loops--
	f.body = body
	if end == "else" {
		p.expect(tokenBlockEnd, "")
		f.otherwise, _ = p.statements("endfor")
	}
	p.expect(tokenBlockEnd, "")
	return f
}

func (p *parser) ifElse(line int) statement {
	s := &ifStatement{line: line}
	for {
		test := p.tuple(false)
		p.expect(tokenBlockEnd, "")
		body, end := p.statements("elif", "else", "endif")
		s.tests, s.bodies = append(s.tests, test), append(s.bodies, body)
		if end == "elif" {
			continue
		}
		if end == "else" {
			p.expect(tokenBlockEnd, "")
			s.otherwise, _ = p.statements("endif")
		}
		p.expect(tokenBlockEnd, "")
		return s
	}
}

func (p *parser) set(line int) statement {
	target := p.target(true, true)
	if p.skip(tokenSign, "=") {
		s := &setStatement{target: target, value: p.tuple(true), line: line}
		p.expect(tokenBlockEnd, "")
		return s
	}
	s := &setBlockStatement{target: target, line: line}
	s.filters = p.filters(nil, false)
	s.body = p.rest("endset")
	return s
}

func (p *parser) with() statement {
	w := &withStatement{}
	for !p.is(tokenBlockEnd, "") {
		if len(w.targets) > 0 {
			p.expect(tokenSign, ",")
		}
		w.targets = append(w.targets, p.target(false, false))
		p.expect(tokenSign, "=")
		w.values = append(w.values, p.expression(true))
	}
	w.body = p.rest("endwith")
	return w
}

// target reads what is assigned to: a name, an attribute of a namespace, or several names.
func (p *parser) target(namespace, tuple bool) target {
	parens := p.skip(tokenSign, "(")
	t := target{id: p.id(p.targetName())}
	if namespace && p.skip(tokenSign, ".") {
		t.attribute = p.name()
		return t
	}
	if !parens && !(tuple && p.is(tokenSign, ",")) {
		return t
	}
	several := target{several: []target{t}}
	for p.skip(tokenSign, ",") {
		if p.peek().kind != tokenName {
			break
		}
		several.several = append(several.several, target{id: p.id(p.targetName())})
	}
	if parens {
		p.expect(tokenSign, ")")
	}
	return several
}

func (p *parser) targetName() string {
	name := p.name()
	switch name {
	case "true", "false", "none", "True", "False", "None":
		fail(ErrSyntax, "cannot assign to %s", name)
	}
	return name
}

// signature reads the parameters of a macro.
func (p *parser) signature(m *macroCode) {
	m.caller = p.id("caller")
	p.expect(tokenSign, "(")
	for !p.is(tokenSign, ")") {
		if len(m.parameters) > 0 {
			p.expect(tokenSign, ",")
		}
		m.parameters = append(m.parameters, p.id(p.targetName()))
		if p.skip(tokenSign, "=") {
			m.defaults = append(m.defaults, p.expression(true))
		} else if len(m.defaults) > 0 {
			fail(ErrSyntax, "a parameter without default behind one with it")
		}
	}
	p.next()
}

// undeclared are the names that are read where they need not be set.
func (p *parser) undeclared() []int {
	slices.Sort(p.loads)
	return slices.Compact(p.loads)
}
