// Split patterns: the known ones, and the parts that they share.

package tokenize

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
		" ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|" + spaces: // DeepSeek-V3: in its file it comes after the next two
		return isolated(u, &punctuated{u}), false, true
	case `\p{N}{1,3}`:
		return numerals(u, 3), false, true
	case "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+":
		return scanner{next: ideographs}, false, true
	case `\p{N}`:
		return numerals(u, 1), false, true
	}
	return scanner{}, false, false
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

// newlines returns where `[\r\n]*` ends from s[i] on; if slashes is set, `[\r\n/]*`.
func newlines(s []byte, i int, slashes bool) int {
	for i < len(s) && (s[i] == '\n' || s[i] == '\r' || slashes && s[i] == '/') {
		i++
	}
	return i
}

// space matches `\s+(?!\S)|\s+`; if lines is set, it tries `\s*[\r\n]+` first. There is white
// space at s[i].
func space(u *unicodeTables, s []byte, i int, lines bool) int {
	behind, last, j := -1, i, i // the place after the last line end; that of the last white space; that after all white space
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

// contraction is the end of (?i:'s|'t|'re|'ve|'m|'ll|'d) at s[i], or i. The long s, U+017F,
// counts as an s, because case is ignored.
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
