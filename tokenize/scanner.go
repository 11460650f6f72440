// Scanners: how a text is cut into words, apart from the long patterns.

package tokenize

import "bytes"

// A scanner cuts a text into words. It does what `Split` does with behavior "Isolated": each
// match of a pattern is a word, and so is the text between two matches.
type scanner struct {
	// next finds the next word of s from i on: s[from:to]. i is less than len(s), and to is more
	// than i. What lies before from belongs to no word.
	next  func(s []byte, i int) (from, to int)
	plain plainRule
}

// A matcher returns the end of a pattern's match at s[i], or i where there is none.
type matcher interface {
	match(s []byte, i int) int
	plain() plainRule
}

// isolated makes a scanner of a matcher, for patterns that do not match everywhere.
func isolated(u *unicodeTables, m matcher) scanner {
	return scanner{func(s []byte, i int) (int, int) {
		if end := m.match(s, i); end > i {
			return i, end
		}
		for j := i; ; {
			_, n := u.at(s, j)
			j += n
			if j == len(s) || m.match(s, j) > j {
				return i, j
			}
		}
	}, m.plain()}
}

// everywhere makes a scanner of a matcher that matches at each place.
func everywhere(m matcher) scanner {
	return scanner{func(s []byte, i int) (int, int) { return i, m.match(s, i) }, m.plain()}
}

// numerals scans for \p{N}{1,limit}.
func numerals(u *unicodeTables, limit int) scanner {
	return scanner{next: func(s []byte, i int) (int, int) {
		if end := numbers(u, s, i, limit); end > i {
			return i, end
		}
		return i, u.run(s, i, ^uint32(setNumbers))
	}}
}

// ideographs scans for [一-龥ぁ-ゟ゠-ヿ]+: a word is a run of such characters, or a run of other
// characters.
func ideographs(s []byte, i int) (from, to int) {
	wanted := false
	for to = i; to < len(s); {
		is, n := false, 1
		if c := s[to]; c >= 0xc0 {
			var r rune
			r, n = decode(s, to)
			is = r >= 0x4e00 && r <= 0x9fa5 || r >= 0x3040 && r <= 0x30ff
		}
		if to == i {
			wanted = is
		}
		if is != wanted {
			break
		}
		to += n
	}
	return i, to
}

// bertWords is what BertPreTokenizer does: words between white space, and punctuation by itself.
func bertWords(u *unicodeTables) scanner {
	return scanner{next: func(s []byte, i int) (from, to int) {
		for from, to = i, i; to < len(s); {
			r, n := decode(s, to)
			switch flags := u.bert.of(r); {
			case flags&bertWhite != 0 && from == to:
				from, to = to+n, to+n // before the word
				continue
			case flags&bertWhite != 0:
				return from, to
			case flags&bertPunctuation != 0 && from == to:
				return from, to + n
			case flags&bertPunctuation != 0:
				return from, to
			}
			to += n
		}
		return from, to
	}}
}

// whiteSpaceWords is what WhitespaceSplit does: words between white space.
func whiteSpaceWords(u *unicodeTables) scanner {
	return scanner{next: func(s []byte, i int) (from, to int) {
		for from, to = i, i; to < len(s); {
			if c := s[to]; c > ' ' && c < 0x7f { // as most are
				to++
				continue
			}
			r, n := decode(s, to)
			if u.bert.of(r)&bertWhite != 0 {
				if from < to {
					break
				}
				from += n // before the word
			}
			to += n
		}
		return from, to
	}}
}

// digits does what Digits does: each digit, or each run of digits, is a word, and so is the text
// between.
func digits(u *unicodeTables, each bool) scanner {
	return scanner{next: func(s []byte, i int) (from, to int) {
		r, n := decode(s, i)
		numeric := u.bert.of(r) & runeNumeric
		for to = i + n; to < len(s) && !(each && numeric != 0); to += n {
			if r, n = decode(s, to); u.bert.of(r)&runeNumeric != numeric {
				break
			}
		}
		return i, to
	}}
}

// before splits before each occurrence of a character.
func before(mark []byte) scanner {
	return scanner{next: func(s []byte, i int) (int, int) {
		from := i
		if bytes.HasPrefix(s[i:], mark) {
			from += len(mark)
		}
		if at := bytes.Index(s[from:], mark); at >= 0 {
			return i, from + at
		}
		return i, len(s)
	}}
}
