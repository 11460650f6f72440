// Tokens with their places in the text, for callers that name parts of the text.

package tokenize

import (
	"bytes"
	"unicode/utf8"
)

// AppendSpans is like Append without specials, and also appends the place of each token in text
// to spans. text must be shorter than 4 GiB. It takes two to four times as long as Append. Once
// the working space has grown, nothing is allocated but dst and spans. The working space may be
// some 50 bytes for each byte of a normalised text, so a caller that is sent texts of any length
// must cut them first.
//
// The spans are those of the reference library, in bytes of text. They cover whole characters: if
// several tokens share a character, the span of each covers it. A token for a space that the
// tokenizer has put before a text covers the first character of the text. A token of normalised
// text covers the characters from which it was made. A broken sequence of bytes is one character.
//
// One thing differs: if the tokens of a BPE model do not spell the word, as with unknown
// characters, each token covers the whole word here, but only parts of it in the library.
func (t *Tokenizer) AppendSpans(dst []uint32, spans []Span, text []byte) ([]uint32, []Span) {
	s := scratches.Get().(*scratch)
	w := spanner{t: t, s: s, dst: dst, spans: spans, text: text[:len(text):len(text)], first: len(spans)}
	whole := aligned{text: w.text}
	if !utf8.Valid(text) {
		whole = s.validAligned(text)
	}
	w.raw(whole)
	s.release()
	return w.dst, w.spans
}

// validAligned is appendValid with spans.
func (s *scratch) validAligned(text []byte) aligned {
	s.valid, s.valids = s.valid[:0], s.valids[:0]
	for i := 0; i < len(text); {
		n, broken := validSize(text[i:])
		size := len(s.valid)
		if broken {
			s.valid = append(s.valid, "\ufffd"...)
		} else {
			s.valid = append(s.valid, text[i:i+n]...)
		}
		for range len(s.valid) - size {
			s.valids = append(s.valids, Span{uint32(i), uint32(i + n)})
		}
		i += n
	}
	return aligned{text: s.valid, from: s.valids}
}

// spanner takes a text through the steps described at Tokenizer, and makes spans on the way.
type spanner struct {
	t     *Tokenizer
	s     *scratch
	dst   []uint32
	spans []Span
	text  []byte
	first int // spans that were there before
}

// raw cuts out the added tokens that are looked for in the text as it is.
func (w *spanner) raw(text aligned) {
	w.cut(w.t.raw, text, func(part aligned, first bool) { w.piece(part, first) })
}

// cut calls between for each part of the text between two tokens that the finder finds. first
// says that nothing lies before it.
func (w *spanner) cut(f *finder, text aligned, between func(part aligned, first bool)) {
	done := 0
	for i := 0; f != nil; {
		hit, ok := f.find(text.text, i, done)
		if !ok {
			break
		}
		if done < hit.from {
			between(text.cut(done, hit.from), done == 0)
		}
		w.dst, w.spans = append(w.dst, hit.token), append(w.spans, text.span(hit.from, hit.to))
		if w.t.trim {
			w.trimmed(len(w.spans)-1, text.text[hit.from:hit.to], false)
		}
		done, i = hit.to, hit.next
	}
	if done < len(text.text) {
		between(text.cut(done, len(text.text)), done == 0)
	}
}

// piece normalises and cuts out the other added tokens.
func (w *spanner) piece(text aligned, first bool) {
	side := 0
	for _, n := range w.t.normalisers {
		if n.keeps(text.text) {
			continue
		}
		text = w.traced(text, &w.s.text[side], &w.s.traced[side], func(t *tracer) { n.trace(t, w.s) })
		side ^= 1
	}
	w.cut(w.t.normalised, text, func(part aligned, behind bool) { w.words(part, first && behind) })
}

// traced returns the result of trace, in buffers of the working space.
func (w *spanner) traced(text aligned, bytes *[]byte, from *[]Span, trace func(t *tracer)) aligned {
	t := &w.s.trace
	*t = tracer{old: text, text: (*bytes)[:0], from: (*from)[:0]}
	trace(t)
	*bytes, *from = t.text, t.from
	made := aligned{text: t.text, from: t.from}
	*t = tracer{}
	return made
}

func (w *spanner) words(text aligned, first bool) {
	if w.t.outer == nil {
		w.marked(text, first)
		return
	}
	for i := 0; i < len(text.text); {
		var from int
		if from, i = w.t.outer.next(text.text, i); from < i {
			w.marked(text.cut(from, i), first)
		}
	}
}

func (w *spanner) marked(text aligned, first bool) {
	switch t := w.t; {
	case t.metaspace != nil:
		text = w.traced(text, &w.s.marked, &w.s.mark, func(tr *tracer) { t.metaspace.trace(tr, first) })
	case t.prefixSpace && text.text[0] != ' ':
		text = w.traced(text, &w.s.marked, &w.s.mark, func(tr *tracer) {
			tr.prepend([]byte{' '})
			tr.keep(len(tr.rest()))
		})
	}
	w.split(text, 0)
}

func (w *spanner) split(text aligned, scanner int) {
	if scanner == len(w.t.scanners) {
		w.word(text)
		return
	}
	for i := 0; i < len(text.text); {
		var from int
		if from, i = w.t.scanners[scanner].next(text.text, i); from < i {
			w.split(text.cut(from, i), scanner+1)
		}
	}
}

// word appends the tokens of one word, with spans.
func (w *spanner) word(text aligned) {
	t, start := w.t, len(w.dst)
	w.dst = t.word(w.dst, text.text, w.s)
	tokens := w.dst[start:]
	switch {
	case t.unigram != nil && t.unigram.unclear(tokens):
		w.unigramWord(text)
	case t.wordPiece != nil && len(tokens) == 1: // it may be unknown
		w.spans = append(w.spans, text.span(0, len(text.text)))
	default:
		w.spelled(tokens, text)
	}
	for i := 0; t.trim && i < len(tokens); i++ {
		value := t.valueOf(tokens[i])
		if t.unigram != nil && tokens[i] == t.unigram.unknown { // the unknown token stands for the text at its place
			p := w.s.ways.places[i]
			value = text.text[p.from:p.to]
		}
		w.trimmed(len(w.spans)-len(tokens)+i, value, t.bpe != nil && t.bpe.bytes != nil)
	}
}

// valueOf returns a token's text as trimming sees it. The text of a byte token such as <0x20> is
// not white space.
func (t *Tokenizer) valueOf(token uint32) []byte {
	value := t.vocabulary.of(token)
	var bytes *[256]uint32
	switch {
	case t.unigram != nil:
		bytes = t.unigram.byteFallback
	case t.bpe != nil:
		bytes = t.bpe.byteFallback
	}
	if bytes != nil && len(value) == 1 && bytes[value[0]] == token {
		return nil
	}
	return value
}

// spelled appends the spans of tokens that follow one another, each as long as the vocabulary says.
func (w *spanner) spelled(tokens []uint32, text aligned) {
	v, total := &w.t.vocabulary, 0
	for i, token := range tokens {
		total += len(v.of(token)) - w.t.prefixOf(i)
	}
	at := 0
	for i, token := range tokens {
		if total != len(text.text) {
			w.spans = append(w.spans, text.span(0, len(text.text)))
			continue
		}
		size := len(v.of(token)) - w.t.prefixOf(i)
		if size <= 0 { // an empty token has no place
			w.spans = append(w.spans, text.span(at, at+1))
			continue
		}
		w.spans = append(w.spans, text.span(at, at+size))
		at += size
	}
}

// prefixOf is the bytes of a word's token that do not stand in the text: the ## of WordPiece.
func (t *Tokenizer) prefixOf(i int) int {
	if t.wordPiece == nil || i == 0 {
		return 0
	}
	return t.wordPiece.prefix
}

// unigramWord appends the spans of a word by cutting it again.
func (w *spanner) unigramWord(text aligned) {
	l := &w.s.ways
	l.noted = true
	w.s.again = w.t.unigram.word(w.s.again[:0], text.text, l)
	l.noted = false
	for _, p := range l.places {
		w.spans = append(w.spans, text.span(p.from, p.to))
	}
}

// unclear reports whether the vocabulary leaves open how long some of these tokens are.
func (u *unigram) unclear(tokens []uint32) bool {
	for _, token := range tokens {
		if token == u.unknown || token >= u.firstByte && token <= u.lastByte {
			return true
		}
	}
	return false
}

// trimmed takes white space off both ends of a span, as ByteLevel and RobertaProcessing do: as
// many characters as the token's text has white space at that end.
func (w *spanner) trimmed(i int, token []byte, ofBytes bool) {
	// In byte-level tokens only the space counts as white space, because the library spells every
	// other byte with a letter.
	isSpace := func(r rune) bool {
		return r == ' ' || !ofBytes && (r == '\u0120' || w.t.u.bert.of(r)&bertWhite != 0)
	}
	span := &w.spans[i]
	leading := runesOf(token[:len(token)-len(bytes.TrimLeftFunc(token, isSpace))])
	trailing := runesOf(token[len(bytes.TrimRightFunc(token, isSpace)):])
	if leading == 1 && w.t.trimPrefixed && (i == w.first || span.Start == 0) {
		leading = 0
	}
	for ; leading > 0 && span.Start < span.End; leading-- {
		n, _ := validSize(w.text[span.Start:span.End])
		span.Start += uint32(n)
	}
	for ; trailing > 0 && span.Start < span.End; trailing-- {
		_, n := utf8.DecodeLastRune(w.text[span.Start:span.End])
		span.End -= uint32(n)
	}
}
