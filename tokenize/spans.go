// Tokens with where they stand in the text, for whoever names parts of it.

package tokenize

import (
	"bytes"
	"unicode/utf8"
)

// AppendSpans is Append without specials that also appends to spans where each token stands in
// text, which must be shorter than 4 GiB. It takes two to four times as long as Append. Once the
// working space has grown, nothing is allocated but dst and spans. That space is up to some 50
// bytes for each byte of a normalised text: whoever is sent texts of any length cuts them first.
//
// The spans are those of the reference library, in bytes of text. They are whole characters: tokens
// that share a character all have it. A token for a space that the tokenizer has put before a text
// has the text's first character, a token of normalised text the characters that it was made of. A
// broken sequence of bytes is one character.
//
// One thing differs: where the tokens of a BPE model do not spell the word, as with unknown
// characters, each has the whole word here, and parts of it in the library.
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

// spanner goes the way of a text (see Tokenizer) with spans.
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

// cut gives between what lies between the tokens that a finder finds. first says that nothing lies
// before it.
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

// traced is what trace makes of a text, in buffers of the working space.
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
		if t.unigram != nil && tokens[i] == t.unigram.unknown { // it has the text's own
			p := w.s.ways.places[i]
			value = text.text[p.from:p.to]
		}
		w.trimmed(len(w.spans)-len(tokens)+i, value, t.bpe != nil && t.bpe.bytes != nil)
	}
}

// valueOf is a token's text as trimming sees it: that of a byte like <0x20> is no white space.
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
		if size <= 0 { // a token of nothing has no place
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

// unclear says whether the vocabulary does not say how long each of these tokens is.
func (u *unigram) unclear(tokens []uint32) bool {
	for _, token := range tokens {
		if token == u.unknown || token >= u.firstByte && token <= u.lastByte {
			return true
		}
	}
	return false
}

// trimmed takes white space off a span, as ByteLevel and RobertaProcessing do: as many characters
// as the token's text has of it at its ends.
func (w *spanner) trimmed(i int, token []byte, ofBytes bool) {
	// Of tokens of bytes only the space is white space: the library spells all others with letters.
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
