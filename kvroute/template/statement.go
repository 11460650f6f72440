// Statements: what a rendering runs.

package template

// jump is how a statement ends.
type jump uint8

const (
	jumpNone jump = iota
	jumpBreak
	jumpContinue
)

type statement interface{ run(r *render) jump }

// render is one rendering.
type render struct {
	template *Template
	budget   budget // what it may still do
	out      []byte
	scope    *scope
	calls    int // macros in each other
	line     int // last seen
	filters  map[string]filter
	tests    map[string]test
}

func (r *render) write(s string) {
	r.budget.built(len(s))
	r.out = append(r.out, s...)
}

func (r *render) run(body []statement) jump {
	for _, s := range body {
		r.budget.step(1)
		if j := s.run(r); j != jumpNone {
			return j
		}
	}
	return jumpNone
}

// capture runs a body in a scope of its own and returns what it writes; where it ends by a jump that is lost.
func (r *render) capture(body []statement, s *scope) (string, jump) {
	outer, out := r.scope, r.out
	r.scope, r.out = s, nil
	j := r.run(body)
	r.budget.built(len(r.out))
	text := string(r.out)
	r.scope, r.out = outer, out
	return text, j
}

// scope holds variables by number. The outermost has a place for each, the others few.
type scope struct {
	parent *scope
	ids    []int
	vals   []any
	rounds int // of a loop, that it has been the scope of
}

// unset stands where the outermost scope has no value.
type unset struct{}

func newScope(parent *scope, n int) *scope {
	s := &scope{parent: parent}
	if n > 0 {
		s.vals = make([]any, n)
		for i := range s.vals {
			s.vals[i] = unset{}
		}
	}
	return s
}

func (s *scope) set(id int, v any) {
	if s.parent == nil {
		s.vals[id] = v
		return
	}
	for i, known := range s.ids {
		if known == id {
			s.vals[i] = v
			return
		}
	}
	s.ids, s.vals = append(s.ids, id), append(s.vals, v)
}

// get also says how many variables and scopes it has seen on the way.
func (s *scope) get(id int) (v any, seen int, ok bool) {
	for ; s.parent != nil; s = s.parent {
		seen += 1 + len(s.ids)
		for i, known := range s.ids {
			if known == id {
				return s.vals[i], seen, true
			}
		}
	}
	v = s.vals[id]
	if _, no := v.(unset); no {
		return nil, seen, false
	}
	return v, seen, true
}

// again empties the scope of a loop for its next round.
func (s *scope) again() {
	clear(s.vals)
	s.ids, s.vals = s.ids[:0], s.vals[:0]
	s.rounds++
}

// age is another one once the scope, or one around it, is that of another round.
func ageOf(cost *budget, s *scope) int {
	n, depth := 0, 0
	for ; s != nil; s = s.parent {
		n += s.rounds
		depth++
	}
	cost.step(depth >> 2)
	return n
}

type textStatement struct{ text string }

func (s *textStatement) run(r *render) jump {
	r.write(s.text)
	return jumpNone
}

type outputStatement struct {
	value node
	line  int
}

// run writes sums of texts part by part: a message of 100 KB is not copied for each + around it.
func (s *outputStatement) run(r *render) jump {
	r.line = s.line
	var items []node
	sum := false
	switch v := s.value.(type) {
	case *sumNode:
		items, sum = v.items, true
	case *concatNode:
		items = v.items
	default:
		r.writeValue(s.value.eval(r))
		return jumpNone
	}
	var few [8]any
	vals := r.all(few[:0], items)
	switch {
	case size(vals) >= 0:
		for _, v := range vals {
			r.write(v.(string))
		}
	case sum:
		r.writeValue(summed(&r.budget, vals))
	default:
		r.writeValue(concat(&r.budget, vals))
	}
	return jumpNone
}

func (r *render) writeValue(v any) {
	switch v := v.(type) {
	case string:
		r.write(v)
	case undefined:
	default:
		r.write(shownText(&r.budget, v))
	}
}

type ifStatement struct {
	tests     []node
	bodies    [][]statement
	otherwise []statement
	line      int
}

func (s *ifStatement) run(r *render) jump {
	r.line = s.line
	for i, test := range s.tests {
		if truth(test.eval(r)) {
			return r.run(s.bodies[i])
		}
	}
	return r.run(s.otherwise)
}

// target is what is assigned to.
type target struct {
	id        int
	attribute string // of the namespace id
	several   []target
}

func (r *render) assign(t *target, v any) {
	switch {
	case t.several != nil:
		items := each(&r.budget, v)
		if len(items) != len(t.several) {
			fail(ErrRender, "%d values for %d names", len(items), len(t.several))
		}
		for i := range items {
			r.assign(&t.several[i], items[i])
		}
	case t.attribute != "":
		at, _ := r.get(t.id)
		ns, ok := at.(*namespace)
		if !ok {
			fail(ErrRender, "cannot assign attribute on non-namespace object")
		}
		put(&r.budget, ns.attributes, t.attribute, v)
	default:
		r.set(t.id, v)
	}
}

// get is the value of a variable; it costs a look at each variable that was set since the outermost scope.
func (r *render) get(id int) (any, bool) {
	v, seen, ok := r.scope.get(id)
	r.budget.step(seen >> 3)
	return v, ok
}

func (r *render) set(id int, v any) {
	r.budget.step(len(r.scope.ids) >> 3)
	r.scope.set(id, v)
}

type setStatement struct {
	target target
	value  node
	line   int
}

func (s *setStatement) run(r *render) jump {
	r.line = s.line
	r.assign(&s.target, s.value.eval(r))
	return jumpNone
}

type setBlockStatement struct {
	target  target
	filters node
	body    []statement
	line    int
}

func (s *setBlockStatement) run(r *render) jump {
	r.line = s.line
	text, j := r.capture(s.body, newScope(r.scope, 0))
	if j != jumpNone {
		return j
	}
	var v any = text
	if s.filters != nil {
		v = r.filterChain(s.filters, v)
	}
	r.assign(&s.target, v)
	return jumpNone
}

type filterStatement struct {
	filters node
	body    []statement
	line    int
}

func (s *filterStatement) run(r *render) jump {
	r.line = s.line
	text, j := r.capture(s.body, newScope(r.scope, 0))
	if j == jumpNone {
		r.writeValue(r.filterChain(s.filters, text))
	}
	return j
}

type scopeStatement struct{ body []statement }

func (s *scopeStatement) run(r *render) jump {
	outer := r.scope
	r.scope = newScope(outer, 0)
	r.run(s.body)
	r.scope = outer
	return jumpNone
}

type withStatement struct {
	targets []target
	values  []node
	body    []statement
}

func (s *withStatement) run(r *render) jump {
	outer, inner := r.scope, newScope(r.scope, 0)
	for i, v := range s.values {
		value := v.eval(r)
		r.scope = inner
		r.assign(&s.targets[i], value)
		r.scope = outer
	}
	r.scope = inner
	j := r.run(s.body)
	r.scope = outer
	return j
}

type jumpStatement struct{ to jump }

func (s *jumpStatement) run(*render) jump { return s.to }

type forStatement struct {
	target          target
	items           node
	test            node
	body, otherwise []statement
	loopID          int
	line            int
}

// loop is the variable of that name.
type loop struct {
	items []any
	index int // from 0
}

func (s *forStatement) run(r *render) jump {
	r.line = s.line
	items := each(&r.budget, s.items.eval(r))
	outer := r.scope
	if s.test != nil {
		items = s.filter(r, items)
	}
	l := &loop{items: items}
	inner := newScope(outer, 0)
	whole := false // a round came to its end: jinja2 asks that, not whether there was an item
	for i, v := range items {
		r.budget.step(1)
		l.index = i
		inner.again()
		r.scope = inner
		r.set(s.loopID, l)
		r.assign(&s.target, v)
		j := r.run(s.body)
		if j == jumpBreak {
			break
		}
		whole = whole || j == jumpNone
	}
	inner.again()
	r.scope = outer
	if !whole {
		r.scope = newScope(outer, 0)
		j := r.run(s.otherwise)
		r.scope = outer
		return j
	}
	return jumpNone
}

// filter keeps the items that the loop's `if` wants.
func (s *forStatement) filter(r *render, items []any) []any {
	outer := r.scope
	r.budget.made(len(items) * sizeItem)
	kept := make([]any, 0, len(items))
	inner := newScope(outer, 0)
	for _, v := range items {
		r.budget.step(1)
		inner.again()
		r.scope = inner
		r.assign(&s.target, v)
		if truth(s.test.eval(r)) {
			kept = append(kept, v)
		}
	}
	r.scope = outer
	return kept
}

// macroCode is the code of a macro, or of a call's body.
type macroCode struct {
	name       string
	parameters []int
	defaults   []node // of the last parameters
	body       []statement
	caller     int
}

// macro is its code with the scope in which it stands.
type macro struct {
	*macroCode
	scope *scope
	age   int // of the scope
	names []string
}

func (r *render) macro(code *macroCode) *macro {
	return &macro{code, r.scope, ageOf(&r.budget, r.scope), r.template.names}
}

type macroStatement struct {
	macroCode
	id   int
	line int
}

func (s *macroStatement) run(r *render) jump {
	r.set(s.id, r.macro(&s.macroCode))
	return jumpNone
}

type callStatement struct {
	macroCode
	call *callNode
	line int
}

func (s *callStatement) run(r *render) jump {
	r.line = s.line
	callee := s.call.callee.eval(r)
	m, ok := callee.(*macro)
	if !ok {
		fail(ErrUnsupported, "a call block of %s", typeName(callee))
	}
	a := r.evaluate(&s.call.arguments)
	a.caller = r.macro(&s.macroCode)
	r.writeValue(m.call(r, a))
	return jumpNone
}

// call renders the macro.
func (m *macro) call(r *render, a args) any {
	if r.calls++; r.calls > maxCalls {
		fail(ErrLimit, "more than %d macros in each other", maxCalls)
	}
	if ageOf(&r.budget, m.scope) != m.age {
		fail(ErrUnsupported, "the macro %s of an earlier round of a loop", m.name) // Python's sees what the names are by now
	}
	s := newScope(m.scope, 0)
	if len(a.plain) > len(m.parameters) {
		fail(ErrRender, "macro %s takes not more than %d arguments", m.name, len(m.parameters))
	}
	r.budget.step(len(m.parameters) * (1 + len(a.names)))
	used := 0
	outer := r.scope
	for i, id := range m.parameters {
		r.scope = s
		v, ok := a.named(m.names[id])
		switch first := len(m.parameters) - len(m.defaults); {
		case ok:
			if used++; i < len(a.plain) {
				fail(ErrRender, "macro %s got two values for %s", m.name, m.names[id])
			}
		case i < len(a.plain):
			v = a.plain[i]
		case i >= first:
			v = m.defaults[i-first].eval(r)
		default:
			v = undefined{"parameter " + m.names[id] + " was not provided"}
		}
		r.set(id, v)
	}
	if used < len(a.names) {
		fail(ErrRender, "macro %s takes no such argument", m.name)
	}
	if a.caller != nil {
		s.set(m.caller, a.caller)
	}
	r.scope = outer
	text, _ := r.capture(m.body, s)
	r.calls--
	return text
}
