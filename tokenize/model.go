// The model, from its vocabulary and merges.

package tokenize

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxUnused bounds the ids without a token, because memory grows with the highest id.
const maxUnused = 1 << 16

func (b *builder) model() error {
	m := &b.file.model
	if m.tokens == nil {
		return errors.New("there is no vocab")
	}
	for token, id := range m.tokens {
		if int(id) > 2*m.size()+maxUnused {
			return unsupported(fmt.Sprintf("%d tokens, and the id %d of", len(m.tokens), id), token)
		}
	}
	switch {
	case m.kind == "BPE" || m.kind == "" && m.hasMerges:
		return b.bpeModel(m)
	case m.kind == "WordPiece":
		return b.wordPieceModel(m)
	case m.kind == "Unigram" || m.kind == "" && m.scores != nil:
		return b.unigramModel(m)
	}
	return unsupported("type", m.kind)
}

// needsScores says whether a vocabulary is of the wrong form for a model.
func needsScores(m *model, wanted bool) error {
	if (m.scores != nil) == wanted {
		return nil
	}
	if wanted {
		return errors.New("vocab is no list of pieces and scores")
	}
	return errors.New("vocab is a list of pieces and scores")
}

func (b *builder) bpeModel(m *model) error {
	s := m.settings
	if err := needsScores(m, false); err != nil {
		return err
	}
	switch {
	case !m.hasMerges:
		return errors.New("there are no merges")
	case s.Dropout != nil && *s.Dropout != 0:
		return unsupported("dropout", fmt.Sprint(*s.Dropout))
	case textOr(s.Prefix) != "":
		return unsupported("continuing_subword_prefix", *s.Prefix)
	case textOr(s.Suffix) != "":
		return unsupported("end_of_word_suffix", *s.Suffix)
	}
	p := &bpe{unknown: none, fuseUnknown: s.FuseUnknown}
	if s.Unknown != nil {
		id, ok := m.tokens[*s.Unknown]
		if !ok {
			return fmt.Errorf("unk_token %.40q is not in the vocabulary", *s.Unknown)
		}
		p.unknown = id
	}
	p.merges = newPairTable(len(m.merges))
	for rank, one := range m.merges {
		p.merges.set(one.left, one.right, uint32(rank), one.token)
	}
	b.bpe = p
	if b.byteLevel {
		return b.ofBytes(m, p)
	}
	b.ofCharacters(m, p)
	return nil
}

func (b *builder) ofBytes(m *model, p *bpe) error {
	spelled, alphabet := byteAlphabet()
	p.bytes = new([256]uint32)
	for i, c := range spelled {
		id, ok := m.tokens[string(c)]
		if !ok {
			if m.settings.ByteFallback {
				return unsupported("byte_fallback with ByteLevel, and no token for", string(c))
			}
			id = none
		}
		p.bytes[i] = id
	}
	words, known, distinct := make([]string, m.highest()+1), make([]bool, m.highest()+1), true
	for token, id := range m.tokens {
		word, ok := fromAlphabet(alphabet, token)
		distinct = distinct && !known[id]
		words[id], known[id] = word, true
		if m.settings.IgnoreMerges && ok {
			if p.whole == nil {
				p.whole = make(map[string]uint32, len(m.tokens))
			}
			p.whole[word] = id
		}
	}
	b.spell = func(token string) string {
		word, _ := fromAlphabet(alphabet, token)
		return word
	}
	// Cut words only if each symbol stands for what the merges spell.
	if slices.Contains(p.bytes[:], none) || !distinct {
		return nil
	}
	p.glue = new(glue)
	for _, one := range m.merges {
		p.glue.addBytes(words[one.left], words[one.right])
	}
	return nil
}

func (b *builder) ofCharacters(m *model, p *bpe) {
	p.characters = newCharacters()
	p.glue = new(glue)
	var fallback [256]uint32
	for i := range fallback {
		fallback[i] = none
	}
	ofByte, ids := map[uint32]bool{}, map[uint32]bool{}
	for token, id := range m.tokens {
		if r, ok := oneRune(token); ok {
			p.characters.set(r, id)
		}
		if c, ok := byteToken(token); ok {
			fallback[c] = id
			ofByte[id] = true
		}
		ids[id] = true
	}
	if m.settings.ByteFallback {
		p.byteFallback = &fallback
	}
	if m.settings.IgnoreMerges {
		p.whole = m.tokens
	}
	// Cut words only if each symbol stands for the character that the merges spell. That does not
	// hold for byte tokens, nor for the unknown token, which may also be joined with the next
	// one.
	cut := m.settings.ByteFallback && len(ofByte) == len(fallback) && len(ids) == len(m.tokens)
	for _, one := range m.merges {
		p.glue.add(one.last, one.first)
		cut = cut && !ofByte[one.left] && !ofByte[one.right]
	}
	if !cut {
		p.glue = nil
	}
	b.spell = func(token string) string {
		if c, ok := byteToken(token); ok {
			return string([]byte{c})
		}
		return token
	}
}

// maxWordRunes bounds max_input_chars_per_word: a word costs its length squared.
const maxWordRunes = 1 << 10

func (b *builder) wordPieceModel(m *model) error {
	s := m.settings
	if err := needsScores(m, false); err != nil {
		return err
	}
	if b.byteLevel {
		return unsupported("behind ByteLevel", m.kind)
	}
	prefix, unknown, limit := "##", "[UNK]", 100
	if s.Prefix != nil {
		prefix = *s.Prefix
	}
	if s.Unknown != nil {
		unknown = *s.Unknown
	}
	if s.MaxRunes != nil {
		limit = *s.MaxRunes
	}
	if limit < 0 || limit > maxWordRunes {
		return unsupported("max_input_chars_per_word", fmt.Sprint(limit))
	}
	id, ok := m.tokens[unknown]
	if !ok {
		return fmt.Errorf("unk_token %.40q is not in the vocabulary", unknown)
	}
	p := &wordPiece{first: m.tokens, following: map[string]uint32{}, prefix: len(prefix), maxRunes: limit, unknown: id}
	for token, id := range m.tokens {
		p.longest = max(p.longest, len(token))
		if rest, ok := strings.CutPrefix(token, prefix); ok && rest != "" {
			p.following[rest] = id
		}
	}
	b.wordPiece = p
	b.spell = func(token string) string { return token }
	return nil
}

const (
	maxPiece  = 512      // bytes of a piece: each place of a text can cost that many steps
	maxPieces = 32 << 20 // bytes of all pieces: the trie can have that many units, of eight bytes each
)

func (b *builder) unigramModel(m *model) error {
	s := m.settings
	if err := needsScores(m, true); err != nil {
		return err
	}
	switch {
	case b.byteLevel:
		return unsupported("behind ByteLevel", m.kind)
	case s.UnknownID == nil: // the library fails at the first text with an unknown character
		return unsupported("unk_id", "null")
	case *s.UnknownID < 0 || *s.UnknownID >= len(m.scores):
		return fmt.Errorf("unk_id %d is not in the vocabulary", *s.UnknownID)
	}
	u := &unigram{firstByte: none, scores: m.scores, unknown: uint32(*s.UnknownID), unknownScore: slices.Min(m.scores) - unknownPenalty}
	total := 0
	for piece := range m.tokens {
		if total += len(piece); total > maxPieces {
			return fmt.Errorf("more than %d bytes of pieces: %w", maxPieces, ErrUnsupported)
		}
		u.longest = max(u.longest, len(piece))
		if len(piece) > maxPiece {
			return fmt.Errorf("a piece of %d bytes (%d are the most), %.40q: %w", len(piece), maxPiece, piece, ErrUnsupported)
		}
	}
	if s.ByteFallback {
		u.byteFallback = new([256]uint32)
		for i := range u.byteFallback {
			u.byteFallback[i] = none
			if id, ok := m.tokens[byteTokenOf(byte(i))]; ok {
				u.byteFallback[i] = id
				u.firstByte, u.lastByte = min(u.firstByte, id), max(u.lastByte, id)
			}
		}
	}
	u.pieces = newTrie(m.tokens)
	b.unigram = u
	b.spell = func(token string) string {
		if c, ok := byteToken(token); ok && s.ByteFallback {
			return string([]byte{c})
		}
		return token
	}
	return nil
}
