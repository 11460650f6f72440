// The long split patterns, matched by hand.

package tokenize

// gpt2 matches `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`.
type gpt2 struct{ u *unicodeTables }

func (p *gpt2) match(s []byte, i int) int {
	if s[i] == '\'' {
		// Lower case only.
		if end := contraction(s, i); end > i && s[i+1] >= 'a' && s[i+1] <= 'z' && s[end-1] >= 'a' && s[end-1] <= 'z' {
			return end
		}
	}
	j := i
	if s[i] == ' ' && i+1 < len(s) {
		j++
	}
	class, n := p.u.at(s, j)
	switch in := uint32(1) << (class & classBits); {
	case in&setLetters != 0:
		return p.u.run(s, j+n, setLetters)
	case in&setNumbers != 0:
		return p.u.run(s, j+n, setNumbers)
	case in&setSpaces == 0:
		return p.u.run(s, j+n, ^uint32(setSpaces|setLetters|setNumbers))
	}
	return space(p.u, s, i, false)
}

// plain matches (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?L+|\p{N}{1,digits}| ?[^\sL\p{N}]+[\r\n]*
// |\s*[\r\n]+|\s+(?!\S)|\s+ where L are the letters.
type plain struct {
	u       *unicodeTables
	letters uint32 // a set
	digits  int
}

func (p *plain) match(s []byte, i int) int {
	if s[i] == '\'' {
		if end := contraction(s, i); end > i {
			return end
		}
	}
	class, n := p.u.at(s, i)
	in := uint32(1) << (class & classBits)
	if in&p.letters != 0 {
		return p.u.run(s, i+n, p.letters)
	}
	if in&setNumbers != 0 {
		return numbers(p.u, s, i+n, p.digits-1)
	}
	j := i + n
	if j < len(s) && s[i] != '\n' && s[i] != '\r' {
		next, m := p.u.at(s, j)
		after := uint32(1) << (next & classBits)
		if after&p.letters != 0 {
			return p.u.run(s, j+m, p.letters)
		}
		if s[i] == ' ' && after&(setSpaces|setNumbers) == 0 {
			in, j = after, j+m
		}
	}
	if in&setSpaces != 0 {
		return space(p.u, s, i, true)
	}
	return newlines(s, p.u.run(s, j, ^(setSpaces|setNumbers|p.letters)), false)
}

// cased matches X?U*W+C?|X?U+W*C?|\p{N}{1,digits}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
// where X is [^\r\n\p{L}\p{N}], U are letters that may be upper case, W those that may be lower case,
// and C, if there are contractions, (?i:'s|'t|'re|'ve|'m|'ll|'d).
type cased struct {
	u            *unicodeTables
	digits       int
	contractions bool
}

func (p *cased) match(s []byte, i int) int {
	class, n := p.u.at(s, i)
	in := uint32(1) << (class & classBits)
	if in&setNumbers != 0 {
		return numbers(p.u, s, i+n, p.digits-1)
	}
	if end := p.word(s, i, in, n); end > i {
		if p.contractions {
			return contraction(s, end)
		}
		return end
	}
	j := i + n
	if s[i] == ' ' && j < len(s) {
		next, m := p.u.at(s, j)
		if after := uint32(1) << (next & classBits); after&(setSpaces|setLetters|setNumbers) == 0 {
			in, j = after, j+m
		}
	}
	if in&setSpaces != 0 {
		return space(p.u, s, i, true)
	}
	return newlines(s, p.u.run(s, j, ^uint32(setSpaces|setLetters|setNumbers)), true)
}

// word matches X?U*W+|X?U+W*, or returns i. in is the set of s[i], n its bytes.
func (p *cased) word(s []byte, i int, in uint32, n int) int {
	if in&setLetters != 0 {
		end, _ := p.upperLower(s, i)
		return end
	}
	// The first character may be X. A mark may be X, or the first character of the word.
	with, found := i, false
	if s[i] != '\n' && s[i] != '\r' && i+n < len(s) {
		if with, found = p.upperLower(s, i+n); found {
			return with
		}
	}
	if in&setMarks != 0 {
		without, found := p.upperLower(s, i)
		if found || with <= i+n {
			return without
		}
	}
	if with > i+n {
		return with
	}
	return i
}

// upperLower matches U*W+ or, returning false, U*.
func (p *cased) upperLower(s []byte, i int) (end int, found bool) {
	behind := -1 // the last character so far that is W as well as U
	for i < len(s) {
		class, n := p.u.at(s, i)
		in := uint32(1) << (class & classBits)
		if in&setUpperLike == 0 {
			if in&setLowerLike != 0 {
				return p.u.run(s, i+n, setLowerLike), true
			}
			break
		}
		i += n
		if in&setLowerLike != 0 {
			behind = i
		}
	}
	if behind >= 0 {
		return behind, true
	}
	return i, false
}

// punctuated matches P[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+
// |\s+(?!\S)|\s+ where P is ASCII's punctuation. It does not match everywhere.
type punctuated struct{ u *unicodeTables }

func (p *punctuated) match(s []byte, i int) int {
	const letters = setLetters | setMarks
	class, n := p.u.at(s, i)
	in := uint32(1) << (class & classBits)
	if in&letters != 0 {
		return p.u.run(s, i+n, letters)
	}
	j := i + n
	if in&setPunctuated != 0 {
		if s[i] < 0x80 && j < len(s) && asciiLetter(s[j]) {
			for j < len(s) && asciiLetter(s[j]) {
				j++
			}
			return j
		}
		return newlines(s, p.u.run(s, j, setPunctuated), false)
	}
	if j < len(s) && s[i] != '\n' && s[i] != '\r' {
		next, m := p.u.at(s, j)
		after := uint32(1) << (next & classBits)
		if after&letters != 0 {
			return p.u.run(s, j+m, letters)
		}
		if s[i] == ' ' && after&setPunctuated != 0 {
			return newlines(s, p.u.run(s, j+m, setPunctuated), false)
		}
	}
	if in&setSpaces != 0 {
		return space(p.u, s, i, true)
	}
	return i
}

func asciiLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
