// Which questions have the same text, and which only seem to.

package cache

import "testing"

func TestNormalise(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "",
		" \n\t ":                  "",
		"a":                       "a",
		"  a  ":                   "a",
		"a\n":                     "a",
		"a\r\n":                   "a",
		"\u00a0a\u3000":           "a",
		"\n\n  a\n":               "a",
		"a  b":                    "a  b",
		"a\n\nb":                  "a\n\nb",
		"a\r\nb":                  "a\r\nb",
		"    if x:\n  y\n":        "    if x:\n  y",
		"\n\n    if x:\n  y\n\n":  "    if x:\n  y",
		"if x:\n    y":            "if x:\n    y",
		"na\u00efve":              "na\u00efve",
		"nai\u0308ve":             "nai\u0308ve",
		"\xff a \xff":             "\xff a \xff",
		"\x00 ":                   "\x00",
		"\u200ba":                 "\u200ba", // not white space
		"\ufeffa":                 "\ufeffa",
		"\"a \"":                  "\"a \"",
		"```\n  x\n```\n":         "```\n  x\n```",
		"What is A?\n\n  \n":      "What is A?",
		"\t\ta := 1\n\t\tb := 2 ": "\t\ta := 1\n\t\tb := 2",
	} {
		if got := string(normalise([]byte(in))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
		if again := string(normalise([]byte(want))); again != want {
			t.Errorf("%q: normalised again %q", want, again)
		}
	}
}

func TestIDsAndScopesReadWhatTheyWrite(t *testing.T) {
	for range 100 {
		id := NewID()
		if got, err := ParseID(id.String()); err != nil || got != id || len(id.String()) != 16 {
			t.Errorf("%v: %v, %v", id, got, err)
		}
	}
	scope := Scope{1, 2, 0xff}
	if got, err := ParseScope(scope.String()); err != nil || got != scope {
		t.Errorf("%v: %v, %v", scope, got, err)
	}
	for _, bad := range []string{"", "0", "0000000000000000", "00000000000000001", "+000000000000001", "000000000000000g", "-000000000000001", "0x00000000000001"} {
		if id, err := ParseID(bad); err == nil {
			t.Errorf("id %q is %v", bad, id)
		}
	}
	for _, bad := range []string{"", "01", "0102ff0000000000000000000000000", "0102ff000000000000000000000000000", "0102ff0000000000000000000000000g"} {
		if s, err := ParseScope(bad); err == nil {
			t.Errorf("scope %q is %v", bad, s)
		}
	}
}
