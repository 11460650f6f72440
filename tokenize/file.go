// Reading the parts of a tokenizer.json.

package tokenize

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// The most that a file may have.
const (
	maxToken  = 1 << 22 // ids are smaller
	maxMerges = 1 << 22
)

// file is a tokenizer.json taken apart.
type file struct {
	added         []addedToken
	normalizer    json.RawMessage
	preTokenizer  json.RawMessage
	postProcessor json.RawMessage
	model         model
}

// model is its largest part.
type model struct {
	kind      string // "BPE", "WordPiece" ...
	tokens    map[string]uint32
	scores    []float64 // of a unigram model's pieces, by token; nil: the vocabulary has none
	merges    []merge
	hasMerges bool
	settings  modelSettings
	joined    []byte // working space: the token that a merge makes
}

// merge is one merge: two tokens, the token that they become, and the two characters that meet
// between them. Its rank is its index.
type merge struct {
	left, right, token uint32
	last, first        rune
}

// modelSettings are the small members of `model`, as they stand there.
type modelSettings struct {
	Dropout      *float64 `json:"dropout"`
	Unknown      *string  `json:"unk_token"`
	Prefix       *string  `json:"continuing_subword_prefix"`
	Suffix       *string  `json:"end_of_word_suffix"`
	FuseUnknown  bool     `json:"fuse_unk"`
	ByteFallback bool     `json:"byte_fallback"`
	IgnoreMerges bool     `json:"ignore_merges"`
	MaxRunes     *int     `json:"max_input_chars_per_word"`
	UnknownID    *int     `json:"unk_id"`
}

func readFile(data []byte) (*file, error) {
	r := &jsonReader{data: data}
	f := &file{}
	parts := map[string]func() error{
		"added_tokens":   func() error { return into(r, &f.added) },
		"normalizer":     func() error { return into(r, &f.normalizer) },
		"pre_tokenizer":  func() error { return into(r, &f.preTokenizer) },
		"post_processor": func() error { return into(r, &f.postProcessor) },
		"model":          func() error { return f.model.read(r) },
		"version": func() error {
			var v string
			if err := into(r, &v); err != nil || v == "1.0" {
				return err
			}
			return fmt.Errorf("%.20q: %w", v, ErrUnsupported)
		},
	}
	err := r.object(func(key []byte) error {
		// Not needed: truncation and padding, which the engines switch off, and the decoder.
		read, name := parts[string(key)], string(key)
		if read == nil {
			read = func() error { _, err := r.value(); return err }
		}
		if err := read(); err != nil {
			return fmt.Errorf("%.40s: %w", name, err)
		}
		return nil
	})
	if err == nil {
		err = r.end()
	}
	return f, err
}

// into reads the next value with encoding/json, which says what is wrong inside it.
func into(r *jsonReader, target any) error {
	raw, err := r.value()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, target); err != nil {
		return fmt.Errorf("before byte %d: %w", r.at, err)
	}
	return nil
}

func (m *model) read(r *jsonReader) error {
	small := []byte{'{'}
	merges := -1 // their offset, if they come before the vocabulary
	err := r.object(func(key []byte) error {
		name := string(key)
		var err error
		switch name {
		case "type":
			err = into(r, &m.kind)
		case "vocab":
			err = m.readTokens(r)
		case "merges":
			if m.hasMerges = true; m.tokens != nil {
				err = m.readMerges(r)
			} else {
				merges = r.at
				_, err = r.value()
			}
		default:
			var raw []byte
			if raw, err = r.value(); err == nil {
				quoted, _ := json.Marshal(name)
				small = append(append(append(append(small, quoted...), ':'), raw...), ',')
			}
		}
		if err != nil {
			return fmt.Errorf("%.40s: %w", name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if merges >= 0 {
		if err := m.readMerges(&jsonReader{data: r.data, at: merges}); err != nil {
			return fmt.Errorf("merges: %w", err)
		}
	}
	if small[len(small)-1] == ',' {
		small = small[:len(small)-1]
	}
	return json.Unmarshal(append(small, '}'), &m.settings)
}

func (m *model) readTokens(r *jsonReader) error {
	if r.peek() == '[' {
		return m.readPieces(r)
	}
	m.tokens, m.scores = map[string]uint32{}, nil
	return r.object(func(key []byte) error {
		token := string(key)
		id, err := r.id()
		if err != nil {
			return fmt.Errorf("token %.40q: %w", token, err)
		}
		if id >= maxToken {
			return r.wrong(fmt.Sprintf("token %.40q has an id over %d", token, maxToken-1))
		}
		m.tokens[token] = id
		return nil
	})
}

// readPieces reads the vocabulary of a unigram model, [["piece", score], ...]. The id of a piece is
// its index; of two equal pieces the last counts.
func (m *model) readPieces(r *jsonReader) error {
	m.tokens, m.scores = map[string]uint32{}, []float64{}
	return r.array(func(i int) error {
		if i >= maxToken {
			return r.wrong(fmt.Sprintf("more than %d pieces", maxToken))
		}
		piece, score, n := "", 0.0, 0
		err := r.array(func(j int) (err error) {
			n++
			switch j {
			case 0:
				var text []byte
				text, err = r.string()
				piece = string(text)
			case 1:
				score, err = r.number()
			}
			if j > 1 {
				return r.wrong("more than a piece and its score")
			}
			return err
		})
		if err == nil && n != 2 {
			err = r.wrong("not a piece and its score")
		}
		if err != nil {
			return fmt.Errorf("piece %d: %w", i, err)
		}
		m.tokens[piece] = uint32(i)
		m.scores = append(m.scores, score)
		return nil
	})
}

// size is how many tokens the vocabulary has.
func (m *model) size() int { return max(len(m.tokens), len(m.scores)) }

// readMerges reads the merges, each a pair of strings, or one string with a space between the two
// tokens.
func (m *model) readMerges(r *jsonReader) error {
	m.merges = nil
	pairs := false
	return r.array(func(i int) error {
		if i >= maxMerges {
			return r.wrong(fmt.Sprintf("more than %d", maxMerges))
		}
		if is := r.peek() == '['; i == 0 {
			pairs = is
		} else if is != pairs {
			return r.wrong("merges as strings and as pairs")
		}
		one, err := m.readMerge(r, pairs)
		if err != nil {
			return fmt.Errorf("merge %d: %w", i, err)
		}
		m.merges = append(m.merges, one)
		return nil
	})
}

func (m *model) readMerge(r *jsonReader, pair bool) (one merge, err error) {
	var middle int
	if pair {
		middle, err = m.readPair(r)
	} else {
		middle, err = m.readLine(r)
	}
	if err != nil {
		return one, err
	}
	left, right := m.joined[:middle], m.joined[middle:]
	if one.left, err = m.token(r, left); err != nil {
		return one, err
	}
	if one.right, err = m.token(r, right); err != nil {
		return one, err
	}
	if one.token, err = m.token(r, m.joined); err != nil {
		return one, err
	}
	one.last, _ = utf8.DecodeLastRune(left)
	one.first, _ = utf8.DecodeRune(right)
	return one, nil
}

// readPair reads the two tokens of a merge into m.joined, and returns where the second begins.
func (m *model) readPair(r *jsonReader) (middle int, err error) {
	n := 0
	m.joined = m.joined[:0]
	err = r.array(func(int) error {
		s, err := r.string()
		if n++; n == 2 {
			middle = len(m.joined)
		}
		m.joined = append(m.joined, s...)
		return err
	})
	if err == nil && n != 2 {
		err = r.wrong("not two tokens")
	}
	return middle, err
}

// readLine does the same with a string that has a space between the two.
func (m *model) readLine(r *jsonReader) (middle int, err error) {
	s, err := r.string()
	if err != nil {
		return 0, err
	}
	middle = bytes.IndexByte(s, ' ')
	if middle < 0 || bytes.IndexByte(s[middle+1:], ' ') >= 0 {
		return 0, r.wrong("not two tokens")
	}
	m.joined = append(append(m.joined[:0], s[:middle]...), s[middle+1:]...)
	return middle, nil
}

func (m *model) token(r *jsonReader, text []byte) (uint32, error) {
	id, ok := m.tokens[string(text)]
	if !ok {
		return 0, r.wrong(fmt.Sprintf("token %.40q is not in the vocabulary", text))
	}
	return id, nil
}

// highest is the highest id of the vocabulary.
func (m *model) highest() (id uint32) {
	for _, other := range m.tokens {
		id = max(id, other)
	}
	return id
}
