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
		{func() { keys.put("b", []byte("1"), 0); keys.put("a", []byte("2"), 0) }, "a=2 b=1", "", 2},
		{func() { keys.put("b", []byte("1"), 0) }, "a=2 b=1", "", 2},
		{func() { keys.put("b", []byte("bad"), 0) }, "a=2 b=1", "b: it is bad", 3},
		{func() { keys.put("b", []byte("bad"), 0) }, "a=2 b=1", "b: it is bad", 3},
		{func() { keys.spoil("a", 0, errors.New("too large")) }, "a=2 b=1", "a: too large\nb: it is bad", 3},
		{func() { keys.put("a", []byte("2"), 0) }, "a=2 b=1", "b: it is bad", 4}, // as before, and good again
		{func() { keys.put("c", []byte("bad"), 0) }, "a=2 b=1", "b: it is bad\nc: it is bad", 5},
		{func() { keys.only(map[string]bool{"a": true, "c": true}) }, "a=2", "c: it is bad", 5},
		{func() { keys.anew(); keys.put("a", []byte("2"), 0) }, "a=2", "c: it is bad", 6},
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

// Keys come in the order in which they were made, whatever they are called; what is wrong with them by name.
func TestKeyOrder(t *testing.T) {
	t.Parallel()
	reads := 0
	keys := newKeyTable(func(_ string, value []byte) (string, error) {
		if reads++; string(value) == "bad" {
			return "", errors.New("it is bad")
		}
		return string(value), nil
	})
	says := func() string {
		var all []string
		_ = keys.all(func(key string, what *string) { all = append(all, key+"="+*what) })
		return strings.Join(all, " ")
	}
	keys.put("b", []byte("1"), 10)
	keys.put("a", []byte("2"), 20)
	keys.put("c", []byte("3"), 5)
	if got := says(); got != "c=3 b=1 a=2" {
		t.Errorf("they are %s", got)
	}
	// One that comes again as it was is not read again, and is a new one.
	keys.drop("c")
	keys.put("c", []byte("3"), 30)
	if got := says(); got != "b=1 a=2 c=3" || reads != 3 {
		t.Errorf("they are %s after %d reads", got, reads)
	}
	keys.drop("c")
	keys.put("c", []byte("bad"), 40)
	keys.put("b", []byte("bad"), 10)
	keys.drop("b")
	keys.put("b", []byte("bad"), 50) // what it said before it went is over
	if got := says(); got != "a=2" {
		t.Errorf("they are %s", got)
	}
	for i := range 2*mostGone + 1 {
		key := strings.Repeat("x", i+1)
		keys.put(key, []byte("1"), 60)
		keys.drop(key)
	}
	if len(keys.gone) > mostGone {
		t.Errorf("%d keys that are gone are kept", len(keys.gone))
	}
}

// What changes of the entry counts for what is known, also while nobody says it again.
func TestKeysAnew(t *testing.T) {
	t.Parallel()
	entry := "1"
	keys := newKeyTable(func(_ string, value []byte) (string, error) {
		if string(value) == "bad" {
			return "", errors.New("it is bad")
		}
		return string(value) + entry, nil
	})
	keys.put("a", []byte("x"), 0)
	keys.put("b", []byte("y"), 0)
	keys.put("b", []byte("bad"), 0)
	entry = "2"
	keys.anew()
	var all []string
	err := keys.all(func(key string, what *string) { all = append(all, key+"="+*what) })
	if got := strings.Join(all, " "); got != "a=x2 b=y2" || err == nil {
		t.Errorf("they are %s, %v", got, err)
	}
}
