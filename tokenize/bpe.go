// The BPE model: words to tokens, of bytes or of characters.

package tokenize

// none marks an entry without a token.
const none = ^uint32(0)

// bpe is a model of byte pairs. Immutable.
type bpe struct {
	merges *pairTable
	whole  map[string]uint32 // with ignore_merges: the words that are tokens as a whole
	// Of a byte-level vocabulary: the token of each byte, or none.
	bytes *[256]uint32
	// Of other vocabularies: the tokens of characters, and what is used for a character without one.
	characters   *characters
	byteFallback *[256]uint32 // <0x00> and so on; none where there is none
	unknown      uint32       // none: unknown characters are left out
	fuseUnknown  bool
	glue         *glue // where long words may be cut; nil: nowhere
}

// characters maps each character that is a token to that token.
type characters struct {
	page   [0x1100]uint16 // by c>>8: the index in tokens; the first page has no token
	tokens [][256]uint32
}

func newCharacters() *characters {
	c := &characters{tokens: make([][256]uint32, 1)}
	for i := range c.tokens[0] {
		c.tokens[0][i] = none
	}
	return c
}

func (c *characters) set(r rune, token uint32) {
	if c.page[r>>8] == 0 {
		c.page[r>>8] = uint16(len(c.tokens))
		c.tokens = append(c.tokens, c.tokens[0])
	}
	c.tokens[c.page[r>>8]][r&0xff] = token
}

func (c *characters) of(r rune) uint32 { return c.tokens[c.page[r>>8]][r&0xff] }

// word appends the tokens of a word.
func (b *bpe) word(dst []uint32, w []byte, m *merger) []uint32 {
	if token, ok := b.whole[string(w)]; ok {
		return append(dst, token)
	}
	return b.merge(dst, w, m)
}

// merge appends the tokens of a word, or of a part of one, by merging.
func (b *bpe) merge(dst []uint32, w []byte, m *merger) []uint32 {
	m.symbols = m.symbols[:0]
	switch {
	case b.bytes == nil:
		b.fromCharacters(w, m)
	case b.unknown == none:
		for _, c := range w {
			if token := b.bytes[c]; token != none {
				m.symbols = append(m.symbols, token)
			}
		}
	default:
		b.fromBytes(w, m)
	}
	return m.run(dst, b.merges)
}

// fromBytes serves vocabularies that lack some bytes and have an unknown token.
func (b *bpe) fromBytes(w []byte, m *merger) {
	pending := false
	for _, c := range w {
		pending = b.symbol(m, b.bytes[c], pending)
	}
	if pending {
		m.symbols = append(m.symbols, b.unknown)
	}
}

func (b *bpe) fromCharacters(w []byte, m *merger) {
	pending := false
	for i := 0; i < len(w); {
		r, n := decode(w, i)
		token := b.characters.of(r)
		if token == none && b.fallback(w[i:i+n], m) {
			// As in the library, an unknown token that is still pending comes behind these bytes.
			i += n
			continue
		}
		pending = b.symbol(m, token, pending)
		i += n
	}
	if pending {
		m.symbols = append(m.symbols, b.unknown)
	}
}

// symbol appends a token. An unknown character is at first only pending, since several in a row may
// become one token.
func (b *bpe) symbol(m *merger, token uint32, pending bool) bool {
	if token == none && (b.unknown == none || pending && b.fuseUnknown) {
		return pending
	}
	if pending {
		m.symbols = append(m.symbols, b.unknown)
	}
	if token == none {
		return true
	}
	m.symbols = append(m.symbols, token)
	return false
}

func (b *bpe) fallback(char []byte, m *merger) bool {
	if b.byteFallback == nil {
		return false
	}
	for _, c := range char {
		if b.byteFallback[c] == none {
			return false
		}
	}
	for _, c := range char {
		m.symbols = append(m.symbols, b.byteFallback[c])
	}
	return true
}
