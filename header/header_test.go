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
