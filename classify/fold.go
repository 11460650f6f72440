// Fold: texts as they are judged. What is forwarded stays as it came; what is
// judged has no invisible letters, no borrowed ones, and what was encoded is
// written out after it.

package classify

import (
	"cmp"
	"slices"
	"unicode"
	"unicode/utf8"
)

// folds are the folded texts of one request. Most texts have nothing to fold
// and are not copied.
type folds struct {
	texts []folded
	arena []byte // texts that are not as they came
	marks []mark
	extra []byte // of the text under way: what was decoded
	notes []mark // of extra: where it stood
	work  []byte // one decoded run
}

// folded is one text as it is judged.
type folded struct {
	bytes       []byte
	first, last int32 // its marks; equal: bytes are as they came
	own         int32 // how many bytes stand in the text itself, not in what it spells
	done        bool
}

// decoded says that the folded byte at is of what the text spells.
func (t *folded) decoded(at int32) bool { return t.first != t.last && at >= t.own }

// A mark says where folded bytes stood: those from at on, to the next mark,
// begin at from. whole: they stand for all up to the next mark's from, and
// cannot be told apart within.
type mark struct {
	at, from int32
	whole    bool
}

func (f *folds) begin(n int) {
	if cap(f.texts) < n {
		f.texts = make([]folded, n)
	}
	f.texts = f.texts[:n]
}

// reset lets go of the texts.
func (f *folds) reset() {
	clear(f.texts)
	f.texts, f.arena, f.marks = f.texts[:0], f.arena[:0], f.marks[:0]
}

func (f *folds) memory() int {
	return cap(f.texts)*40 + cap(f.arena) + cap(f.extra) + cap(f.work) + 12*(cap(f.marks)+cap(f.notes))
}

// folded is text i of the request as it is judged.
func (j *judging) folded(i int) *folded {
	if f := &j.folds.texts[i]; f.done {
		return f
	}
	return j.folds.fold(i, j.r.Texts[i].Bytes)
}

// fold folds text i.
func (f *folds) fold(i int, text []byte) *folded {
	t := &f.texts[i]
	*t = folded{bytes: text, done: true}
	letters, runs := suspicious(text)
	if !letters && !runs {
		return t
	}
	start, first := len(f.arena), len(f.marks)
	f.extra, f.notes = f.extra[:0], f.notes[:0]
	if letters {
		f.letters(text)
	}
	if runs || letters {
		plain := text
		if letters {
			plain = f.arena[start:]
		}
		f.writeOut(plain, start, first)
	}
	if !letters && len(f.extra) == 0 {
		return t
	}
	if !letters {
		f.arena = append(f.arena, text...)
		f.marks = append(f.marks, mark{0, 0, false})
	}
	t.own = int32(len(f.arena) - start)
	f.marks = append(f.marks, mark{t.own, int32(len(text)), true})
	for _, n := range f.notes {
		f.marks = append(f.marks, mark{n.at + int32(len(f.arena)-start), n.from, n.whole})
	}
	f.arena = append(f.arena, f.extra...)
	t.bytes = f.arena[start:len(f.arena):len(f.arena)]
	t.first, t.last = int32(first), int32(len(f.marks))
	return t
}

// original is where folded bytes stood in the text. Of bytes that begin in the text and end in what it spells, as a
// name may that the tagger reads over the end of the text, those in the text; of others whose places are not in
// order, those of the first.
func (f *folds) original(t *folded, start, end int32) (int32, int32) {
	if t.first == t.last || end <= start {
		return start, end
	}
	if start < t.own {
		end = min(end, t.own)
	}
	marks := f.marks[t.first:t.last]
	from, to := placed(marks, start, true), placed(marks, end-1, false)
	if to < from {
		to = placed(marks, start, false)
	}
	return from, to
}

// placed is where the folded byte at stood: its first byte, or the one after
// its last.
func placed(marks []mark, at int32, begin bool) int32 {
	i, found := slices.BinarySearchFunc(marks, at, func(m mark, at int32) int { return cmp.Compare(m.at, at) })
	if !found {
		i--
	} else {
		for i+1 < len(marks) && marks[i+1].at == at {
			i++ // an empty stretch before it
		}
	}
	m := &marks[i]
	switch {
	case m.whole && begin || i+1 == len(marks) && m.whole:
		return m.from
	case m.whole:
		return marks[i+1].from
	case begin:
		return m.from + at - m.at
	}
	return m.from + at - m.at + 1
}

// note marks extra bytes from at on as standing for text[from:to].
func (f *folds) note(at int, from, to int32) {
	f.notes = append(f.notes, mark{int32(at), from, true}, mark{int32(len(f.extra)), to, true})
}

// letters appends the text, its letters folded, to the arena.
func (f *folds) letters(text []byte) {
	start := len(f.arena)
	copied, wordEnd, mixed := 0, 0, false
	var before rune
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf && byteClass[text[i]]&classHidden == 0 {
			before = rune(text[i])
			i++
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		to := r
		if twin := lookalike(r); twin != 0 {
			if i >= wordEnd {
				wordEnd, mixed = borrowed(text, i)
			}
			if mixed {
				to = twin
			}
		} else if isMarkNoise(r) {
			n = f.marksOn(text, i)
			if to = gone; n == 0 {
				n, to = utf8.RuneLen(r), r
			}
		} else if isVariation(r) && !(isEmojiLike(before) && n == 3) {
			n = f.smuggled(text, i)
			to = gone
		} else {
			if r == leftward {
				f.turned(text, i+n)
			}
			to = plainLetter(r, before)
		}
		if to == r {
			before = r
			i += n
			continue
		}
		f.copyPlain(text[copied:i], copied, start)
		if to != gone {
			f.marks = append(f.marks, mark{int32(len(f.arena) - start), int32(i), true})
			f.arena = utf8.AppendRune(f.arena, to)
			before = to
		}
		i += n
		copied = i
	}
	f.copyPlain(text[copied:], copied, start)
}

// copyPlain appends bytes that stay as they are, and stood at from.
func (f *folds) copyPlain(text []byte, from, start int) {
	f.marks = append(f.marks, mark{int32(len(f.arena) - start), int32(from), false})
	f.arena = append(f.arena, text...)
}

// marksOn is how many bytes of combining marks at i are noise: crossed-out
// letters, or three and more on one letter. 0: they belong there.
func (f *folds) marksOn(text []byte, i int) int {
	end, marks, noise := i, 0, false
	for end < len(text) {
		r, n := utf8.DecodeRune(text[end:])
		if !isMarkNoise(r) {
			break
		}
		noise = noise || !isOrthographic(r)
		end += n
		marks++
	}
	if noise || marks > 2 {
		return end - i
	}
	return 0
}

// What turns the direction of what follows, and what ends that.
const (
	leftward   = 0x202e
	turnedBack = 0x202c
)

// A stretch that is read from its end: at most so many bytes, and at least so many
// digits.
const (
	maxTurned = 512
	minTurned = 9
)

// turned writes out as a reader sees it what stands from i on, behind a sign that
// turns it round: from its end to its beginning. A model reads words as they stand,
// so that only what may be a number is looked at from both sides.
func (f *folds) turned(text []byte, i int) {
	end, digits := i, 0
	for end < len(text) && end-i < maxTurned {
		r, n := utf8.DecodeRune(text[end:])
		if r == turnedBack || r == leftward || r == '\n' {
			break
		}
		if unicode.IsDigit(r) {
			digits++
		}
		end += n
	}
	if digits < minTurned {
		return
	}
	f.work = f.work[:0]
	for at := end; at > i; {
		r, n := utf8.DecodeLastRune(text[i:at])
		f.work = utf8.AppendRune(f.work, r)
		at -= n
	}
	f.keepReadable(int32(i), int32(end), minSpaced)
}

// smuggled is how many bytes of variation selectors stand at i. A long run of
// them spells bytes: they are written out.
func (f *folds) smuggled(text []byte, i int) int {
	end := i
	f.work = f.work[:0]
	for end < len(text) {
		r, n := utf8.DecodeRune(text[end:])
		if !isVariation(r) {
			break
		}
		if r < 0x10000 {
			f.work = append(f.work, byte(r-0xfe00))
		} else {
			f.work = append(f.work, byte(r-0xe0100)+16)
		}
		end += n
	}
	f.keepReadable(int32(i), int32(end), minReadable)
	return end - i
}
