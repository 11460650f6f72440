// Small templates: what each construct gives, and what is refused how.

package template

import (
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRender(t *testing.T) {
	vars := dict("a", int64(7), "s", "é日x", "l", NewList("x", int64(2), nil), "d", dict("b", int64(1), "a", 2.5))
	for _, c := range []struct{ source, want string }{
		{"a\n{% if true %}\nb\n{% endif %}\nc\n", "a\nb\nc"},
		{"  {% if true %}x{% endif %}  {{ a }}\n  {#- c -#}  y", "x  7y"},
		{"{%+ if true %}x{% endif +%}\ny", "x\ny"},
		{"{{ s[::-1] }}|{{ s[1] }}|{{ s[-2:] }}|{{ l[1:] }}|{{ l[5] }}", "x日é|日|日x|[2, None]|"},
		{"{{ d }}{{ d|tojson }}{{ d.items()|list }}", `{'b': 1, 'a': 2.5}{"b": 1, "a": 2.5}[('b', 1), ('a', 2.5)]`},
		{"{% for k, v in d.items() %}{{ loop.index }}{{ k }}{{ v }}{% endfor %}", "1b12a2.5"},
		{"{% set x = 1 %}{% for i in l %}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}", "2221"},
		{"{% for i in l %}{{ x is defined }}{% set x = i %}{% for j in [x, 1] %}{{ y is defined }}{% set y = j %}{% endfor %}{% endfor %}", strings.Repeat("False", 9)},
		{"{% for i in range(3) %}{% macro m() %}{{ i }}{% endmacro %}{% for j in [1, 2] %}{{ m() }}{% endfor %}{% endfor %}", "001122"},
		{"{% for i in l %}{% set y %}a{% if loop.index == 2 %}{% break %}{% endif %}b{% endset %}{{ y }}{% endfor %}{{ y }}", "ab"},
		{"{% for i in l %}{% filter upper %}a{% if loop.index == 2 %}{% continue %}{% endif %}b{% endfilter %}{% endfor %}", "ABAB"},
		{"{% for i in l %}{% continue %}{% else %}none whole{% endfor %}|{% for i in l %}{% if loop.index == 2 %}{% break %}{% endif %}{% else %}x{% endfor %}", "none whole|"},
		{"{% for i in l %}{{ i }}{% for j in [] %}{% else %}e{% break %}{% endfor %}{% else %}o{% endfor %}", "xeo"},
		{"{{ a|round }}{{ true|round }}{{ 2.5|round }}{{ a|round(1, 'floor') }}{{ 'x\ny'|indent(1) }}", "712.07.0x\n y"},
		{"{% macro m(a, b='y') %}{{ a }}{{ b }}{{ caller is defined }}{% endmacro %}{{ m(1) }}{{ m(b=2, a=3) }}", "1yFalse32False"},
		{"{{ '%s/%d' % (s, a) }}{{ a // 2 }}{{ -a % 4 }}{{ a / 2 }}{{ 2 ** 3 }}", "é日x/7313.58"},
		{"{{ 1 < 2 < 3 }}{{ not a }}{{ a and '' or 'z' }}{{ 'x' in l }}{{ 3 not in l }}", "TrueFalsezTrueTrue"},
		{"{{ nothing }}{{ nothing is defined }}{{ nothing|default('d') }}{{ none }}", "FalsedNone"},
		{`{{ {"q": "<\"é\n\u007f>"}|tojson }}{{ [1,[],{}]|tojson(indent=1) }}`, "{\"q\": \"<\\\"é\\n\u007f>\"}[\n 1,\n [],\n {}\n]"},
		{"{{ range(0, 10, 3) }}{{ range(0, 9, 3) }}{{ range(5, 0, -2) }}{{ range(4, 0, -2) }}{{ range(2, 1) }}{{ range(0, -1, -1) }}", "[0, 3, 6, 9][0, 3, 6][5, 3, 1][4, 2][][0]"},
		{"{{ 1e16 }} {{ 1e15 }} {{ 0.0001 }} {{ 0.00001 }} {{ 1.0 }}", "1e+16 1000000000000000.0 0.0001 1e-05 1.0"},
		{"{{ 'a,b,,c'.split(',') }}{{ ' a  b '.split() }}{{ 'abcabc'.replace('b', 'x', 1) }}", "['a', 'b', '', 'c']['a', 'b']axcabc"},
	} {
		tmpl, err := Compile(c.source)
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		got, err := tmpl.Render([]byte("> "), vars)
		if err != nil || string(got) != "> "+c.want {
			t.Errorf("%s:\n got %q %v\nwant %q", c.source, got, err, "> "+c.want)
		}
	}
}

// doubled is a list in a list, so often that it stands for more items than a program can go through.
const doubled = "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}"

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		source string
		kind   error
		says   string
	}{
		{"{% if %}", ErrSyntax, "line 1"},
		{"x\n{% for a b %}", ErrSyntax, "line 2"},
		{"{{ 'open", ErrSyntax, "a string without end"},
		{"{{ (1] }}", ErrSyntax, `unexpected "]"`},
		{"{% if a %}", ErrSyntax, "no elif"},
		{"{% include 'x' %}", ErrUnsupported, "the tag include"},
		{"{{ 1|nosuch }}", ErrUnsupported, "the filter"},
		{"{{ " + strings.Repeat("(", 300) + "1" + strings.Repeat(")", 300) + " }}", ErrLimit, "nested"},
		{"{{ raise_exception('no ' ~ 1) }}", ErrRaised, "no 1"},
		{"{{ nothing.a }}", ErrRender, "nothing is undefined"},
		{"{{ 'a' + 1 }}", ErrRender, "str + int"},
		{"{{ none[1:] }}", ErrRender, "a slice of None"},
		{"{{ {}.items()[1:] }}", ErrRender, "a slice of"},
		{"{{ nothing|int(7) }}", ErrRender, "nothing is undefined"},
		{"{{ nothing|float }}", ErrRender, "nothing is undefined"},
		{"{{ 1|indent }}", ErrRender, "indent of int"},
		{"{{ 1 % 0 }}", ErrRender, "division by zero"},
		{"{{ 'x'.encode() }}", ErrUnsupported, "the method encode"},
		{"{{ 9223372036854775807 + 1 }}", ErrUnsupported, "large numbers"},
		{"{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", ErrLimit, "more than"},
		{"{% set ns = namespace(s='xxxxxxxxxxxxxxxx') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}", ErrLimit, "more than"},
		{"{{ 'x' * 999999999 }}", ErrLimit, "more than"},
		{"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", ErrLimit, "macros"},
		{"{% set ns = namespace() %}{% for i in [1, 2] %}{% macro m() %}{{ i }}{% endmacro %}{% set ns.m = m %}{% endfor %}{{ ns.m() }}", ErrUnsupported, "an earlier round"},
		{"{% set ns = namespace() %}{% for i in [1, 2] %}{% if loop.first %}{% macro m() %}{{ i }}{% endmacro %}{% set ns.m = m %}{% else %}{{ ns.m() }}{% endif %}{% endfor %}", ErrUnsupported, "an earlier round"},
		{"{{ ['a'] * 99999999 }}", ErrLimit, "more than"},
		{"{{ range(1000000) }}", ErrRender, "range"},
		{doubled + "{{ ns.l }}", ErrLimit, "more than"},
		{doubled + "{{ ns.l == [ns.l] or ns.l in ns.l or [ns.l] < [ns.l] }}", ErrLimit, "more than"},
	} {
		tmpl, err := Compile(c.source)
		if err == nil {
			_, err = tmpl.Render(nil, NewDict(0))
		}
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.100s: %v, want %v with %q", c.source, err, c.kind, c.says)
		}
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		in, out string
		err     error
	}{
		{`{"b":1,"a":[true,null,"\u00e9\ud83d\ude00\n"],"b":2.50}`, `{"b": 2.5, "a": [true, null, "é😀\n"]}`, nil},
		{`[1e5, -0, 123456789012345678901234567890, "\/"]`, `[100000.0, 0, 123456789012345678901234567890, "/"]`, nil},
		{`"a` + "\x01" + `"`, "", ErrJSON},
		{`"` + strings.Repeat("x", 20) + "\x1f" + `"`, "", ErrJSON},
		{`{"a":1,}`, "", ErrJSON},
		{`[01]`, "", ErrJSON},
		{`"\ud800"`, "", ErrUnsupported},
		{`NaN`, "", ErrUnsupported},
		{"\"\xff\"", "", ErrJSON},
		{strings.Repeat("[", 200) + strings.Repeat("]", 200), "", ErrUnsupported},
		{`"\`, "", ErrJSON},
		{``, "", ErrJSON},
	} {
		v, err := Parse([]byte(c.in))
		if !errors.Is(err, c.err) {
			t.Errorf("%.60s: %v", c.in, err)
			continue
		}
		if err == nil {
			if out, err := AppendJSON(nil, v); string(out) != c.out || err != nil {
				t.Errorf("%s:\n got %s %v\nwant %s", c.in, out, err, c.out)
			}
		}
	}
}

// FuzzText: a text in JSON, twice and behind others, is what encoding/json reads, or an error for both.
// That one takes what is no UTF-8, and halves of characters.
func FuzzText(f *testing.F) {
	for _, s := range []string{`plain`, `line\nline \"quoted\" \\`, `\u00e9\ud83d\ude00`, "é日 \\n wide", `\ud83d`, "\xff", `\x`, `1234567\t1234567\t12345678"`, `\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		data := []byte(`["\n` + s + `","` + s + `",1]`)
		var want []any
		broken := json.Unmarshal(data, &want)
		v, err := Parse(data)
		if err != nil {
			if broken == nil && utf8.Valid(data) && !errors.Is(err, ErrUnsupported) {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		if broken != nil {
			t.Fatalf("%q: no error, want %v", s, broken)
		}
		got := v.(*List).Items
		if len(got) != len(want) {
			t.Fatalf("%q: %d values, want %d", s, len(got), len(want))
		}
		for i := range got {
			if text, ok := got[i].(string); ok && text != want[i] {
				t.Errorf("%q: %q, want %q", s, text, want[i])
			}
		}
	})
}

// FuzzTemplate: any template over any variables ends, with a text or an error.
func FuzzTemplate(f *testing.F) {
	f.Add("{% for m in messages %}{{ m.role|upper }}{{ m.content[::-1] | indent }}{% endfor %}", `{"messages":[{"role":"user","content":"x"}]}`)
	f.Add("{% macro a(b, c=1) %}{{ b % c }}{% endmacro %}{{ a(1, 0) }}{{ '%s' % x }}", `{"x":[1,2.5]}`)
	f.Add("{{- x|tojson(indent=2) -}}{%- raw %} {{ {% endraw -%}{# c #}", `{"x":{"a":null}}`)
	f.Fuzz(func(t *testing.T, source, vars string) {
		c, err := Compile(source)
		if err != nil {
			return
		}
		c.Parts()
		v, err := Parse([]byte(vars))
		if err != nil {
			return
		}
		d, _ := v.(*Dict)
		text, err := c.Render(nil, d)
		if err != nil && strings.Contains(err.Error(), "BUG") {
			t.Fatalf("%q over %q: %v", source, vars, err)
		}
		if len(text) > maxMade {
			t.Fatal(len(text), "bytes")
		}
	})
}

// What a short text becomes is bounded.
func TestParseIsBounded(t *testing.T) {
	for _, c := range []struct {
		one  string
		n    int
		good bool
	}{
		{"{}", maxHolders - 1, true}, {"{}", maxHolders, false}, {"[]", maxHolders, false}, {`{"a":{}}`, maxHolders / 2, false},
		{"1", maxValues - 1, true}, {"1", maxValues, false}, {`""`, maxValues, false},
	} {
		text := []byte("[" + strings.Repeat(c.one+",", c.n-1) + c.one + "]")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Parse(text)
		runtime.ReadMemStats(&after)
		if good := err == nil; good != c.good || !good && !errors.Is(err, ErrUnsupported) {
			t.Errorf("%d of %s: %v", c.n, c.one, err)
		}
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 160 {
			t.Errorf("%d of %s: %d MB", c.n, c.one, used)
		}
	}
}
