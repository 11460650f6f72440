// Package tokenize turns text into a model's tokens, by the model's own tokenizer.json (Hugging
// Face's format): byte-level BPE and BPE of characters with byte fallback, as engines have them;
// WordPiece and Unigram, as encoders do.
//
//	t, err := tokenize.Open("/models/qwen/tokenizer.json")
//	ids := t.Append(nil, []byte("Hello"), true)
//
// For an encoder: the tokens with their places in the text, cut to a length by the caller, and
// framed by [CLS] and [SEP]:
//
//	ids, spans := t.AppendSpans(ids[:0], spans[:0], text)
//	input, types := t.Frame(input[:0], types[:0], ids[:min(len(ids), 512-t.Around(false))])
//
// The tokens equal those of the reference library, token for token
// (github.com/huggingface/tokenizers, which engines and encoders use). A file that needs
// something that this package does not have is refused with ErrUnsupported, and never tokenised
// wrongly.
package tokenize

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"unicode/utf8"
)

// ErrUnsupported is wrapped by errors of Open and Read for files that may be good but ask for
// something that this package does not do. The error names it.
var ErrUnsupported = errors.New("not supported")

// Tokenizer is one tokenizer.json. Its methods may be called by many goroutines at once.
//
// The way of a text, as in the reference library:
//  1. Added tokens that are not `normalized` are cut out; each is one token.
//  2. What lies between them is normalised, and the other added tokens are cut out of that.
//  3. What lies between those is cut into words.
//  4. The model turns each word into tokens.
type Tokenizer struct {
	u             *unicodeTables
	raw           *finder // nil: no such tokens
	normalisers   []normaliser
	normalised    *finder  // nil: no such tokens
	outer         *scanner // WhitespaceSplit before metaspace; nil: there is none
	metaspace     *metaspace
	prefixSpace   bool // ByteLevel's add_prefix_space
	scanners      []scanner
	bpe           *bpe       // or
	wordPiece     *wordPiece // or
	unigram       *unigram
	cache         *wordCache
	before, after []uint32 // what the post-processor adds
	one           frame    // the same, with types
	two           *frame   // around two texts; nil: it takes no two
	trim          bool     // the post-processor takes white space off spans,
	trimPrefixed  bool     // but for a space that the pre-tokenizer has put there
	vocabulary    vocabulary
	reach         int // bytes of the longest added token
}

// maxFile is the most bytes of a tokenizer.json; the largest of today's have 35 MB.
const maxFile = 256 << 20

// Open reads a tokenizer.json.
func Open(path string) (*Tokenizer, error) {
	info, err := os.Stat(path) // opening a pipe would wait for its writer
	if err != nil {
		return nil, fmt.Errorf("cannot read tokenizer: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("cannot read tokenizer %q: not a file of at most %d bytes", path, maxFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read tokenizer: %w", err)
	}
	t, err := Read(data)
	if err != nil {
		return nil, fmt.Errorf("cannot read tokenizer %q: %w", path, err)
	}
	return t, nil
}

// Read reads the bytes of a tokenizer.json; it keeps none of them. Errors name the part of the file.
func Read(data []byte) (*Tokenizer, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("more than %d bytes", maxFile)
	}
	f, err := readFile(data)
	if err != nil {
		return nil, err
	}
	return f.tokenizer()
}

// scratch is the working space of one call.
type scratch struct {
	valid  []byte    // the text, if it was not valid UTF-8
	text   [2][]byte // normalised; the normalisers use the two in turn
	wide   []byte    // with characters taken apart
	marked []byte    // with metaspace or a space before it
	runes  []ranked
	merger merger
	ways   lattice
	marks  *marking // nil: nobody asks

	// Only used by AppendSpans.
	trace  tracer
	traced [2][]Span // where the bytes of text came from
	valids []Span    // and those of valid
	mark   []Span    // and those of marked
	again  []uint32
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// maxKept is the most bytes of working space that waits for the next call.
const maxKept = 8 << 20

func (s *scratch) size() int {
	m := &s.merger
	return cap(s.valid) + cap(s.text[0]) + cap(s.text[1]) + cap(s.wide) + cap(s.marked) + 12*cap(s.runes) +
		4*(cap(m.symbols)+cap(m.next)+cap(m.prev)) + 8*cap(m.pairs) + 16*cap(m.heap) + m.rows.size() +
		16*(cap(s.ways.best)+cap(s.ways.places)) +
		8*(cap(s.traced[0])+cap(s.traced[1])+cap(s.valids)+cap(s.mark)) + 4*cap(s.again)
}

// Append appends the tokens of text to dst. With specials it also adds what the file's
// post-processor puts around a text, such as a token for its beginning (`add_special_tokens` of
// the engines; chat templates bring their own, so their text is tokenised without). Special
// tokens that stand in the text are tokens in both cases, as they are for the engines. Bytes that
// are not valid UTF-8 count as U+FFFD, one for each sequence that is cut short.
//
// Once the working space has grown, nothing is allocated but dst. With BPE a word of n bytes costs
// n log n steps; with Unigram each byte costs up to as many steps as the longest piece has bytes;
// everything else is linear.
func (t *Tokenizer) Append(dst []uint32, text []byte, specials bool) []uint32 {
	s := scratches.Get().(*scratch)
	text = text[:len(text):len(text)] // see wordKey.set
	if specials {
		dst = append(dst, t.before...)
	}
	if !utf8.Valid(text) {
		s.valid = appendValid(s.valid[:0], text)
		text = s.valid
	}
	dst = t.text(dst, text, true, s)
	if specials {
		dst = append(dst, t.after...)
	}
	s.release()
	return dst
}

func (s *scratch) release() {
	s.marks = nil
	if s.size() <= maxKept {
		scratches.Put(s)
	}
}

// text cuts out the added tokens that are looked for in the text as it is. first says that nothing
// lies before it.
func (t *Tokenizer) text(dst []uint32, text []byte, first bool, s *scratch) []uint32 {
	done := 0
	if t.raw != nil {
		for i := 0; ; {
			hit, ok := t.raw.find(text, i, done)
			if !ok {
				break
			}
			if done < hit.from {
				dst = t.piece(dst, text[done:hit.from], first && done == 0, s)
			}
			dst = append(dst, hit.token)
			done, i = hit.to, hit.next
			if s.marks != nil {
				s.marks.at(t.raw, &hit, done, len(dst))
			}
		}
	}
	if done < len(text) {
		dst = t.piece(dst, text[done:], first && done == 0, s)
	}
	return dst
}

// piece normalises and cuts out the other added tokens. first says that the piece begins the text.
func (t *Tokenizer) piece(dst []uint32, text []byte, first bool, s *scratch) []uint32 {
	if s.marks != nil {
		// Until something normalises it, a piece is a sub-slice of the text.
		s.marks.passed = cap(s.marks.text) - cap(text)
	}
	text = t.normalise(text, s)
	done := 0
	if t.normalised != nil {
		for i := 0; ; {
			hit, ok := t.normalised.find(text, i, done)
			if !ok {
				break
			}
			if done < hit.from {
				dst = t.words(dst, text[done:hit.from], first && done == 0, s)
			}
			dst = append(dst, hit.token)
			done, i = hit.to, hit.next
			if s.marks != nil && len(t.normalisers) == 0 {
				s.marks.at(t.normalised, &hit, s.marks.passed+done, len(dst))
			}
		}
	}
	if done < len(text) {
		dst = t.words(dst, text[done:], first && done == 0, s)
	}
	return dst
}

func (t *Tokenizer) normalise(text []byte, s *scratch) []byte {
	side := 0
	for _, n := range t.normalisers {
		if n.keeps(text) {
			continue
		}
		s.text[side] = n.append(s.text[side][:0], text, s)
		text = s.text[side]
		side ^= 1
	}
	return text
}

// words cuts a text that is not empty into words.
func (t *Tokenizer) words(dst []uint32, text []byte, first bool, s *scratch) []uint32 {
	if t.outer == nil {
		return t.marked(dst, text, first, s)
	}
	for i := 0; i < len(text); {
		var from int
		if from, i = t.outer.next(text, i); from < i {
			dst = t.marked(dst, text[from:i], first, s)
		}
	}
	return dst
}

// marked writes spaces as Metaspace or add_prefix_space ask for it, in a text that is not empty,
// and cuts that into words.
func (t *Tokenizer) marked(dst []uint32, text []byte, first bool, s *scratch) []uint32 {
	switch {
	case t.metaspace != nil:
		s.marked = t.metaspace.append(s.marked[:0], text, first)
		text = s.marked
	case t.prefixSpace && text[0] != ' ':
		s.marked = append(append(s.marked[:0], ' '), text...)
		text = s.marked
	}
	return t.split(dst, text, 0, s)
}

// split cuts a text with the scanners from the given one on.
func (t *Tokenizer) split(dst []uint32, text []byte, scanner int, s *scratch) []uint32 {
	if scanner == len(t.scanners) {
		return t.word(dst, text, s)
	}
	scan, last := &t.scanners[scanner], scanner+1 == len(t.scanners)
	for i := 0; i < len(text); {
		if last && scan.plain != noPlain {
			if dst, i = t.cache.known(dst, text, i, scan.plain); i == len(text) {
				break
			}
			if to := scan.plain.end(text, i); to > i {
				dst = t.word(dst, text[i:to], s)
				i = to
				continue
			}
		}
		from, to := scan.next(text, i)
		i = to
		switch {
		case from == to:
		case last:
			dst = t.word(dst, text[from:to], s)
		default:
			dst = t.split(dst, text[from:to], scanner+1, s)
		}
	}
	return dst
}

// word appends the tokens of one word.
func (t *Tokenizer) word(dst []uint32, w []byte, s *scratch) []uint32 {
	switch {
	case len(w) <= maxKey:
		var key wordKey
		key.set(w)
		dst, ok := t.cache.append(dst, &key)
		if ok {
			return dst
		}
		start := len(dst)
		dst = t.model(dst, w, s)
		t.cache.put(&key, dst[start:])
		return dst
	case t.bpe != nil && t.bpe.glue != nil:
		return t.longWord(dst, w, s)
	}
	return t.model(dst, w, s)
}

// longWord cuts a word only where that loses no merge, so that its parts may be found in the
// cache.
func (t *Tokenizer) longWord(dst []uint32, w []byte, s *scratch) []uint32 {
	if token, ok := t.bpe.whole[string(w)]; ok {
		return append(dst, token)
	}
	for i := 0; i < len(w); {
		part := w[i:t.bpe.glue.part(w, i)]
		i += len(part)
		if len(part) > maxKey {
			dst = t.bpe.merge(dst, part, &s.merger)
			continue
		}
		var key wordKey
		key.set(part)
		if t.bpe.whole != nil { // as a whole word, the same text may be a single token
			key.size |= isPart
		}
		var ok bool
		if dst, ok = t.cache.append(dst, &key); !ok {
			start := len(dst)
			dst = t.bpe.merge(dst, part, &s.merger)
			t.cache.put(&key, dst[start:])
		}
	}
	return dst
}

func (t *Tokenizer) model(dst []uint32, w []byte, s *scratch) []uint32 {
	switch {
	case t.bpe != nil:
		return t.bpe.word(dst, w, &s.merger)
	case t.wordPiece != nil:
		return t.wordPiece.word(dst, w)
	}
	return t.unigram.word(dst, w, &s.ways)
}

// Size is one more than the highest token.
func (t *Tokenizer) Size() int { return t.vocabulary.size() }

// AppendBytes appends what a token stands for to dst: the bytes of a byte-level token or of one like
// <0x0A>, else its text as the vocabulary spells it; nothing for ids that are no token.
func (t *Tokenizer) AppendBytes(dst []byte, token uint32) []byte {
	return t.vocabulary.append(dst, token)
}

// AppendText appends a token as a reader sees it in a text: the mark that SentencePiece's
// vocabularies have for a space is a space, and a WordPiece token has a space before it unless it
// continues a word.
func (t *Tokenizer) AppendText(dst []byte, token uint32) []byte {
	start := len(dst)
	if t.wordPiece != nil {
		dst = append(dst, ' ')
	}
	dst = t.vocabulary.append(dst, token)
	if t.wordPiece != nil && bytes.HasPrefix(dst[start+1:], []byte("##")) {
		return append(dst[:start], dst[start+3:]...)
	}
	if bytes.Contains(dst[start:], []byte(blankMark)) {
		dst = append(dst[:start], bytes.ReplaceAll(dst[start:], []byte(blankMark), []byte(" "))...)
	}
	return dst
}

const blankMark = "\u2581"
