// What stands around texts for a model: [CLS] text [SEP], and two texts apart.

package tokenize

import (
	"encoding/json"
	"errors"
	"fmt"
)

// special is a token that the post-processor adds, with its type (token_type_ids).
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

// Around is how many tokens Frame adds or, with two texts, FramePair. A caller that is bound to a
// model's length must cut the tokens of the texts to that length less Around.
func (t *Tokenizer) Around(two bool) int {
	f := &t.one
	if two && t.two != nil {
		f = t.two
	}
	return len(f.before) + len(f.between) + len(f.after)
}

// Before is how many tokens Frame puts before a text.
func (t *Tokenizer) Before() int { return len(t.one.before) }

// Frame appends to dst the tokens of a text and those that the post-processor puts around them,
// as in [CLS] text [SEP] or <s> text </s>. To types it appends the type of each token
// (token_type_ids).
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

func (b *builder) postProcessor(raw json.RawMessage) error {
	if isNull(raw) {
		return nil
	}
	c, err := readComponent(raw)
	if err != nil {
		return err
	}
	switch c.Type {
	case "Sequence":
		for i, part := range c.Processors {
			if err := b.postProcessor(part); err != nil {
				return fmt.Errorf("%d: %w", i, err)
			}
		}
		return nil
	case "ByteLevel": // changes spans only
		b.trims(c)
		return nil
	case "BertProcessing", "RobertaProcessing":
		if !c.Cls.set || !c.Sep.set {
			return errors.New("cls or sep is missing")
		}
		one := frame{before: []special{{c.Cls.id, 0}}, after: []special{{c.Sep.id, 0}}}
		two := &frame{before: one.before, between: one.after, second: 1, after: []special{{c.Sep.id, 1}}}
		if c.Type == "RobertaProcessing" {
			b.trims(c)
			sep := special{c.Sep.id, 0}
			two = &frame{before: one.before, between: []special{sep, sep}, after: one.after}
		}
		b.framed(one, two)
	case "TemplateProcessing":
		one, err := c.template()
		if err != nil {
			return err
		}
		b.framed(one, c.pairTemplate())
	default:
		return unsupported("type", c.Type)
	}
	return nil
}

func (b *builder) trims(c component) {
	if c.TrimOffsets {
		b.trim, b.trimPrefixed = true, c.AddPrefixSpace == nil || *c.AddPrefixSpace
	}
}

// framed notes a post-processor's frames. A second post-processor puts its frame around that of
// the first. For two texts, the result of two post-processors is not known here.
func (b *builder) framed(one frame, two *frame) {
	if b.hasFrame {
		two = nil
	}
	b.hasFrame = true
	b.one.before, b.one.after = append(one.before, b.one.before...), append(b.one.after, one.after...)
	b.one.first, b.two = one.first, two
	b.before, b.after = tokensOf(b.one.before), tokensOf(b.one.after)
}

// template is the frame of one text.
func (c *component) template() (f frame, err error) {
	texts := 0
	for i, piece := range c.Single {
		switch {
		case piece.Sequence != nil && piece.Sequence.ID == "A":
			texts++
			f.first = piece.Sequence.Type
		case piece.SpecialToken != nil:
			all, ok := c.special(piece.SpecialToken)
			if !ok {
				return f, fmt.Errorf("single %d: special token %.40q is not given", i, piece.SpecialToken.ID)
			}
			if texts == 0 {
				f.before = append(f.before, all...)
			} else {
				f.after = append(f.after, all...)
			}
		default:
			return f, fmt.Errorf("single %d: neither a special token nor the text", i)
		}
	}
	if texts != 1 {
		return f, unsupported("single with the text times", fmt.Sprint(texts))
	}
	return f, nil
}

// pairTemplate is the frame of two texts; nil if the template has none, or one in which the second
// text does not follow the first.
func (c *component) pairTemplate() *frame {
	f, texts := &frame{}, ""
	for _, piece := range c.Pair {
		if s := piece.Sequence; s != nil {
			if texts += s.ID; texts == "A" {
				f.first = s.Type
			} else {
				f.second = s.Type
			}
			continue
		}
		if piece.SpecialToken == nil {
			return nil
		}
		all, ok := c.special(piece.SpecialToken)
		switch {
		case !ok:
			return nil
		case texts == "":
			f.before = append(f.before, all...)
		case texts == "A":
			f.between = append(f.between, all...)
		default:
			f.after = append(f.after, all...)
		}
	}
	if texts != "AB" || len(f.before)+len(f.between)+len(f.after) > maxAround {
		return nil
	}
	return f
}

// special returns the tokens that a special token of the template stands for.
func (c *component) special(part *templatePart) (all []special, ok bool) {
	given, ok := c.SpecialTokens[part.ID]
	for _, id := range given.IDs {
		all = append(all, special{id, part.Type})
	}
	return all, ok
}
