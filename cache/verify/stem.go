// Stem: all forms of an English word become one word.

package verify

import "bytes"

// stem returns the part of a folded word that its forms share. It is a prefix of
// the word. After the first steps of Porter's stemmer (Program 14, 1980), with
// the last letter dropped where forms differ in it.
func stem(w []byte) []byte {
	if len(w) < 4 {
		return w
	}
	for _, b := range w {
		if b >= 0x80 {
			return w
		}
	}
	w = bytes.TrimSuffix(w, []byte("'"))
	switch {
	case has(w, "sses"):
		w = w[:len(w)-2]
	case has(w, "ies") && len(w) > 4:
		w = w[:len(w)-2]
	case has(w, "ss"), has(w, "us"), has(w, "is"):
	case has(w, "es") && len(w) > 4 && (has(w, "shes") || has(w, "ches") || has(w, "xes") || has(w, "zes")):
		w = w[:len(w)-2]
	case has(w, "s"):
		w = w[:len(w)-1]
	}
	for _, suffix := range [...]string{"ing", "ed"} {
		if root := w[:max(0, len(w)-len(suffix))]; has(w, suffix) && len(root) >= 3 && hasVowel(root) && !has(w, "eed") {
			w = root
			if n := len(w); n > 3 && w[n-1] == w[n-2] && w[n-1] != 'l' && w[n-1] != 's' && w[n-1] != 'z' {
				w = w[:n-1]
			}
			break
		}
	}
	if n := len(w); n > 3 && (w[n-1] == 'e' || w[n-1] == 'y' || w[n-1] == 'i') {
		w = w[:n-1]
	}
	return w
}

func has(w []byte, suffix string) bool {
	return len(w) >= len(suffix) && string(w[len(w)-len(suffix):]) == suffix
}

func hasVowel(w []byte) bool { return bytes.ContainsAny(w, "aeiouy") }

// bases calls try with each dictionary form that a word may come from; the bytes belong to
// scratch.
func bases(w, scratch []byte, try func([]byte) bool) bool {
	n := len(w)
	cut := func(k int, add string) bool {
		if n-k < 2 {
			return false
		}
		return try(append(append(scratch[:0], w[:n-k]...), add...))
	}
	switch {
	case has(w, "ies"):
		return cut(3, "y") || cut(1, "")
	case has(w, "es"):
		return cut(1, "") || (has(w, "shes") || has(w, "ches") || has(w, "xes") || has(w, "sses") || has(w, "oes")) && cut(2, "")
	case has(w, "s") && !has(w, "ss"):
		return cut(1, "")
	case has(w, "ied"):
		return cut(3, "y")
	case has(w, "ed"):
		return cut(2, "") || cut(1, "") || n > 4 && w[n-3] == w[n-4] && cut(3, "")
	case has(w, "ing") && n > 5:
		return cut(3, "") || cut(3, "e") || w[n-4] == w[n-5] && cut(4, "")
	}
	return false
}

// endings make a word of another one: install, installation, installer.
var endings = [...]string{
	"", "e", "y", "ation", "ion", "tion", "sion", "ment", "er", "or", "ing", "ance", "ence", "al", "ity", "ness", "ly", "ation", "ed",
	"s", "es", "ations", "ions", "ments", "ers", "ors", "ings", "ous", "ic", "ical", "ive", "ably", "able", "ure", "ication", "ies", "ied",
}

// isDerived reports whether two words are one stem with two endings. It makes words similar, not equal: an
// organ is not an organization.
func isDerived(a, b []byte) bool {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] && a[n] < 0x80 {
		n++
	}
	for ; n >= 4; n-- {
		if 2*n >= max(len(a), len(b)) && isEnding(a[n:]) && isEnding(b[n:]) {
			return true
		}
	}
	return false
}

func isEnding(w []byte) bool {
	for _, e := range endings {
		if string(w) == e {
			return true
		}
	}
	return false
}
