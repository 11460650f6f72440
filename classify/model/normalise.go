// Normalisation before tokenizing: SentencePiece's nmt_nfkc by its precompiled table, white space
// collapsed, as a stream.

package model

import (
	"bytes"
	"unicode/utf8"
)

// normaliser holds the normalisation table.
type normaliser struct {
	trie         trie
	replacements []byte // texts that end with NUL, named by where they begin

	// ascii[b] is what byte b becomes if another ASCII byte or the end follows; 0 where the table
	// must be asked.
	ascii [128]byte
}

func newNormaliser(units, replacements []byte) *normaliser {
	n := &normaliser{trie: trie(units), replacements: replacements}
	for b := range n.ascii {
		n.ascii[b] = n.alone(byte(b))
	}
	return n
}

// alone returns the single byte that ASCII byte b becomes before any ASCII byte, or 0.
func (n *normaliser) alone(b byte) byte {
	base, ends, ok := n.trie.step(n.trie.root(), b)
	if !ok {
		return b
	}
	for c := range byte(utf8.RuneSelf) {
		if _, _, ok := n.trie.step(base, c); ok {
			return 0
		}
	}
	if !ends {
		return b
	}
	if text := n.replacement(n.trie.value(base)); len(text) == 1 {
		return text[0]
	}
	return 0
}

// replacement returns the text that the table holds at place at.
func (n *normaliser) replacement(at uint32) []byte {
	if uint64(at) >= uint64(len(n.replacements)) {
		return nil
	}
	text := n.replacements[at:]
	if end := bytes.IndexByte(text, 0); end >= 0 {
		return text[:end]
	}
	return text
}

// invalid stands for bytes that are no UTF-8.
var invalid = []byte("\uFFFD")

// next returns what the beginning of text becomes, and how many bytes of text that took. The
// result belongs to the table or to text. text is not empty.
func (n *normaliser) next(text []byte) (normal []byte, taken int) {
	if value, length := n.trie.longest(text); length > 0 && uint64(value) < uint64(len(n.replacements)) {
		return n.replacement(value), length
	}
	r, size := utf8.DecodeRune(text)
	if r == utf8.RuneError && size <= 1 {
		return invalid, 1
	}
	return text[:size], size
}
