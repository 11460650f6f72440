// Normalizers and pre-tokenizers, as the file describes them.

package tokenize

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// component is a normalizer, pre-tokenizer or post-processor of the file. It has the members of
// every kind that affect the tokens.
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

	// Precompiled, Strip
	Charsmap   string `json:"precompiled_charsmap"`
	StripLeft  bool   `json:"strip_left"`
	StripRight bool   `json:"strip_right"`

	// Prepend, BertNormalizer
	Prepend            string `json:"prepend"`
	CleanText          bool   `json:"clean_text"`
	HandleChineseChars bool   `json:"handle_chinese_chars"`
	StripAccents       *bool  `json:"strip_accents"`
	Lowercase          bool   `json:"lowercase"`

	// ByteLevel, Metaspace, Digits
	AddPrefixSpace   *bool  `json:"add_prefix_space"`
	TrimOffsets      bool   `json:"trim_offsets"`
	UseRegex         *bool  `json:"use_regex"`
	Replacement      string `json:"replacement"`
	PrependScheme    string `json:"prepend_scheme"`
	Split            *bool  `json:"split"`
	IndividualDigits bool   `json:"individual_digits"`

	// TemplateProcessing, BertProcessing, RobertaProcessing
	Single        []templatePiece            `json:"single"`
	Pair          []templatePiece            `json:"pair"`
	SpecialTokens map[string]templateSpecial `json:"special_tokens"`
	Cls, Sep      processorToken
}

type templatePiece struct {
	SpecialToken, Sequence *templatePart
}

type templatePart struct {
	ID   string
	Type uint8 `json:"type_id"`
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

// isNull says whether a part is missing or null.
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
		add(normalForm{b.u, canonical, true})
	case "NFD":
		add(normalForm{b.u, canonical, false})
	case "NFKC":
		add(normalForm{b.u, compatible, true})
	case "NFKD":
		add(normalForm{b.u, compatible, false})
	case "StripAccents":
		add(dropping{b.u, runeAccent})
	case "Strip":
		add(stripping{b.u, c.StripLeft, c.StripRight})
	case "Precompiled":
		m, err := readCharsmap(b.u, c.Charsmap)
		if err != nil {
			return err
		}
		add(m)
	case "Lowercase":
		add(lowering{b.u})
	case "Prepend":
		if c.Prepend == "" { // the library loses track of the text there, and its next normalizer gives wrong results
			return unsupported("Prepend of the text", "")
		}
		add(prepending{[]byte(c.Prepend)})
	case "Replace":
		switch s := c.Pattern.String; {
		case s != nil && *s != "":
			add(replacing{[]byte(*s), []byte(c.Content)})
		case textOr(c.Pattern.Regex) == " {2,}":
			add(collapsing{[]byte(c.Content)})
		default:
			return unsupported("Replace with the pattern", textOr(c.Pattern.Regex))
		}
	case "BertNormalizer":
		if c.CleanText || c.HandleChineseChars {
			add(cleaning{b.u, c.CleanText, c.HandleChineseChars})
		}
		if c.StripAccents == nil && c.Lowercase || c.StripAccents != nil && *c.StripAccents {
			add(normalForm{b.u, canonical, false})
			add(dropping{b.u, bertNonspacing})
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
	case "WhitespaceSplit":
		b.whiteSpace = append(b.whiteSpace, len(b.scanners))
		b.scanners = append(b.scanners, whiteSpaceWords(b.u))
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
		// Gemma splits at spaces, but its normalizer has left none.
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
	// With Removed and invert, it drops the text that is not matched. A pattern that matches
	// everywhere leaves no such text.
	if removed := c.Behavior == "Removed" && c.Invert && covers; c.Behavior != "Isolated" && !removed {
		return unsupported("Split with behavior", c.Behavior)
	}
	b.scanners = append(b.scanners, scan)
	return nil
}

func (b *builder) metaspaceSplit(c component) error {
	// Behind WhitespaceSplit, as XLM-R has it, each word gets the mark.
	behind := len(b.scanners) == 1 && len(b.whiteSpace) == 1
	if len(b.scanners) > 0 && !behind || b.metaspace != nil {
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
	if behind {
		if c.PrependScheme == "first" {
			return unsupported("behind WhitespaceSplit, prepend_scheme", c.PrependScheme)
		}
		b.outer, b.scanners = &b.scanners[0], nil
	}
	b.metaspace = &metaspace{[]byte(c.Replacement), c.PrependScheme}
	if c.Split == nil || *c.Split {
		b.scanners = append(b.scanners, before(b.metaspace.mark))
	}
	return nil
}
