// Tests of suggestions.

package wording

import "testing"

func TestNearest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ word, want string }{
		{"lisen", "listen"}, {"LISTEN", "listen"}, {"max-body", "max_body"}, {"maxbody", "max_body"}, {"xyz", ""},
		{"ab", "abc"}, {"abd", "abc"}, {"abcd", "abc"}, {"kéys", "keys"},
	} {
		if got := Nearest(tt.word, []string{"listen", "admin", "max_body", "abc", "abe", "keys"}); got != tt.want {
			t.Errorf("%q is taken for %q, want %q", tt.word, got, tt.want)
		}
	}
}
