// Unshouted: the text that is embedded for a question in capitals.

package cache

import "testing"

func TestUnshouted(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"HOW TO SORT A LIST IN PYTHON", "how to sort a list in python"},
		{"OZEMPIC SIDE EFFECTS?", "ozempic side effects?"},
		{"WAS IST EIN ÄRZTEHAUS", "was ist ein ärztehaus"},
		{"How to sort a LIST in Python", "How to sort a LIST in Python"},
		{"NASA", "NASA"},
		{"USA 和 EU", "USA 和 EU"},
		{"", ""},
	} {
		if got := string(Unshouted([]byte(c.text))); got != c.want {
			t.Errorf("Unshouted(%q) = %q, want %q", c.text, got, c.want)
		}
	}
	quiet := []byte("How do I sort a list?")
	if n := testing.AllocsPerRun(100, func() { Unshouted(quiet) }); n != 0 {
		t.Errorf("%v allocations for a question in small letters, want 0", n)
	}
}
