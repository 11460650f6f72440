// The guard's second stage: an encoder in the binary, for texts of which the cheap weights are not sure.

package encoder

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
	"sync"

	"kvasir/classify/model"
	"kvasir/tokenize"
)

// secondFile is what scripts/train/pack.py writes.
//
//go:embed weights/guard.safetensors
var secondFile []byte

// Weights returns the embedded weights, as a file.
func Weights() []byte { return secondFile }

// A Second says how likely it is that a text is an attack in the role in which it stands. It is six layers of
// multilingual-e5-small, fine-tuned in scripts/train/finetune.py.
type Second struct {
	net        net
	tokenizer  *tokenize.Tokenizer
	classifier dense
	roles      [roles][]uint32
}

// A Reading is the role in which a text stands.
type Reading uint8

// The readings. Each is a text's first word.
const (
	AsUser     Reading = iota
	AsDocument         // a document or a tool's result
	AsSystem           // a system prompt or the description of a tool
	roles
)

var roleWords = [roles]string{"user:", "document:", "system:"}

// OpenSecond opens the embedded weights, once: 0.3 s, and 47 MB more are resident then, most of them pages of the file:
// the table of tokens is read where it lies.
var OpenSecond = sync.OnceValues(func() (*Second, error) {
	s, err := openSecond(secondFile, inInt8)
	debug.FreeOSMemory() // of the weights in floats and of the tokenizer's text, five times what stays
	return s, err
})

func openSecond(file []byte, arithmetic arithmetic) (*Second, error) {
	t, err := model.OpenTensors(file)
	if err != nil {
		return nil, err
	}
	c := new(config)
	if err := json.Unmarshal([]byte(t.Meta("config")), c); err != nil {
		return nil, fmt.Errorf("cannot read the configuration of the second stage: %w", err)
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	s := new(Second)
	if s.tokenizer, err = packedTokenizer(t); err != nil {
		return nil, err
	}
	o := newOpener(c, t, &s.net, s.tokenizer, arithmetic, "")
	openBERT(o)
	s.classifier = o.dense(c.Hidden, 1, true, "classifier")
	if o.err != nil {
		return nil, o.err
	}
	for r, word := range roleWords {
		s.roles[r] = s.tokenizer.Append(nil, []byte(word), false)
	}
	s.score(o.scratch.x[:c.Hidden], &o.scratch) // which rounds the last layer
	return s, nil
}

func packedTokenizer(t *model.Tensors) (*tokenize.Tokenizer, error) {
	packed, err := t.Bytes("tokenizer")
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("cannot unpack the tokenizer: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(z, 64<<20))
	if err != nil {
		return nil, fmt.Errorf("cannot unpack the tokenizer: %w", err)
	}
	return tokenize.Read(text)
}

// Windows as in finetune.py: tokens of a text in one, and at most so many of a text.
const (
	secondSpan  = 124
	mostWindows = 6
)

// Score returns the log odds that a text is an attack, those of its worst window. A long text is read in windows that lie
// evenly apart. stop is asked between layers and may be nil; its error ends the reading.
func (m *Second) Score(text []byte, as Reading, s *Scratch, stop func() error) (worst float32, err error) {
	t := &s.tokens
	t.ids = m.tokenizer.Append(t.ids[:0], text, false)
	spare := max(len(t.ids)-secondSpan, 0)
	n := min(mostWindows, 1+(spare+secondSpan*7/8-1)/(secondSpan*7/8))
	for i := range n {
		from := 0
		if n > 1 {
			from = spare * i / (n - 1)
		}
		t.window = append(append(t.window[:0], m.roles[as]...), t.ids[from:min(from+secondSpan, len(t.ids))]...)
		s.ids, s.kinds = m.net.framed(m.tokenizer, t.window, s)
		if err := m.net.run(s.ids, s.kinds, s, stop); err != nil {
			return 0, err
		}
		z := m.score(mean(s.x, len(s.ids), m.net.hidden, s), s)
		if z-z != 0 {
			return 0, errNotFinite
		}
		if i == 0 || z > worst {
			worst = z
		}
	}
	return worst, nil
}

func (m *Second) score(x []float32, s *Scratch) float32 {
	s.head = sized(s.head, 1)
	m.classifier.apply(model.Rows{Values: s.head, Stride: 1}, m.net.hiddenRows(x), model.Rows{}, 1, &s.sums)
	return s.head[0]
}
