// From the parts of a tokenizer.json to a tokenizer.

package tokenize

import (
	"fmt"
	"unicode/utf8"
)

// builder is a tokenizer being built.
type builder struct {
	*Tokenizer
	file      *file
	byteLevel bool                      // the pre-tokenizer ends in ByteLevel
	spell     func(token string) string // what a token of the vocabulary stands for
}

func (f *file) tokenizer() (*Tokenizer, error) {
	b := &builder{Tokenizer: &Tokenizer{u: unicodes(), cache: new(wordCache)}, file: f}
	for _, part := range []struct {
		name  string
		build func() error
	}{
		{"normalizer", func() error { return b.normalizer(f.normalizer) }},
		{"pre_tokenizer", func() error { return b.preTokenizer(f.preTokenizer) }},
		{"model", b.model},
		{"added_tokens", b.addedTokens},
		{"post_processor", func() error { return b.postProcessor(f.postProcessor) }},
	} {
		if err := part.build(); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return b.Tokenizer, nil
}

// addedTokens gives them their ids as the library does: those of the vocabulary where it has them,
// else the next free ones; what the file says of ids is not asked.
func (b *builder) addedTokens() error {
	tokens := b.file.model.tokens
	next := uint32(len(tokens))
	known, place := map[string]uint32{}, map[uint32]int{}
	var all []addedToken
	for _, a := range b.file.added {
		if a.Content == "" {
			continue
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

// marks says which added tokens leave marks. None does where one of them asks for the end of a word:
// the search for that one goes on behind a place that was no match.
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
