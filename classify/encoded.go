// Encoded: stretches of base64, hex, escapes and spaced-out letters that spell
// readable text are written out after the text they stand in.

package classify

import (
	"encoding/base64"
	"math/bits"
	"unicode"
	"unicode/utf8"
)

// maxNested is how often what was decoded is looked into again.
const maxNested = 3

// writeOut decodes the stretches of plain, whose marks are those from first on
// if it was put into the arena (at start), then those of what was decoded.
func (f *folds) writeOut(plain []byte, start, first int) {
	marks := f.marks[first:]
	from := 0
	f.stretches(plain, func(s, e int) (int32, int32) {
		if len(marks) == 0 {
			return int32(s), int32(e)
		}
		return placed(marks, int32(s), true), placed(marks, int32(e-1), false)
	})
	for depth := 1; depth < maxNested; depth++ {
		to := len(f.extra)
		if from == to {
			return
		}
		notes, base := f.notes, from
		f.stretches(f.extra[from:to], func(s, e int) (int32, int32) {
			return placed(notes, int32(base+s), true), placed(notes, int32(base+e-1), false)
		})
		from = to
	}
}

// stretches finds what may be encoded in text and keeps what it spells. place
// says where it stood.
func (f *folds) stretches(text []byte, place func(start, end int) (int32, int32)) {
	for i := 0; i < len(text); {
		b := text[i]
		if b >= utf8.RuneSelf || byteClass[b]&(classCode|classEscape) == 0 {
			i++
			continue
		}
		if byteClass[b]&classLetter != 0 && (i == 0 || text[i-1] >= utf8.RuneSelf || byteClass[text[i-1]]&(classLetter|classDigit) == 0) {
			if end := f.spaced(text, i); end > 0 {
				s, e := place(i, end)
				f.keepReadable(s, e, minSpaced)
				i = end
				continue
			}
		}
		if byteClass[b]&classEscape != 0 {
			end := i
			if escapeLen(text[i:]) > 0 { // at most twice in vain before a space
				end = f.escaped(text, i)
			}
			if end > i {
				s, e := place(i, end)
				f.keepReadable(s, e, minSpaced)
			}
			i = max(end, i+1)
			continue
		}
		end := codeEnd(text, i)
		if end-i >= minRun {
			s, e := place(i, end)
			// What stands before base64 may be of its alphabet: "a/", "key-".
			for skip := 0; skip < 4 && end-i-skip >= minRun; skip++ {
				shortest := readableOf(end - i)
				if skip > 0 {
					shortest = max(shortest, minShifted)
				}
				kept := f.decode(text[i+skip:end]) && f.keepReadable(s, e, shortest)
				hex := 2*len(f.work) == end-i-skip
				if kept && (hex || end-i >= sureRun) {
					break
				}
			}
		}
		i = end
	}
}

// readableOf is how many bytes of what a run spells must be readable in a row:
// of a long one some are by chance.
func readableOf(run int) int { return minReadable + max(0, bits.Len(uint(run))-7) }

// codeEnd is where the run of base64 that begins at i ends. Lines that are as
// long as those of a mail belong together.
func codeEnd(text []byte, i int) int {
	for {
		line := i
		for i < len(text) && text[i] < utf8.RuneSelf && byteClass[text[i]]&classCode != 0 {
			i++
		}
		next := i
		if next < len(text) && text[next] == '\r' {
			next++
		}
		if i-line < 60 || next+1 >= len(text) || text[next] != '\n' || text[next+1] >= utf8.RuneSelf || byteClass[text[next+1]]&classCode == 0 {
			return i
		}
		i = next + 1
	}
}

// decode decodes a run of hex or else of base64 into work.
func (f *folds) decode(run []byte) bool {
	f.work = f.work[:0]
	if len(run)%2 == 0 && isHex(run) {
		for i := 0; i < len(run); i += 2 {
			f.work = append(f.work, byte(nibble(run[i])<<4|nibble(run[i+1])))
		}
		if readable(f.work) {
			return true
		}
		f.work = f.work[:0]
	}
	for _, b := range run { // one alphabet, no line ends
		switch b {
		case '-':
			b = '+'
		case '_':
			b = '/'
		case '\r', '\n':
			continue
		}
		f.work = append(f.work, b)
	}
	if len(f.work)%4 == 1 { // half a byte too many
		f.work = f.work[:len(f.work)-1]
	}
	n, _ := base64.RawStdEncoding.Decode(f.work, f.work) // in place: it reads ahead of what it writes
	f.work = f.work[:n]
	return n > 0
}

func isHex(run []byte) bool {
	for _, b := range run {
		if nibble(b) < 0 {
			return false
		}
	}
	return true
}

// readable says that text is one, all of it.
func readable(text []byte) bool {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if !isReadable(r, n) {
			return false
		}
		i += n
	}
	return true
}

func isReadable(r rune, n int) bool {
	if r < utf8.RuneSelf {
		return r >= ' ' && r < 0x7f || r == '\n' || r == '\t' || r == '\r'
	}
	return !(r == utf8.RuneError && n == 1) && unicode.IsGraphic(r)
}

// escaped writes the stretch without white space around the escape at i into
// work, its escapes resolved. It is i where there are too few.
func (f *folds) escaped(text []byte, i int) (end int) {
	f.work = f.work[:0]
	escapes := 0
	for end = i; end < len(text) && text[end] > ' '; {
		r, n := escape(text[end:])
		switch {
		case n == 0:
			f.work = append(f.work, text[end])
			n = 1
		case text[end] == '%' || text[end+1] == 'x':
			f.work = append(f.work, byte(r))
			escapes++
		default:
			f.work = utf8.AppendRune(f.work, r)
			escapes++
		}
		end += n
	}
	if escapes < minEscapes {
		return i
	}
	return end
}

// spaced writes single letters with one gap between them, from i on, into work
// as words: a longer gap ends a word. 0: there are too few.
func (f *folds) spaced(text []byte, i int) (end int) {
	f.work = f.work[:0]
	letters := 0
	for i < len(text) {
		r, n := utf8.DecodeRune(text[i:])
		if !isLatin(r) && !isForeign(r) {
			break
		}
		next := i + n
		if next < len(text) {
			if after, _ := utf8.DecodeRune(text[next:]); isWord(after) && after != '_' {
				break // a longer word
			}
		}
		f.work = utf8.AppendRune(f.work, r)
		letters++
		end = next
		gap := 0
		for next < len(text) && text[next] < utf8.RuneSelf && byteClass[text[next]]&classGap != 0 && gap < 4 {
			next++
			gap++
		}
		if gap == 0 || gap == 4 {
			break
		}
		if gap > 1 {
			f.work = append(f.work, ' ')
		}
		i = next
	}
	if letters < minSpaced {
		return 0
	}
	return end
}

// keepReadable appends the readable stretches of work of at least so many bytes
// to extra, each as a line of its own that stood at [from, to), and says whether
// there are any.
func (f *folds) keepReadable(from, to int32, shortest int) (kept bool) {
	text := f.work
	for i := 0; i < len(text); {
		start, seen := i, 0
		for i < len(text) {
			r, n := utf8.DecodeRune(text[i:])
			if !isReadable(r, n) {
				break
			}
			if isWord(r) || unspaced(r) || r == ' ' {
				seen++
			}
			i += n
		}
		stretch := text[start:i]
		letters := 3*seen >= 2*utf8.RuneCount(stretch)
		if shortest >= minShifted {
			letters = 5*seen >= 4*utf8.RuneCount(stretch)
		}
		if len(stretch) >= shortest && letters {
			at := len(f.extra)
			f.extra = append(f.extra, '\n')
			f.extra = append(f.extra, stretch...)
			f.note(at, from, to)
			kept = true
		}
		if i < len(text) {
			i++
		}
	}
	return kept
}
