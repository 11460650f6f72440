// What blocks are made of besides tokens, and which layers' blocks count.

package kvevents

import (
	"bytes"
	"errors"

	"github.com/tinylib/msgp/msgp"
)

// saltPrefix is what Dynamo's workers put before a salt, so that it is told from other keys.
const saltPrefix = "dynamo-cache-salt:"

var errExtra = errors.New("extra_keys are not one for each block")

// readExtra reads extra_keys: for each block nil or a list of, in this order, the adapter's name, images (a name, or
// a name and where it begins), the salt (first block of a prompt only) and the hash of prompt embeddings. Nothing says
// which is which: a text that is the adapter's name is it, 64 hexadecimal digits are an image, and what else is a text
// in a prompt's first block is the salt.
func (e *event) readExtra() error {
	s := &e.stored
	p := packed{b: e.extra}
	if len(p.b) == 0 || p.kind() != msgp.ArrayType {
		return nil
	}
	count := p.array()
	for block := 0; block < count && p.err == nil; block++ {
		if p.kind() != msgp.ArrayType {
			p.skip() // nil
			continue
		}
		if block >= len(s.Handles) {
			return errExtra
		}
		digest := uint64(0)
		for n := p.array(); n > 0 && p.err == nil; n-- {
			key := p
			raw := p.skip()
			if key.kind() == msgp.StrType && e.plain(key.text(), block) {
				continue
			}
			digest = Digest(digest, raw)
		}
		if digest != 0 {
			for len(s.Extra) < len(s.Handles) {
				s.Extra = append(s.Extra, 0)
			}
			s.Extra[block] = digest
		}
	}
	return p.err
}

// plain reports whether a key is the adapter's name or the salt, and notes the salt.
func (e *event) plain(key []byte, block int) bool {
	s := &e.stored
	if len(s.LoRA) > 0 && bytes.Equal(key, s.LoRA) {
		return true
	}
	salt, marked := bytes.CutPrefix(key, []byte(saltPrefix))
	first := block == 0 && !s.HasParent
	switch {
	case marked, first && len(s.Salt) > 0 && bytes.Equal(key, s.Salt):
		s.Salt = salt
		return true
	case first && len(s.Salt) == 0 && !imageName(key):
		s.Salt = key
		return true
	}
	return false
}

// imageName reports whether a key looks like the name that an engine gives an image: 64 hexadecimal digits.
func imageName(key []byte) bool {
	if len(key) != 64 {
		return false
	}
	for _, b := range key {
		if (b < '0' || b > '9') && (b < 'a' || b > 'f') && (b < 'A' || b > 'F') {
			return false
		}
	}
	return true
}

// Digest adds one key of a block, in msgpack's bytes, to the digest of the keys before it (0 for none): FNV-1a over
// 64 bits. It is never 0.
func Digest(before uint64, key []byte) uint64 {
	h := before
	if h == 0 {
		h = 14695981039346656037
	}
	for _, b := range key {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return max(h, 1)
}

// groups remembers which groups of layers count: a BlockRemoved says only the number of its group. Models with more
// groups than this have none that do not count.
type groups [64]struct{ known, other bool }

// main reports whether the blocks of a group count as a prefix that the engine holds. Of a model whose layers are of
// several kinds the engine tells each block once a group; layers that look back at a window only, or keep a state
// instead of tokens, do not say that the prefix is there. An engine that says no kind has one kind.
func (g *groups) main(group int, layers []byte) bool {
	known := group >= 0 && group < len(g)
	if len(layers) == 0 {
		return !known || !g[group].known || !g[group].other
	}
	other := !mainKind(layers)
	if known {
		g[group].known, g[group].other = true, other
	}
	return !other
}

// mainKind reports whether layers of a kind keep every token.
func mainKind(layers []byte) bool {
	switch string(layers) {
	case "full_attention", "mla_attention", "sink_full_attention":
		return true
	}
	return false
}
