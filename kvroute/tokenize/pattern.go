// Split patterns: those that are known, and what they have in common.

package tokenize

import "math/bits"

// patterns are the regular expressions that are known, as they stand in tokenizer.json. Each is
// scanned by hand: Go's regexp has no look-ahead, and is slow. covers says that the pattern matches
// everywhere, so that nothing lies between two matches.
func patterns(u *unicodeTables, pattern string) (scan scanner, covers, ok bool) {
	const (
		spaces   = `\s+(?!\S)|\s+`
		contract = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
		upper    = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
		lower    = `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
	)
	switch pattern {
	case `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|` + spaces: // GPT-2
		return everywhere(&gpt2{u}), true, true

	case contract + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|` + spaces, // Llama-3
		contract + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|` + spaces,
		`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|` + spaces: // cl100k
		return everywhere(&plain{u, setLetters, 3}), true, true

	case contract + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|` + spaces: // Qwen2
		return everywhere(&plain{u, setLetters, 1}), true, true

	case contract + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|` + spaces: // Qwen3.5
		return everywhere(&plain{u, setLetters | setMarks, 1}), true, true

	case upper + `*` + lower + `+` + contract + `?|` + upper + `+` + lower + `*` + contract + `?|` +
		`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|` + spaces: // o200k
		return everywhere(&cased{u, 3, true}), true, true

	case upper + `*` + lower + `+|` + upper + `+` + lower + `*|` +
		`\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|` + spaces: // Mistral's tekken
		return everywhere(&cased{u, 1, false}), true, true

	case "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|" +
		" ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|" + spaces: // DeepSeek-V3, behind the next two
		return isolated(u, &punctuated{u}), false, true
	case `\p{N}{1,3}`:
		return numerals(u, 3), false, true
	case "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+":
		return ideographs, false, true
	case `\p{N}`:
		return numerals(u, 1), false, true
	}
	return nil, false, false
}

// plainWord is the end of a space or none and letters of ASCII from s[i] on, where that is a word to all
// patterns but those that look at cases: something else of ASCII lies behind it, or nothing. Else it is i.
// Most words of most texts are like that; eight bytes at a time they take a third of the general way.
func plainWord(s []byte, i int) int {
	from := i
	if s[i] == ' ' {
		from++
	}
	end := letters(s, from, 0x20*eachByte)
	if end == from || end < len(s) && s[end] >= 0x80 {
		return i
	}
	return end
}

// casedWord is plainWord for patterns that part upper from lower case, and know contractions.
func casedWord(s []byte, i int) int {
	from := i
	if s[i] == ' ' && i+1 < len(s) {
		from++
	}
	if c := s[from]; c >= 'A' && c <= 'Z' {
		from++
	}
	end := letters(s, from, 0)
	if end == from || end < len(s) && (s[end] >= 0x80 || s[end] == '\'' || asciiLetter(s[end])) {
		return i
	}
	return end
}

const eachByte, highBits = 0x0101010101010101, 0x8080808080808080

// letters is the end of the lower case letters of ASCII from s[i] on, where fold is 0; with fold 0x20 in
// each byte of the upper case ones, too.
func letters(s []byte, i int, fold uint64) int {
	for ; i+8 <= len(s); i += 8 {
		w := load64(s[i:])
		low := (w | fold) &^ highBits
		others := ^((low + (0x80-'a')*eachByte) &^ (low + (0x7f-'z')*eachByte) &^ w) & highBits
		if others != 0 {
			return i + bits.TrailingZeros64(others)>>3
		}
	}
	for i < len(s) && s[i]|byte(fold) >= 'a' && s[i]|byte(fold) <= 'z' {
		i++
	}
	return i
}

// numbers is the end of at most limit numbers from s[i] on.
func numbers(u *unicodeTables, s []byte, i, limit int) int {
	for ; limit > 0 && i < len(s); limit-- {
		class, n := u.at(s, i)
		if class&classBits != classNumber {
			break
		}
		i += n
	}
	return i
}

// newlines is the end of the characters of `[\r\n]*`, with slashes of `[\r\n/]*`.
func newlines(s []byte, i int, slashes bool) int {
	for i < len(s) && (s[i] == '\n' || s[i] == '\r' || slashes && s[i] == '/') {
		i++
	}
	return i
}

// space matches `\s+(?!\S)|\s+`, with lines before it `\s*[\r\n]+`. There is white space at s[i].
func space(u *unicodeTables, s []byte, i int, lines bool) int {
	behind, last, j := -1, i, i // behind the last line end; the last white space; behind all of it
	for j < len(s) {
		class, n := u.at(s, j)
		if class&classBits != classSpace {
			break
		}
		last = j
		if s[j] == '\n' || s[j] == '\r' {
			behind = j + 1
		}
		j += n
	}
	switch {
	case lines && behind > 0:
		return behind
	case j == len(s) || last == i:
		return j
	default:
		return last // the last one goes with the word behind it
	}
}

// contraction is the end of (?i:'s|'t|'re|'ve|'m|'ll|'d) at s[i], or i. The long s, U+017F, is an s
// in the other case.
func contraction(s []byte, i int) int {
	if i+1 >= len(s) || s[i] != '\'' {
		return i
	}
	switch s[i+1] | 0x20 {
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v':
		if i+2 < len(s) && s[i+2]|0x20 == 'e' {
			return i + 3
		}
	case 'l':
		if i+2 < len(s) && s[i+2]|0x20 == 'l' {
			return i + 3
		}
	}
	if i+2 < len(s) && s[i+1] == 0xc5 && s[i+2] == 0xbf {
		return i + 3
	}
	return i
}
