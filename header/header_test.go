package header

import (
	"errors"
	"testing"
)

func TestCutField(t *testing.T) {
	for _, tc := range []struct {
		line, name, value string
		err               error
	}{
		{"Host: a\r\n", "Host", "a", nil},
		{"Host:\t a b \t\r\n", "Host", "a b", nil},
		{"X:\r\n", "X", "", nil},
		{" folded\r\n", "", "", ErrFolded},
		{"", "", "", ErrFolded},
		{"no colon\r\n", "", "", ErrNoColon},
		{": a\r\n", "", "", ErrName},
		{"Host : a\r\n", "", "", ErrName},
		{"Ho\xffst: a\r\n", "", "", ErrName},
		{"Host: a\n", "Host", "", errLineEnd},
		{"Host: a\x00b\r\n", "Host", "", ErrValue},
		{"Host: a\rb\r\n", "Host", "", ErrValue},
	} {
		name, value, err := CutField([]byte(tc.line))
		if string(name) != tc.name || string(value) != tc.value || !errors.Is(err, tc.err) {
			t.Errorf("%q: %q, %q, %v", tc.line, name, value, err)
		}
		if tc.err != nil {
			continue
		}
		if name, value := SplitField([]byte(tc.line)); string(name) != tc.name || string(value) != tc.value {
			t.Errorf("%q: split into %q, %q", tc.line, name, value)
		}
	}
}

func TestHasToken(t *testing.T) {
	for list, want := range map[string]bool{"close": true, "TE, Close": true, " ,, close\t": true, "closed": false, "": false, "te": false} {
		if HasToken([]byte(list), "close") != want {
			t.Errorf("%q: %v", list, !want)
		}
	}
}

func TestIs(t *testing.T) {
	for word, want := range map[string]bool{"gzip": true, "GZip": true, "gzi": false, "gzips": false, "\x47zip": true, "'zip": false} {
		if Is([]byte(word), "gzip") != want {
			t.Errorf("%q: %v", word, !want)
		}
	}
}

// TestAppendEndToEnd: what a Connection line names is left out wherever it stands, and a list that names
// nothing leaves nothing else out.
func TestAppendEndToEnd(t *testing.T) {
	for _, tc := range []struct{ lines, want string }{
		{"A: 1\r\nB: 2\r\n\r\n", "A: 1\r\nB: 2\r\n"},
		{"A: 1\r\nX-Hop: 1\r\nB: 2\r\nConnection: close, x-hop\r\nX-HOP: 2\r\nC: 3\r\n\r\nsecret: 1", "A: 1\r\nB: 2\r\nC: 3\r\n"},
		{"A: 1\r\nclose: 1\r\nConnection: ,close ,Keep-Alive\r\nB: 2\r\n", "A: 1\r\nclose: 1\r\nB: 2\r\n"},
		{"connection: a\r\nB: 2\r\nConnection: b\r\na: 1\r\nTE: x\r\n", ""},
		{"no name\r\n: 1\r\nA: :\r\n", "A: :\r\n"},
		{"", ""},
	} {
		if got := AppendEndToEnd([]byte("head "), []byte(tc.lines), HopByHop); string(got) != "head "+tc.want {
			t.Errorf("%q: got %q, want %q", tc.lines, got, tc.want)
		}
	}
}
