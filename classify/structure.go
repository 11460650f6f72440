// Structure: what the last user message looks like, counted in one pass.

package classify

import (
	"bytes"
	"unicode/utf8"
)

// KindStructure holds under names of the user's own.
const KindStructure Kind = "structure"

var structureCounts = []string{"bytes", "words", "lines", "code_blocks", "urls", "questions", "numbers", "lists", "math"}

// A shape counts what the last user message is made of.
type shape struct {
	bytes     int
	words     int // letters of scripts without spaces count one each
	unspaced  int // those letters
	letters   int // of other words
	lines     int // not empty ones
	code      int // fenced blocks
	urls      int
	questions int // question marks of any script, runs as one
	numbers   int
	lists     int // lines that begin with a bullet or a number
	math      int // formulas: $..$, \(..\), LaTeX commands, operators between operands
}

func measureStructure(j *judging, what string) (float64, error) {
	if err := j.find(KindStructure); err != nil {
		return 0, err
	}
	return float64(j.shape.count(what)), nil
}

func (s *shape) count(feature string) int {
	switch feature {
	case "bytes":
		return s.bytes
	case "words":
		return s.words
	case "lines":
		return s.lines
	case "code_blocks":
		return s.code
	case "urls":
		return s.urls
	case "questions":
		return s.questions
	case "numbers":
		return s.numbers
	case "lists":
		return s.lists
	case "math":
		return s.math
	}
	panic("BUG: nobody counts " + feature)
}

// findShape counts over the whole last user message.
func (j *judging) findShape() error {
	start, end := j.lastMessage()
	for i := start; i < end; i++ {
		if j.overdue() {
			return ErrTimeout
		}
		text := j.r.Texts[i].Bytes
		if end > start+1 {
			j.shape.add(text)
			continue
		}
		key, ok := j.c.shared.key(text), false
		if j.shape, ok = j.c.shared.shapes.get(key); !ok {
			j.shape.add(text)
			j.c.shared.shapes.put(key, j.shape)
		}
	}
	return nil
}

// add counts one text.
func (s *shape) add(text []byte) {
	s.bytes += len(text)
	fence := false
	for len(text) > 0 {
		line := text
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line, text = text[:i], text[i+1:]
		} else {
			text = nil
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		s.lines++
		if bytes.HasPrefix(line, []byte("```")) || bytes.HasPrefix(line, []byte("~~~")) {
			if fence = !fence; fence {
				s.code++
			}
			continue
		}
		if isItem(line) {
			s.lists++
		}
		s.addLine(line)
	}
}

// isItem says that a line is an item of a list.
func isItem(line []byte) bool {
	if len(line) > 2 && line[1] == ' ' && bytes.IndexByte([]byte("-*+"), line[0]) >= 0 || bytes.HasPrefix(line, []byte("• ")) {
		return true
	}
	digits := 0
	for digits < len(line) && digits < 4 && '0' <= line[digits] && line[digits] <= '9' {
		digits++
	}
	return digits > 0 && digits+1 < len(line) && (line[digits] == '.' || line[digits] == ')') && line[digits+1] == ' '
}

// addLine counts what stands in a line.
func (s *shape) addLine(line []byte) {
	inWord, inNumber, dollar := false, false, false
	before := rune(' ') // the last letter that is no space
	for i := 0; i < len(line); {
		r, n := rune(line[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(line[i:])
		}
		switch {
		case unspaced(r):
			s.words++
			s.unspaced++
			inWord, inNumber = false, false
		case '0' <= r && r <= '9':
			if !inNumber && !inWord {
				s.numbers++
			}
			inNumber = true
		case isWord(r):
			if !inWord {
				s.words++
			}
			s.letters++
			inWord, inNumber = true, false
		case inNumber && (r == '.' || r == ','):
		default:
			s.addMark(line, i, r, before, &dollar)
			inWord, inNumber = false, false
		}
		if r != ' ' {
			before = r
		}
		i += n
	}
}

// addMark counts what a letter that is part of no word begins.
func (s *shape) addMark(line []byte, i int, r, before rune, dollar *bool) {
	switch r {
	case '?', '？', '؟', ';', '⁇':
		if r != before && r != ';' {
			s.questions++
		}
	case ':':
		if bytes.HasPrefix(line[i:], []byte("://")) {
			s.urls++
		}
	case '$':
		if *dollar = !*dollar && i+1 < len(line) && (line[i+1] < '0' || line[i+1] > '9'); *dollar {
			s.math++
		}
	case '\\':
		if i+1 < len(line) && (line[i+1] == '(' || line[i+1] == '[' || 'a' <= line[i+1] && line[i+1] <= 'z' && line[i+1] != 'n' && line[i+1] != 't') {
			s.math++
		}
	case '=', '^', '∫', '∑', '√', '≤', '≥', '≠', '∞', '±', '×', '÷', '∂', 'π':
		s.math++
	}
}
