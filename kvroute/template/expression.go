// The parser of expressions, with jinja2's precedence.

package template

import (
	"strconv"
	"strings"
)

// tuple reads an expression, or several with commas between them.
func (p *parser) tuple(condition bool) node {
	first := p.expression(condition)
	if !p.is(tokenSign, ",") {
		return first
	}
	t := &listNode{items: []node{first}, kind: isTuple}
	for p.skip(tokenSign, ",") {
		if k := p.peek(); k.kind == tokenClose || k.kind == tokenBlockEnd || k.kind == tokenSign && k.text == ")" {
			break
		}
		t.items = append(t.items, p.expression(condition))
	}
	return t
}

func (p *parser) expression(condition bool) node {
	defer p.nest()()
	if !condition {
		return p.or()
	}
	n := p.or()
	for links := 0; p.skip(tokenName, "if"); p.link(&links) {
		c := &conditionNode{yes: n, test: p.or()}
		if p.skip(tokenName, "else") {
			c.no = p.expression(true)
		}
		n = c
	}
	return n
}

func (p *parser) or() node {
	n := p.and()
	for links := 0; p.skip(tokenName, "or"); p.link(&links) {
		n = &orNode{n, p.and()}
	}
	return n
}

func (p *parser) and() node {
	n := p.not()
	for links := 0; p.skip(tokenName, "and"); p.link(&links) {
		n = &andNode{n, p.not()}
	}
	return n
}

func (p *parser) not() node {
	if p.skip(tokenName, "not") {
		defer p.nest()()
		return &notNode{p.not()}
	}
	return p.comparison()
}

func (p *parser) comparison() node {
	n := p.sum()
	var c *compareNode
	for {
		sign := ""
		t := p.peek()
		switch {
		case t.kind == tokenSign && strings.Contains(" == != < <= > >= ", " "+t.text+" "):
			sign = p.next().text
		case t.kind == tokenName && t.text == "in":
			p.next()
			sign = "in"
		case t.kind == tokenName && t.text == "not" && p.tokens[p.pos+1].kind == tokenName && p.tokens[p.pos+1].text == "in":
			p.next()
			p.next()
			sign = "not in"
		default:
			if c == nil {
				return n
			}
			return c
		}
		if c == nil {
			c = &compareNode{first: n}
		}
		c.signs, c.rest = append(c.signs, sign), append(c.rest, p.sum())
	}
}

func (p *parser) sum() node {
	n := p.concat()
	links := 0
	for p.is(tokenSign, "+") || p.is(tokenSign, "-") {
		sign := p.next().text[0]
		right := p.concat()
		if sign == '+' {
			if s, ok := n.(*sumNode); ok {
				s.items = append(s.items, right)
			} else {
				n = &sumNode{[]node{n, right}}
			}
			continue
		}
		p.link(&links)
		n = &arithmeticNode{"-", n, right}
	}
	return n
}

func (p *parser) concat() node {
	n := p.product()
	if !p.is(tokenSign, "~") {
		return n
	}
	c := &concatNode{[]node{n}}
	for p.skip(tokenSign, "~") {
		c.items = append(c.items, p.product())
	}
	return c
}

func (p *parser) product() node {
	n := p.power()
	for links := 0; p.is(tokenSign, "*") || p.is(tokenSign, "/") || p.is(tokenSign, "//") || p.is(tokenSign, "%"); p.link(&links) {
		sign := p.next().text
		n = &arithmeticNode{sign, n, p.power()}
	}
	return n
}

func (p *parser) power() node {
	n := p.unary(true)
	for links := 0; p.skip(tokenSign, "**"); p.link(&links) {
		n = &arithmeticNode{"**", n, p.unary(true)}
	}
	return n
}

func (p *parser) unary(filter bool) node {
	defer p.nest()()
	var n node
	switch {
	case p.skip(tokenSign, "-"):
		n = &negativeNode{p.unary(false)}
	case p.skip(tokenSign, "+"):
		n = &positiveNode{p.unary(false)}
	default:
		n = p.postfix(p.primary())
	}
	if filter {
		n = p.filtered(n)
	}
	return n
}

func (p *parser) primary() node {
	t := p.next()
	switch t.kind {
	case tokenName:
		switch t.text {
		case "true", "True":
			return &constNode{true}
		case "false", "False":
			return &constNode{false}
		case "none", "None":
			return &constNode{nil}
		case "varargs", "kwargs":
			fail(ErrUnsupported, "the name %s", t.text)
		}
		id := p.id(t.text)
		p.loads = append(p.loads, id)
		return &nameNode{id: id, name: t.text}
	case tokenString:
		if p.peek().kind != tokenString {
			return &constNode{t.text}
		}
		var s strings.Builder // to add one to the other would copy the first for each
		s.WriteString(t.text)
		for p.peek().kind == tokenString {
			s.WriteString(p.next().text)
		}
		return &constNode{s.String()}
	case tokenInteger:
		i, err := strconv.ParseInt(t.text, 10, 64)
		if err != nil {
			fail(ErrUnsupported, "the number %.40s", t.text)
		}
		return &constNode{i}
	case tokenFloat:
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			fail(ErrUnsupported, "the number %.40s", t.text)
		}
		return &constNode{f}
	case tokenSign:
		switch t.text {
		case "(":
			return p.parenthesis()
		case "[":
			return p.list()
		case "{":
			return p.dict()
		}
	}
	p.pos = max(p.pos-1, 0)
	p.unexpected()
	return nil
}

func (p *parser) parenthesis() node {
	if p.skip(tokenSign, ")") {
		return &listNode{kind: isTuple}
	}
	n := p.tuple(true)
	p.expect(tokenSign, ")")
	return n
}

func (p *parser) list() node {
	l := &listNode{}
	for !p.skip(tokenSign, "]") {
		if len(l.items) > 0 {
			p.expect(tokenSign, ",")
			if p.skip(tokenSign, "]") {
				break
			}
		}
		l.items = append(l.items, p.expression(true))
	}
	return l
}

func (p *parser) dict() node {
	d := &dictNode{}
	for !p.skip(tokenSign, "}") {
		if len(d.keys) > 0 {
			p.expect(tokenSign, ",")
			if p.skip(tokenSign, "}") {
				break
			}
		}
		d.keys = append(d.keys, p.expression(true))
		p.expect(tokenSign, ":")
		d.values = append(d.values, p.expression(true))
	}
	return d
}

// postfix reads attributes, subscripts and calls.
func (p *parser) postfix(n node) node {
	for links := 0; ; p.link(&links) {
		switch {
		case p.skip(tokenSign, "."):
			t := p.next()
			switch t.kind {
			case tokenName:
				n = p.attribute(n, t.text, t.line)
			case tokenInteger:
				i, _ := strconv.ParseInt(t.text, 10, 64)
				n = &itemNode{n, &constNode{i}, t.line}
			default:
				p.pos--
				p.unexpected()
			}
		case p.skip(tokenSign, "["):
			n = p.subscript(n)
		case p.is(tokenSign, "("):
			n = p.call(n)
		default:
			return n
		}
	}
}

func (p *parser) subscript(n node) node {
	line := p.peek().line
	var parts [3]node
	i := 0
	for !p.is(tokenSign, "]") {
		if p.skip(tokenSign, ":") {
			if i++; i > 2 {
				fail(ErrSyntax, "a slice of more than three parts")
			}
			continue
		}
		if p.is(tokenSign, ",") {
			fail(ErrUnsupported, "a subscript of several parts")
		}
		if parts[i] != nil {
			p.unexpected()
		}
		parts[i] = p.expression(true)
	}
	p.next()
	if i > 0 {
		return &sliceNode{n, parts, line}
	}
	if parts[0] == nil {
		fail(ErrSyntax, "an empty subscript")
	}
	return &itemNode{n, parts[0], line}
}

func (p *parser) call(n node) node {
	c := &callNode{callee: n, line: p.peek().line}
	p.arguments(&c.arguments)
	return c
}

// arguments reads (a, b, name=c).
func (p *parser) arguments(a *arguments) {
	p.expect(tokenSign, "(")
	for comma := false; !p.skip(tokenSign, ")"); comma = true {
		if comma {
			p.expect(tokenSign, ",")
			if p.skip(tokenSign, ")") {
				return
			}
		}
		if p.skip(tokenSign, "*") {
			a.spread = p.expression(true)
			continue
		}
		if p.is(tokenSign, "**") {
			fail(ErrUnsupported, "arguments from a dict")
		}
		if p.peek().kind == tokenName && p.tokens[p.pos+1].kind == tokenSign && p.tokens[p.pos+1].text == "=" {
			a.names = append(a.names, p.next().text)
			p.next()
			a.named = append(a.named, p.expression(true))
			continue
		}
		if len(a.named) > 0 || a.spread != nil {
			fail(ErrSyntax, "an argument without name behind one with it")
		}
		a.plain = append(a.plain, p.expression(true))
	}
}

// filtered reads filters, tests, and calls of what they give.
func (p *parser) filtered(n node) node {
	for links := 0; ; p.link(&links) {
		switch {
		case p.is(tokenSign, "|"):
			n = p.filters(n, false)
		case p.skip(tokenName, "is"):
			n = p.test(n)
		case p.is(tokenSign, "("):
			n = p.call(n)
		default:
			return n
		}
	}
}

// filters reads |name(...)|name...; at once says that the first comes without its sign.
func (p *parser) filters(n node, atOnce bool) node {
	for links := 0; atOnce || p.skip(tokenSign, "|"); p.link(&links) {
		atOnce = false
		f := &filterNode{value: n, line: p.peek().line}
		f.name = p.dotted()
		if f.filter = filters[f.name]; f.filter == nil {
			fail(ErrUnsupported, "the filter %.40q", f.name)
		}
		if p.is(tokenSign, "(") {
			p.arguments(&f.arguments)
		}
		n = f
	}
	return n
}

func (p *parser) dotted() string {
	name := p.name()
	for links := 0; p.skip(tokenSign, "."); p.link(&links) {
		name += "." + p.name()
	}
	return name
}

func (p *parser) test(n node) node {
	not := p.skip(tokenName, "not")
	t := &testNode{value: n, line: p.peek().line}
	t.name = p.dotted()
	if t.test = tests[t.name]; t.test == nil {
		fail(ErrUnsupported, "the test %.40q", t.name)
	}
	switch k := p.peek(); {
	case k.kind == tokenSign && k.text == "(":
		p.arguments(&t.arguments)
	case k.kind == tokenName && (k.text == "else" || k.text == "or" || k.text == "and"):
	case k.kind == tokenName && k.text == "is":
		fail(ErrSyntax, "two tests with is in a row")
	case k.kind == tokenName && (k.text == "if" || k.text == "in" || k.text == "not"):
		// jinja2 takes these for the name of an argument and then fails.
		fail(ErrSyntax, "%s behind a test", k.text)
	case k.kind == tokenName || k.kind == tokenString || k.kind == tokenInteger || k.kind == tokenFloat ||
		k.kind == tokenSign && (k.text == "[" || k.text == "{"):
		t.plain = []node{p.postfix(p.primary())}
	}
	if not {
		return &notNode{t}
	}
	return t
}
