// Tests of the last user text.

package classify

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLastUser(t *testing.T) {
	long := strings.Repeat("ä", 3000)
	for _, row := range []struct {
		name  string
		texts []Text
		want  string
	}{
		{"nothing", nil, ""},
		{"nobody asks", []Text{{[]byte("a"), System, 0}, {[]byte("b"), Assistant, 1}}, ""},
		{"the last", []Text{{[]byte("a"), User, 0}, {[]byte("b"), User, 1}}, "b"},
		{"before a tool loop", []Text{{[]byte("a"), User, 0}, {[]byte("b"), Assistant, 1}, {[]byte("c"), Tool, 2}}, "a"},
		{"parts", []Text{{[]byte("a"), User, 0}, {[]byte("b"), User, 1}, {[]byte("c"), User, 1}}, "b\nc\n"},
		{"folded", []Text{{[]byte("a\u200bb"), User, 0}}, "ab"},
		{"long", []Text{{[]byte(long + "end"), User, 0}}, long[:maxLast-maxTail] + "\n" + long[len(long)-maxTail+4:] + "end"},
		{"long parts", []Text{{[]byte("x" + long), User, 0}, {[]byte(long), User, 0}, {[]byte("end"), User, 0}}, "x" + long[:maxLast-maxTail-2] + "\nend"},
	} {
		c := newSaying(t, Options{Threads: 1})
		j := newJudging(c)
		j.r = &Request{Texts: row.texts}
		j.folds.begin(len(row.texts))
		got := string(j.lastUser())
		if got != row.want {
			t.Errorf("%s: %d bytes %.40q, want %d bytes %.40q", row.name, len(got), got, len(row.want), row.want)
		}
		if !utf8.ValidString(got) || len(got) > maxLast+2 {
			t.Errorf("%s: %d bytes, or half a letter", row.name, len(got))
		}
	}
}
