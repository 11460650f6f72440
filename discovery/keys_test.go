// Tests of tables of keys.

package discovery

import (
	"errors"
	"strings"
	"testing"
)

func TestKeyTable(t *testing.T) {
	t.Parallel()
	reads := 0
	keys := newKeyTable(func(_ string, value []byte) (string, error) {
		reads++
		if string(value) == "bad" {
			return "", errors.New("it is bad")
		}
		return string(value), nil
	})
	for i, step := range []struct {
		do    func()
		says  string
		wrong string
		reads int
	}{
		{func() { keys.put("b", []byte("1")); keys.put("a", []byte("2")) }, "a=2 b=1", "", 2},
		{func() { keys.put("b", []byte("1")) }, "a=2 b=1", "", 2},
		{func() { keys.put("b", []byte("bad")) }, "a=2 b=1", "b: it is bad", 3},
		{func() { keys.put("b", []byte("bad")) }, "a=2 b=1", "b: it is bad", 3},
		{func() { keys.spoil("a", errors.New("too large")) }, "a=2 b=1", "a: too large\nb: it is bad", 3},
		{func() { keys.put("a", []byte("2")) }, "a=2 b=1", "b: it is bad", 4}, // as before, and good again
		{func() { keys.put("c", []byte("bad")) }, "a=2 b=1", "b: it is bad\nc: it is bad", 5},
		{func() { keys.only(map[string]bool{"a": true, "c": true}) }, "a=2", "c: it is bad", 5},
		{func() { keys.anew(); keys.put("a", []byte("2")) }, "a=2", "c: it is bad", 6},
		{func() { keys.drop("a"); keys.drop("c"); keys.drop("d") }, "", "", 6},
	} {
		step.do()
		var says []string
		err := keys.all(func(key string, what *string) { says = append(says, key+"="+*what) })
		wrong := ""
		if err != nil {
			wrong = err.Error()
		}
		if got := strings.Join(says, " "); got != step.says || wrong != step.wrong || reads != step.reads {
			t.Errorf("step %d: %q, %q, %d reads; want %q, %q, %d", i, got, wrong, reads, step.says, step.wrong, step.reads)
		}
	}
}
