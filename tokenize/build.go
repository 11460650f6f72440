// Making a tokenizer of the parts of a tokenizer.json.

package tokenize

import (
	"fmt"
	"unicode/utf8"
)

// builder is a tokenizer being built.
type builder struct {
	*Tokenizer
	file       *file
	byteLevel  bool                      // the pre-tokenizer ends in ByteLevel
	hasFrame   bool                      // a post-processor adds tokens
	whiteSpace []int                     // the indexes of the scanners that are WhitespaceSplit
	spell      func(token string) string // what a token of the vocabulary stands for
}

// The most that a file may ask for, far more than any does today. Each normalizer and scanner goes
// through every text: a file with megabytes of them would cost minutes a text.
const (
	maxPart     = 1 << 20 // bytes of the normalizer, the pre-tokenizer or the post-processor
	maxSteps    = 16      // normalizers, or scanners
	maxGrowth   = 64      // how many times as long normalizers may make a text
	maxAround   = 64      // tokens around a text
	maxAllAdded = 4 << 20 // bytes of all added tokens
)

// bounded refuses what would cost too much for each text.
func (b *builder) bounded() error {
	growth := 1
	for _, n := range b.normalisers {
		switch n := n.(type) {
		case replacing:
			growth *= max((len(n.to)+len(n.from)-1)/len(n.from), 1)
		case prepending:
			growth *= max(len(n.prefix)/maxGrowth, 1)
		case collapsing:
			growth *= max((len(n.to)+1)/2, 1)
		case *charsmap:
			growth *= max(n.growth, 1)
		}
		if growth > maxGrowth {
			return fmt.Errorf("normalizers that make a text more than %d times as long: %w", maxGrowth, ErrUnsupported)
		}
	}
	if len(b.normalisers) > maxSteps || len(b.scanners) > maxSteps {
		return fmt.Errorf("more than %d normalizers or pre-tokenizers: %w", maxSteps, ErrUnsupported)
	}
	if len(b.before)+len(b.after) > maxAround {
		return fmt.Errorf("more than %d tokens around a text: %w", maxAround, ErrUnsupported)
	}
	return nil
}

func (f *file) tokenizer() (*Tokenizer, error) {
	b := &builder{Tokenizer: &Tokenizer{u: unicodes(), cache: new(wordCache), two: &frame{second: 1}}, file: f}
	for _, part := range []struct {
		name  string
		build func() error
	}{
		{"normalizer", func() error { return b.normalizer(f.normalizer) }},
		{"pre_tokenizer", func() error { return b.preTokenizer(f.preTokenizer) }},
		{"model", b.model},
		{"added_tokens", b.addedTokens},
		{"pre_tokenizer", b.metaspaceFirst},
		{"post_processor", func() error { return b.postProcessor(f.postProcessor) }},
	} {
		err := part.build()
		if err == nil {
			err = b.bounded()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return b.Tokenizer, nil
}

// addedTokens gives added tokens their ids as the library does: the vocabulary's where it has the
// token, else the next free one. The ids in the file are not used.
func (b *builder) addedTokens() error {
	tokens := b.file.model.tokens
	next := uint32(b.file.model.size())
	known, place := map[string]uint32{}, map[uint32]int{}
	var all []addedToken
	size := 0
	for _, a := range b.file.added {
		if a.Content == "" {
			continue
		}
		if size += len(a.Content); size > maxAllAdded {
			return fmt.Errorf("more than %d bytes: %w", maxAllAdded, ErrUnsupported)
		}
		if !utf8.ValidString(a.Content) {
			return fmt.Errorf("%.40q is no UTF-8", a.Content)
		}
		id, ok := known[a.Content]
		if !ok {
			if id, ok = tokens[a.Content]; !ok {
				id = next
				next++
			}
		}
		known[a.Content], a.token = id, id
		if i, ok := place[id]; ok {
			all[i] = a
			continue
		}
		place[id] = len(all)
		all = append(all, a)
	}
	var raw, normalised []addedToken
	var rawText, normalisedText []string
	for _, a := range all {
		if a.Normalized {
			normalised = append(normalised, a)
			normalisedText = append(normalisedText, string(b.normalise([]byte(a.Content), new(scratch))))
		} else {
			raw, rawText = append(raw, a), append(rawText, a.Content)
		}
	}
	var err error
	if b.raw, err = newFinder(b.u, raw, rawText); err != nil {
		return err
	}
	if b.normalised, err = newFinder(b.u, normalised, normalisedText); err != nil {
		return err
	}
	b.marks(all)
	b.vocabulary = newVocabulary(tokens, all, b.spell)
	return nil
}

// marks decides which added tokens leave marks. If any of them is single_word, none does: a
// single_word token inside a word is skipped, and where the search goes on after it changes what
// is found next.
func (b *builder) marks(all []addedToken) {
	single := false
	for _, a := range all {
		b.reach = max(b.reach, len(a.Content))
		single = single || a.SingleWord
	}
	for _, f := range []*finder{b.raw, b.normalised} {
		if f == nil {
			continue
		}
		f.apart = make([]bool, len(f.added))
		for i := range f.added {
			f.apart[i] = !single && f.added[i].apart()
		}
	}
}

// metaspaceFirst refuses prepend_scheme "first" where the library may put the mark elsewhere than
// this package does. The library asks whether a piece comes from the first character of the text.
// If a normalizer drops that character, or merges it with the next, no piece does. If one makes
// several characters of it, pieces behind an added token may, too.
func (b *builder) metaspaceFirst() error {
	if b.metaspace == nil || b.metaspace.prepend != "first" {
		return nil
	}
	for _, n := range b.normalisers {
		drops, grows := false, true
		switch n := n.(type) {
		case replacing:
			from, to := utf8.RuneCount(n.from), utf8.RuneCount(n.to)
			drops, grows = from > 1 || to == 0, to > 1
		case cleaning:
			drops = n.clean
		case dropping, stripping, collapsing, *charsmap:
			drops = true
		}
		if drops {
			return unsupported("with a normalizer that may drop the first character, prepend_scheme", b.metaspace.prepend)
		}
		if grows && b.normalised != nil {
			return unsupported("with added tokens of the normalised text and a normalizer that may make several characters of one, prepend_scheme",
				b.metaspace.prepend)
		}
	}
	return nil
}
