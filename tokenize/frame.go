// What stands around texts for a model: [CLS] text [SEP], and two texts apart.

package tokenize

// special is a token that the post-processor adds, and which text it is counted to (token_type_ids).
type special struct {
	token uint32
	kind  uint8
}

// frame is what a post-processor adds to one text or to two.
type frame struct {
	before, between, after []special
	first, second          uint8 // the types of the texts
}

func tokensOf(all []special) (ids []uint32) {
	for _, s := range all {
		ids = append(ids, s.token)
	}
	return ids
}

// Around is how many tokens Frame or, with two texts, FramePair adds to those of the texts. A caller who
// has to keep to a model's length takes that many from it and cuts the tokens of the texts.
func (t *Tokenizer) Around(two bool) int {
	f := &t.one
	if two && t.two != nil {
		f = t.two
	}
	return len(f.before) + len(f.between) + len(f.after)
}

// Frame appends the tokens of a text to dst with what the post-processor puts around, as in
// [CLS] text [SEP] or <s> text </s>, and the type of each token (token_type_ids) to types.
func (t *Tokenizer) Frame(dst []uint32, types []uint8, text []uint32) ([]uint32, []uint8) {
	dst, types = appendSpecials(dst, types, t.one.before)
	dst, types = appendTokens(dst, types, text, t.one.first)
	return appendSpecials(dst, types, t.one.after)
}

// FramePair does the same with two texts, as in [CLS] a [SEP] b [SEP]. It appends nothing and returns
// false where the file does not say how two texts are put together.
func (t *Tokenizer) FramePair(dst []uint32, types []uint8, a, b []uint32) ([]uint32, []uint8, bool) {
	f := t.two
	if f == nil {
		return dst, types, false
	}
	dst, types = appendSpecials(dst, types, f.before)
	dst, types = appendTokens(dst, types, a, f.first)
	dst, types = appendSpecials(dst, types, f.between)
	dst, types = appendTokens(dst, types, b, f.second)
	dst, types = appendSpecials(dst, types, f.after)
	return dst, types, true
}

func appendSpecials(dst []uint32, types []uint8, all []special) ([]uint32, []uint8) {
	for _, s := range all {
		dst, types = append(dst, s.token), append(types, s.kind)
	}
	return dst, types
}

func appendTokens(dst []uint32, types []uint8, text []uint32, kind uint8) ([]uint32, []uint8) {
	for range text {
		types = append(types, kind)
	}
	return append(dst, text...), types
}
