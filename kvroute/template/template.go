// Package template renders the chat templates of models: Jinja2, with the settings, the filters and the
// values of Python that Hugging Face's transformers gives them, to the byte.
//
//	t, err := template.Compile(source)
//	text, err := t.Render(nil, vars)
//
// A template is a program from a model's directory that runs over what clients send, so a rendering is
// bounded in steps, time, depth and bytes. What is not built here is refused with ErrUnsupported when the
// template is compiled, or when it comes to the place: there is an error or the right text.
//
// The language is built anew because the one living library for it in Go cannot be bounded or stopped,
// differs from Python in what it writes (the order of keys, None, numbers, slices of text), and panics;
// operators of it cannot be replaced.
package template

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"
)

// Errors of Compile and Render wrap one of these.
var (
	// ErrSyntax: the template is no Jinja.
	ErrSyntax = errors.New("template syntax")
	// ErrUnsupported: it may be good, but needs what is not built here.
	ErrUnsupported = errors.New("not supported")
	// ErrRaised: the template itself refused, by raise_exception.
	ErrRaised = errors.New("template raised")
	// ErrRender: an operation that Python refuses, too: an attribute of nothing, text plus a number.
	ErrRender = errors.New("template failed")
	// ErrLimit: more steps, time, depth or bytes than a rendering may have.
	ErrLimit = errors.New("template limit")
)

// What a template and a rendering may cost.
const (
	maxSource = 1 << 20  // bytes of a template; the longest of today's have 30 KB
	maxSteps  = 8 << 20  // see cost.go
	maxMade   = 64 << 20 // bytes of the text, and of all that is made on the way
	maxTime   = 50 * time.Millisecond
	maxNested = 200  // expressions and statements in each other
	maxCalls  = 60   // macros that call macros
	maxReason = 1000 // bytes of an error's text, of which a template may raise any
)

// A Template is a compiled template. Immutable: many goroutines may render it at once.
type Template struct {
	source string
	body   []statement
	names  []string // the variables of the template; a name is its place
	free   []int    // those that it reads and does not always set itself

	// Now is the clock of strftime_now; nil: time.Now. Set it before the first Render.
	Now func() time.Time
}

// Failure is an error with its place in a template.
type Failure struct {
	Line   int // from 1; 0: not known
	Reason string
	kind   error
}

func (f *Failure) Error() string {
	if f.Line > 0 {
		return fmt.Sprintf("%v: line %d: %s", f.kind, f.Line, f.Reason)
	}
	return fmt.Sprintf("%v: %s", f.kind, f.Reason)
}

func (f *Failure) Unwrap() error { return f.kind }

// fail leaves the rendering or the compilation; Compile and Render catch it.
func fail(kind error, format string, args ...any) {
	panic(&Failure{Reason: fmt.Sprintf(format, args...), kind: kind})
}

// caught turns what fail threw into an error. Other panics are bugs here, or of a kind that only strange
// templates find: they are errors of this template as well, not the end of the process.
func caught(err *error, line *int) {
	switch thrown := recover().(type) {
	case nil:
	case *Failure:
		if thrown.Line == 0 {
			thrown.Line = *line
		}
		if len(thrown.Reason) > maxReason {
			thrown.Reason = strings.ToValidUTF8(thrown.Reason[:maxReason], "") + "..."
		}
		*err = thrown
	case runtime.Error:
		*err = &Failure{Line: *line, Reason: "BUG: " + thrown.Error(), kind: ErrUnsupported}
	default:
		panic(thrown)
	}
}

// Compile reads a template.
func Compile(source string) (t *Template, err error) {
	line := 1
	defer caught(&err, &line)
	if len(source) > maxSource {
		fail(ErrLimit, "more than %d bytes", maxSource)
	}
	p := &parser{tokens: lex(source), line: &line, ids: map[string]int{}}
	t = &Template{source: source}
	t.body = p.template()
	t.names = p.names
	t.free = p.undeclared()
	return t, nil
}

// Reads tells whether the template reads a variable that it may not have set itself, as jinja2's
// meta.find_undeclared_variables does.
func (t *Template) Reads(name string) bool {
	for _, id := range t.free {
		if t.names[id] == name {
			return true
		}
	}
	return false
}

// Source is what the template was compiled from.
func (t *Template) Source() string { return t.source }

// Render appends the text that the template makes of vars to dst. Values are nil, bool, int64, float64,
// BigInt, string, *List and *Dict, as Parse makes them; they are read, not changed or kept.
func (t *Template) Render(dst []byte, vars *Dict) (text []byte, err error) {
	return t.render(dst, vars, newBudget())
}

func (t *Template) render(dst []byte, vars *Dict, b budget) (text []byte, err error) {
	r := &render{template: t, out: dst, budget: b, filters: filters, tests: tests}
	text = dst
	defer caught(&err, &r.line)
	r.budget.step(4 * len(t.names))
	r.scope = newScope(nil, len(t.names))
	for i, name := range t.names {
		if v, ok := vars.Get(name); ok {
			r.scope.set(i, v)
		} else if g, ok := globals[name]; ok {
			r.scope.set(i, g)
		}
	}
	r.run(t.body)
	return r.out, nil
}
