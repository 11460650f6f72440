// Bombs: each operation on large values, again and again. What it counts must be what it costs.

package template

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// bombs are expressions, by what they attack. Their values are those of bombValues.
var bombs = map[string][]string{
	"tests": {
		"s == t", "s != t", "s < t", "s >= t", "'b' in s", "ab in s", "w in s", "s in [1, t]", "-1 in l", "n == o", "n < o", "n in [o]", "e == g",
		"s is eq(t)", "s is lt(t)", "s is in(t)", "s is lower", "u is upper", "f is divisibleby(0.1)", "f is odd", "s is filter", "s is test", "big == big2",
		"l is sequence", "s is sameas(none) or true",
	},
	"filters": {
		"s|upper", "u|upper", "u|lower", "s|title", "s|capitalize", "u|length", "s|count", "s|list", "u|list", "s|first", "u|last", "s|reverse", "u|reverse",
		"l|sort", "m|sort", "m|sort(case_sensitive=true)", "l|unique|list", "m|unique|list", "m|max", "m|min(case_sensitive=true)", "m|join", "l|join(x)", "m|join(x)",
		"l|sum", "p|sum(start=[])", "l|map('string')|list", "m|map('upper')|list", "k|map(attribute=x)|list", "l|select('odd')|list", "m|reject('in', s)|list",
		"k|selectattr('a')|list", "k|rejectattr(x)|list", "s|replace('a', 'b')", "s|replace('', 'b')", "s|replace(ab, '')", "s|indent(1000)", "y|indent(1000)", "y|indent('é'*10000)",
		"s|trim", "w|trim", "s|trim(x)", "s|trim('a' ~ x)", "s|string", "l|string", "q|string", "n|string", "s|tojson", "q|tojson(ensure_ascii=true)", "u|tojson(ensure_ascii=true)",
		"n|tojson", "d|tojson", "e|tojson(sort_keys=true)", "l|tojson(indent=1000)", "l|tojson(separators=[s, s])", "v|e", "v|escape", "s|safe", "z|int", "z|float", "digits|int", "digits|float",
		"big|string", "f|round(15)", "f|round(2)", "f|abs", "e|dictsort", "d|dictsort", "e|items|list", "s|default('')", "{}|attr(s) if false else s|attr(s)",
		"f|string", "[s]|string", "[q]|string", "s|map(s)", "l|batch(1) if false else l|list",
	},
	"methods": {
		"s.strip()", "w.strip()", "w.lstrip()", "w.rstrip()", "s.strip(s)", "u.strip(u)", "s.strip('a' ~ x)", "s.rstrip('a')", "s.split('a')", "s.split(ab)", "w.split()", "y.split()", "s.rsplit('a', 100000)", "s.split(x)",
		"y.splitlines()", "s.splitlines()", "s.startswith(t)", "s.endswith(t)", "s.startswith((t, t, t))", "s.find(ab)", "s.rfind(ab)", "s.find(w)", "s.count('a')", "s.count('aa')", "s.count(ab)",
		"s.replace('aa', 'b')", "s.upper()", "u.lower()", "s.title()", "u.capitalize()", "s.join(m)", "''.join(m)", "s.removeprefix(t)", "s.removesuffix(t)", "w.isspace()",
		"s.isalpha()", "digits.isdigit()", "s.islower()", "l.index(-1) if false else l.count(-1)", "m.count(s)", "p.count(p)", "l.copy()", "d.copy()", "e.copy()", "e.items()", "e.keys()", "e.values()", "d.get(-1)", "d.get(s)", "e.get(s)",
	},
	"operators": {
		"s + t", "s ~ t", "s ~ l", "l + l", "s * 50", "'a' * 1000000", "'' * 9000000000000000000", "[] * 8000000", "[1] * 100000", "s[1:]", "u[::-1]", "s[::2]", "u[500000]", "u[-1]", "s[0]", "u[100:200]", "l[::-1]", "l[1:]",
		"{s: 1}", "{s: 1, t: 2}", "d[-1]", "d[s]", "e[s]", "[l, l, l]", "f % 1e-300", "f ** 1.5", "3 ** 30", "7 // 2", "'%s' % s", "y % ()", "'%s%s%s' % (s, t, l)", "f + f", "-f",
	},
	"functions": {
		"range(99999)", "namespace(a=s)", "dict(e)", "dict(d)", "dict(a=1)", "strftime_now(days)", "strftime_now(s)", "range(*l[:3])",
	},
}

// bombValues are large, but not made by the template.
func bombValues() *Dict {
	const size = 1 << 18
	doubled := func() any {
		var v any = NewList(int64(1))
		for range 60 {
			v = NewList(v, v)
		}
		return v
	}
	numbers, texts, pairs, lists := NewList(), NewList(), NewList(), NewList()
	ints, named := NewDict(0), NewDict(0)
	for i := range 5000 {
		numbers.Items = append(numbers.Items, int64(i*7919%5000))
		texts.Items = append(texts.Items, strings.Repeat("a", 1000)+fmt.Sprint(i*7919%5000))
		pairs.Items = append(pairs.Items, dict("a", int64(i)))
		lists.Items = append(lists.Items, NewList(int64(i)))
		ints.put(int64(i), int64(i))
		named.Set(fmt.Sprint("key", i), int64(i))
	}
	return dict("s", strings.Repeat("a", size), "t", strings.Repeat("a", size), "u", strings.Repeat("é", size/2), "w", strings.Repeat(" ", size),
		"y", strings.Repeat("b\n", size/2), "q", strings.Repeat("\x01", size), "v", strings.Repeat("&", size), "z", strings.Repeat("9", size),
		"digits", strings.Repeat("9", 4000)+"."+strings.Repeat("9", size), "x", strings.Repeat("b.", size/2), "ab", strings.Repeat("a", size/2)+"b", "days", strings.Repeat("%A", size/2),
		"l", numbers, "m", texts, "k", pairs, "p", lists, "d", ints, "e", named, "g", named.Clone(), "n", doubled(), "o", doubled(), "f", 1e308,
		"big", BigInt(strings.Repeat("9", 4300)), "big2", BigInt(strings.Repeat("9", 4300)))
}

// The steps of a rendering: enough that each bomb goes off many times, and a bound that a machine under
// load and a race detector keep. By itself a step takes 1 to 30 ns.
const (
	bombSteps    = 1 << 18
	bombsPerStep = 5 * time.Microsecond
)

// render has no time here: what is asked is whether the steps alone bound it.
func renderBomb(t *Template, vars *Dict) (took time.Duration, made uint64, err error) {
	b := budget{left: bombSteps, room: maxMade}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	_, err = t.render(nil, vars, b)
	took = time.Since(start)
	runtime.ReadMemStats(&after)
	return took, after.TotalAlloc - before.TotalAlloc, err
}

func TestBombs(t *testing.T) {
	vars := bombValues()
	for kind, all := range bombs {
		for _, op := range all {
			source := "{% for a in range(999) %}{% for b in range(999) %}{% set bang = " + op + " %}{% endfor %}{% endfor %}"
			if strings.HasPrefix(op, "s|attr") {
				source = "{{ s|attr(s) }}"
			}
			tmpl, err := Compile(source)
			if errors.Is(err, ErrUnsupported) {
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", op, err)
				continue
			}
			var took time.Duration
			var made uint64
			for range 3 {
				var again time.Duration
				again, made, err = renderBomb(tmpl, vars)
				if took == 0 || again < took {
					took = again
				}
				if took < bombSteps*bombsPerStep {
					break
				}
			}
			t.Logf("%-10s %-40s %8v a step %4d ns %5d MiB %v", kind, op, took.Round(time.Microsecond), took.Nanoseconds()/bombSteps, made>>20, err)
			if took > bombSteps*bombsPerStep {
				t.Errorf("%s took %v for %d steps", op, took, bombSteps)
			}
			if made > 8*maxMade { // what grows is copied a few times
				t.Errorf("%s made %d MiB", op, made>>20)
			}
		}
	}
}

// TestEachOperationHasABomb sees to it that whatever is added gets its cost.
func TestEachOperationHasABomb(t *testing.T) {
	var all strings.Builder
	for _, ops := range bombs {
		all.WriteString(strings.Join(ops, "\n") + "\n")
	}
	bombed := all.String()
	cheap := strings.Fields("d default abs attr defined undefined none boolean true false string escaped float integer number mapping callable iterable " +
		"sequence even equalto == ne != greaterthan lessthan < le <= gt > ge >= raise_exception test sameas")
	check := func(what, name, form string) {
		if !strings.Contains(bombed, form) && !slices.Contains(cheap, name) {
			t.Errorf("no bomb for the %s %s", what, name)
		}
	}
	for name := range filters {
		check("filter", name, "|"+name)
	}
	for name := range tests {
		check("test", name, "is "+name)
	}
	for name := range globals {
		check("function", name, name+"(")
	}
	for name := range strings.FieldsSeq("strip lstrip rstrip split rsplit splitlines startswith endswith replace upper lower title capitalize find rfind count join " +
		"isdigit isalpha isspace islower removeprefix removesuffix get items keys values copy") {
		check("method", name, "."+name+"(")
	}
}

// TestBombsEnd renders what went on for minutes, with the budget of every day.
func TestBombsEnd(t *testing.T) {
	vars := bombValues()
	for _, op := range []string{"s == t", "s < t", "'' * 9000000000000000000", "n == o", "s.strip(ab)", "{s: 1}", "m|sort"} {
		tmpl, err := Compile("{% for a in range(99999) %}{% for b in range(99999) %}{% set bang = " + op + " %}{% endfor %}{% endfor %}")
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := tmpl.Render(nil, vars); !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v", op, err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s took %v", op, took)
		}
	}
}

// TestLoadBombs compiles sources of a megabyte in which parts are many, long or deep.
func TestLoadBombs(t *testing.T) {
	many := func(s string) string { return strings.Repeat(s, maxSource/len(s)-40) }
	var chain, loops strings.Builder
	for i := 40000; i > 0; i-- {
		fmt.Fprintf(&chain, "{%% set a%d=a%d %%}", i, i-1)
	}
	for i := range 12000 {
		fmt.Fprintf(&loops, "{%% for b%d in content %%}{{ f(c) }}{%% endfor %%}", i)
	}
	for name, source := range map[string]string{
		"texts in a row":   "{{ " + many("'a'") + " }}",
		"dots in a filter": "{{ 'a'|b" + many(".b") + " }}",
		"attributes":       "{{ a" + many(".b") + " }}",
		"filters":          "{{ a" + many("|upper") + " }}",
		"minus":            "{{ 1" + many("-1") + " }}",
		"signs":            "{{ " + many("-") + "1 }}",
		"sum":              "{{ 1" + many("+1") + " }}",
		"powers":           "{{ 2" + many("**2") + " }}",
		"or":               "{{ 1" + many(" or 1") + " }}",
		"if":               "{{ 1" + many(" if 1") + " }}",
		"brackets":         "{{ " + many("(") + " }}",
		"blocks":           many("{% if 1 %}"),
		"raw":              "{% raw %}" + many("{% "),
		"blanks":           "{{ " + many(" ") + " }}",
		"comments":         many("{##}"),
		"chain of names":   "{% for m in messages %}{% endfor %}" + chain.String() + "{% set a0=messages %}{% for x in a30000 %}{{ x }}{% endfor %}",
		"loops and calls":  "{% macro f(content) %}" + loops.String() + "{% endmacro %}",
	} {
		start := time.Now()
		tmpl, err := Compile(source)
		if err == nil {
			tmpl.Parts()
			_, err = tmpl.Render(nil, dict("a", "x", "messages", NewList()))
		}
		took := time.Since(start)
		t.Logf("%-16s %8v %.80v", name, took.Round(time.Millisecond), err)
		if took > 10*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
}

// FuzzCost renders whatever compiles: it must end soon, with no more memory than it may have.
func FuzzCost(f *testing.F) {
	for _, ops := range bombs {
		for _, op := range ops {
			f.Add("{% for a in range(999) %}{% set bang = " + op + " %}{% endfor %}")
		}
	}
	vars := bombValues()
	f.Fuzz(func(t *testing.T, source string) {
		tmpl, err := Compile(source)
		if err != nil {
			return
		}
		tmpl.Parts()
		took, made, err := renderBomb(tmpl, vars)
		if err != nil && strings.Contains(err.Error(), "BUG") {
			t.Error(err)
		}
		if took > 2*bombSteps*bombsPerStep || made > 16*maxMade {
			t.Errorf("%v and %d MiB for %d steps", took, made>>20, bombSteps)
		}
	})
}
