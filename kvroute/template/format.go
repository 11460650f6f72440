// How a template takes the content of messages: as text, or in parts.

package template

// Parts tells whether vLLM gives this template the content of messages as a list of parts
// ({"type": "text", "text": ...}) rather than as text: where it finds a loop over a message's content
// (vllm/renderers/hf.py, _detect_content_format). ok is false where vLLM's search would fail, and its
// answer would be text for another reason.
func (t *Template) Parts() (parts, ok bool) {
	var err error
	var line int
	defer func() {
		if err != nil {
			parts, ok = false, false
		}
	}()
	defer caught(&err, &line)
	f := &formatFinder{t: t, left: maxLooks}
	f.all(t.body, nil)
	messages := f.derived("messages")
	items := map[int]bool{}
	for _, l := range f.loops {
		for v := range messages {
			if !f.isElements(l.items, v, "") {
				continue
			}
			if l.target.several != nil {
				return false, false
			}
			items[l.target.id] = true
			break
		}
	}
	for _, l := range f.loops {
		if f.overContent(l, items) {
			return true, l.target.several == nil && !f.several
		}
	}
	return false, !f.several
}

// maxLooks bounds the search: it asks of each assignment, loop and call whether it is of each variable,
// again and again. A template of today takes a few thousand.
const maxLooks = 1 << 20

// formatFinder collects what the search looks at.
type formatFinder struct {
	t       *Template
	loops   []*forStatement
	sets    []*setStatement
	calls   []*callNode
	within  map[*forStatement][]*macroStatement
	several bool // an element of messages is assigned to something else than a name
	left    int  // looks
}

// derived are the names that a variable, or elements or filtered forms of it, are assigned to.
func (f *formatFinder) derived(name string) map[int]bool {
	known := map[int]bool{}
	for id, n := range f.t.names {
		if n == name {
			known[id] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for _, s := range f.sets {
			for id := range known {
				if !f.isElements(s.value, id, "") {
					continue
				}
				if s.target.several != nil || s.target.attribute != "" {
					f.several = true
				} else if !known[s.target.id] {
					known[s.target.id], grown = true, true
				}
				break
			}
		}
	}
	return known
}

// overContent tells whether a loop goes over the content of a message.
func (f *formatFinder) overContent(l *forStatement, items map[int]bool) bool {
	for id := range items {
		if f.isElements(l.items, id, "content") {
			return true
		}
	}
	n, ok := l.items.(*nameNode)
	if !ok {
		return false
	}
	macros := f.within[l]
	if len(macros) == 0 {
		return n.name == "content"
	}
	// The innermost macro decides, or the last that has such a parameter.
	for _, m := range macros {
		if f.takesContent(m, n.id, items) {
			return true
		}
	}
	return false
}

// takesContent tells whether some call gives a message's content to a parameter of the macro.
func (f *formatFinder) takesContent(m *macroStatement, parameter int, items map[int]bool) bool {
	given := func(n node) bool {
		for id := range items {
			if f.isElements(n, id, "content") {
				return true
			}
		}
		return false
	}
	for _, c := range f.calls {
		f.look()
		if callee, ok := c.callee.(*nameNode); !ok || callee.id != m.id {
			continue
		}
		for i, n := range c.plain {
			f.look()
			if i < len(m.parameters) && m.parameters[i] == parameter && given(n) {
				return true
			}
		}
		for i, name := range c.names {
			f.look()
			if f.t.names[parameter] == name && given(c.named[i]) {
				return true
			}
		}
	}
	return false
}

// look counts one look.
func (f *formatFinder) look() {
	if f.left--; f.left < 0 {
		fail(ErrLimit, "more than %d looks", maxLooks)
	}
}

// isElements tells whether n is the variable id, or with a key its item of that name, through filters,
// tests and slices.
func (f *formatFinder) isElements(n node, id int, key string) bool {
	f.look()
	switch n := n.(type) {
	case *filterNode:
		return n.value != nil && f.isElements(n.value, id, key)
	case *testNode:
		return f.isElements(n.value, id, key)
	case *sliceNode:
		return f.isElements(n.object, id, key)
	case *nameNode:
		return key == "" && n.id == id
	case *attributeNode:
		return key != "" && n.name == key && isVariable(n.object, id)
	case *itemNode:
		c, ok := n.key.(*constNode)
		return key != "" && ok && c.value == key && isVariable(n.object, id)
	}
	return false
}

func isVariable(n node, id int) bool {
	v, ok := n.(*nameNode)
	return ok && v.id == id
}

// all goes through statements; in are the macros around them.
func (f *formatFinder) all(body []statement, in []*macroStatement) {
	for _, s := range body {
		switch s := s.(type) {
		case *outputStatement:
			f.node(s.value)
		case *ifStatement:
			for i, n := range s.tests {
				f.node(n)
				f.all(s.bodies[i], in)
			}
			f.all(s.otherwise, in)
		case *setStatement:
			f.sets = append(f.sets, s)
			f.node(s.value)
		case *setBlockStatement:
			f.node(s.filters)
			f.all(s.body, in)
		case *filterStatement:
			f.node(s.filters)
			f.all(s.body, in)
		case *scopeStatement:
			f.all(s.body, in)
		case *withStatement:
			for _, n := range s.values {
				f.node(n)
			}
			f.all(s.body, in)
		case *forStatement:
			f.loops = append(f.loops, s)
			if len(in) > 0 {
				if f.within == nil {
					f.within = map[*forStatement][]*macroStatement{}
				}
				f.within[s] = in
			}
			f.node(s.items)
			f.node(s.test)
			f.all(s.body, in)
			f.all(s.otherwise, in)
		case *macroStatement:
			f.all(s.body, append(in[:len(in):len(in)], s))
		case *callStatement:
			f.node(s.call)
			f.all(s.body, in)
		}
	}
}

// node collects the calls in an expression.
func (f *formatFinder) node(n node) {
	switch n := n.(type) {
	case *listNode:
		f.nodes(n.items)
	case *dictNode:
		f.nodes(n.keys)
		f.nodes(n.values)
	case *conditionNode:
		f.nodes([]node{n.yes, n.test, n.no})
	case *orNode:
		f.nodes([]node{n.a, n.b})
	case *andNode:
		f.nodes([]node{n.a, n.b})
	case *notNode:
		f.node(n.a)
	case *compareNode:
		f.node(n.first)
		f.nodes(n.rest)
	case *sumNode:
		f.nodes(n.items)
	case *concatNode:
		f.nodes(n.items)
	case *arithmeticNode:
		f.nodes([]node{n.a, n.b})
	case *negativeNode:
		f.node(n.a)
	case *positiveNode:
		f.node(n.a)
	case *filterNode:
		f.node(n.value)
		f.arguments(&n.arguments)
	case *testNode:
		f.node(n.value)
		f.arguments(&n.arguments)
	case *attributeNode:
		f.node(n.object)
	case *itemNode:
		f.nodes([]node{n.object, n.key})
	case *sliceNode:
		f.node(n.object)
		f.nodes(n.parts[:])
	case *callNode:
		f.calls = append(f.calls, n)
		f.node(n.callee)
		f.arguments(&n.arguments)
	}
}

func (f *formatFinder) nodes(all []node) {
	for _, n := range all {
		f.node(n)
	}
}

func (f *formatFinder) arguments(a *arguments) {
	f.nodes(a.plain)
	f.nodes(a.named)
	f.node(a.spread)
}
