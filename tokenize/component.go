// Normalizers, pre-tokenizers and post-processors, from how the file says them.

package tokenize

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// component is a normalizer, pre-tokenizer or post-processor as it stands in the file: those members
// of all kinds that matter for the tokens.
type component struct {
	Type string `json:"type"`

	// Sequence
	Normalizers   []json.RawMessage `json:"normalizers"`
	PreTokenizers []json.RawMessage `json:"pretokenizers"`
	Processors    []json.RawMessage `json:"processors"`

	// Replace, Split
	Pattern  struct{ String, Regex *string } `json:"pattern"`
	Content  string                          `json:"content"`
	Behavior string                          `json:"behavior"`
	Invert   bool                            `json:"invert"`

	// Prepend, BertNormalizer
	Prepend            string `json:"prepend"`
	CleanText          bool   `json:"clean_text"`
	HandleChineseChars bool   `json:"handle_chinese_chars"`
	StripAccents       *bool  `json:"strip_accents"`
	Lowercase          bool   `json:"lowercase"`

	// ByteLevel, Metaspace, Digits
	AddPrefixSpace   *bool  `json:"add_prefix_space"`
	UseRegex         *bool  `json:"use_regex"`
	Replacement      string `json:"replacement"`
	PrependScheme    string `json:"prepend_scheme"`
	Split            *bool  `json:"split"`
	IndividualDigits bool   `json:"individual_digits"`

	// TemplateProcessing, BertProcessing, RobertaProcessing
	Single        []templatePiece            `json:"single"`
	SpecialTokens map[string]templateSpecial `json:"special_tokens"`
	Cls, Sep      processorToken
}

type templatePiece struct {
	SpecialToken *struct{ ID string }
	Sequence     *struct{ ID string }
}

type templateSpecial struct {
	IDs []uint32 `json:"ids"`
}

// processorToken is ["[CLS]", 101].
type processorToken struct {
	set bool
	id  uint32
}

func (p *processorToken) UnmarshalJSON(data []byte) error {
	var text string
	two := []any{&text, &p.id}
	if err := json.Unmarshal(data, &two); err != nil {
		return err
	}
	if p.set = len(two) == 2; !p.set {
		return errors.New("not a token and its id")
	}
	return nil
}

// isNull says whether a part is left out.
func isNull(part json.RawMessage) bool { return len(part) == 0 || string(part) == "null" }

func readComponent(raw json.RawMessage) (c component, err error) {
	if len(raw) > maxPart {
		return c, fmt.Errorf("more than %d bytes: %w", maxPart, ErrUnsupported)
	}
	err = json.Unmarshal(raw, &c)
	return c, err
}

func unsupported(what, detail string) error {
	return fmt.Errorf("%s %.200q: %w", what, detail, ErrUnsupported)
}

func (b *builder) normalizer(raw json.RawMessage) error {
	if isNull(raw) {
		return nil
	}
	c, err := readComponent(raw)
	if err != nil {
		return err
	}
	add := func(n normaliser) { b.normalisers = append(b.normalisers, n) }
	switch c.Type {
	case "Sequence":
		for i, part := range c.Normalizers {
			if err := b.normalizer(part); err != nil {
				return fmt.Errorf("%d: %w", i, err)
			}
		}
	case "NFC":
		add(composing{b.u})
	case "NFD":
		add(decomposing{b.u})
	case "Lowercase":
		add(lowering{b.u})
	case "Prepend":
		if c.Prepend == "" { // the library loses its place there, and goes wrong in the next normalizer
			return unsupported("Prepend of the text", "")
		}
		add(prepending{c.Prepend})
	case "Replace":
		if c.Pattern.String == nil || *c.Pattern.String == "" {
			return unsupported("Replace with the pattern", textOr(c.Pattern.Regex))
		}
		add(replacing{[]byte(*c.Pattern.String), []byte(c.Content)})
	case "BertNormalizer":
		if c.CleanText || c.HandleChineseChars {
			add(cleaning{b.u, c.CleanText, c.HandleChineseChars})
		}
		if c.StripAccents == nil && c.Lowercase || c.StripAccents != nil && *c.StripAccents {
			add(decomposing{b.u})
			add(unaccenting{b.u})
		}
		if c.Lowercase {
			add(lowering{b.u})
		}
	default:
		return unsupported("type", c.Type)
	}
	return nil
}

func textOr(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// preTokenizer appends scanners.
func (b *builder) preTokenizer(raw json.RawMessage) error {
	if isNull(raw) {
		return nil
	}
	c, err := readComponent(raw)
	if err != nil {
		return err
	}
	if b.byteLevel {
		return unsupported("behind ByteLevel", c.Type)
	}
	switch c.Type {
	case "Sequence":
		for i, part := range c.PreTokenizers {
			if err := b.preTokenizer(part); err != nil {
				return fmt.Errorf("%d: %w", i, err)
			}
		}
		return nil
	case "ByteLevel":
		return b.byteLevelSplit(c)
	case "Split":
		return b.patternSplit(c)
	case "Metaspace":
		return b.metaspaceSplit(c)
	case "Digits":
		b.scanners = append(b.scanners, digits(b.u, c.IndividualDigits))
		return nil
	case "BertPreTokenizer":
		b.scanners = append(b.scanners, bertWords(b.u))
		return nil
	}
	return unsupported("type", c.Type)
}

func (b *builder) byteLevelSplit(c component) error {
	b.byteLevel = true
	if c.AddPrefixSpace == nil || *c.AddPrefixSpace {
		if len(b.scanners) > 0 || b.metaspace != nil {
			return unsupported("add_prefix_space behind another", c.Type)
		}
		b.prefixSpace = true
	}
	if c.UseRegex == nil || *c.UseRegex {
		b.scanners = append(b.scanners, everywhere(&gpt2{b.u}))
	}
	return nil
}

func (b *builder) patternSplit(c component) error {
	if s := c.Pattern.String; s != nil {
		// Gemma's splits at spaces, of which its normalizer has left none.
		for _, n := range b.normalisers {
			if r, ok := n.(replacing); ok && string(r.from) == *s && !bytes.Contains(r.to, r.from) && len(b.normalisers) == 1 {
				return nil
			}
		}
		return unsupported("Split with the string", *s)
	}
	scan, covers, ok := patterns(b.u, textOr(c.Pattern.Regex))
	if !ok {
		return unsupported("Split with the pattern", textOr(c.Pattern.Regex))
	}
	// What is not matched is removed: the same where nothing is left unmatched.
	if removed := c.Behavior == "Removed" && c.Invert && covers; c.Behavior != "Isolated" && !removed {
		return unsupported("Split with behavior", c.Behavior)
	}
	b.scanners = append(b.scanners, scan)
	return nil
}

func (b *builder) metaspaceSplit(c component) error {
	if len(b.scanners) > 0 || b.metaspace != nil {
		return unsupported("Metaspace behind", "another")
	}
	if c.PrependScheme == "" {
		c.PrependScheme = "always"
	}
	if c.AddPrefixSpace != nil && !*c.AddPrefixSpace && c.PrependScheme != "never" {
		return errors.New("add_prefix_space does not match prepend_scheme")
	}
	switch c.PrependScheme {
	case "always", "first", "never":
	default:
		return unsupported("prepend_scheme", c.PrependScheme)
	}
	if _, ok := oneRune(c.Replacement); !ok {
		return fmt.Errorf("replacement %.40q is not one character", c.Replacement)
	}
	b.metaspace = &metaspace{[]byte(c.Replacement), c.PrependScheme}
	if c.Split == nil || *c.Split {
		b.scanners = append(b.scanners, before(b.metaspace.mark))
	}
	return nil
}

func (b *builder) postProcessor(raw json.RawMessage) error {
	if isNull(raw) {
		return nil
	}
	c, err := readComponent(raw)
	if err != nil {
		return err
	}
	var before, after []uint32
	switch c.Type {
	case "Sequence":
		for i, part := range c.Processors {
			if err := b.postProcessor(part); err != nil {
				return fmt.Errorf("%d: %w", i, err)
			}
		}
		return nil
	case "ByteLevel": // changes offsets only
		return nil
	case "BertProcessing", "RobertaProcessing":
		if !c.Cls.set || !c.Sep.set {
			return errors.New("cls or sep is missing")
		}
		before, after = []uint32{c.Cls.id}, []uint32{c.Sep.id}
	case "TemplateProcessing":
		if before, after, err = c.template(); err != nil {
			return err
		}
	default:
		return unsupported("type", c.Type)
	}
	b.before, b.after = append(before, b.before...), append(b.after, after...)
	return nil
}

// template is what a template puts before and behind the text.
func (c *component) template() (before, after []uint32, err error) {
	texts := 0
	for i, piece := range c.Single {
		switch {
		case piece.Sequence != nil && piece.Sequence.ID == "A":
			texts++
		case piece.SpecialToken != nil:
			special, ok := c.SpecialTokens[piece.SpecialToken.ID]
			if !ok {
				return nil, nil, fmt.Errorf("single %d: special token %.40q is not given", i, piece.SpecialToken.ID)
			}
			if texts == 0 {
				before = append(before, special.IDs...)
			} else {
				after = append(after, special.IDs...)
			}
		default:
			return nil, nil, fmt.Errorf("single %d: neither a special token nor the text", i)
		}
	}
	if texts != 1 {
		return nil, nil, unsupported("single with the text times", fmt.Sprint(texts))
	}
	return before, after, nil
}
