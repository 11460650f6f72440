// Package encoder runs transformer encoders from a directory as Hugging Face has them: config.json,
// tokenizer.json, model.safetensors. It reads BERT, RoBERTa and XLM-R, ModernBERT, DeBERTa-v2 and -v3, with a
// head for one label of a text, for one of each token, or with none for an embedding.
//
//	e, err := encoder.Open("models/prompt-guard")
//	err = e.Classify(func(p []float32) { ... p[1] ... }, text, &scratch, nil)
//
// Sums are in 8 bits (inInt8). A text that is longer than the net reads at a time is read in windows that overlap.
package encoder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"kvasir/classify/model"
	"kvasir/tokenize"
)

// ErrUnsupported is wrapped by errors of models that may be good but ask for something that this package does not do.
var ErrUnsupported = errors.New("not supported")

// Version goes up when the same directory gives other values than before.
const Version = "1"

// errNotFinite is what a text comes to whose sums no float can hold.
var errNotFinite = errors.New("the model gives values that are no numbers: its weights are damaged, or too large")

// A Task is what an encoder's last layer is for.
type Task uint8

// The tasks.
const (
	Embedding Task = iota // a vector for a text
	Sequence              // one label for a text
	Token                 // one label for each token
)

func (t Task) String() string {
	return [...]string{"an embedding", "one label for a text", "a label for each token"}[t]
}

// An Encoder is one directory's. It is read-only, so its methods may be called at the same time, each with a
// Scratch of its own.
type Encoder struct {
	Shape
	head      head
	net       net
	tokenizer *tokenize.Tokenizer
}

// A Shape is what an encoder is for, and what comes out of it.
type Shape struct {
	Family string // model_type of config.json
	Task   Task
	Labels []string // the names of the outputs, in their order; none for an embedding
	Size   int      // values of an embedding
}

// head is what makes labels of hidden states, or an embedding.
type head struct {
	mean       bool // of all tokens instead of the first
	dense      dense
	act        func(x []float32) // after dense
	norm       *norm             // after act; nil: none
	classifier dense
}

// overlap is how many tokens two windows share: so what is cut at the end of one is whole in the next.
const overlap = 64

// tokenScratch is a text's tokens.
type tokenScratch struct {
	ids    []uint32
	spans  []tokenize.Span
	window []uint32 // of a Second
}

// A window is the tokens [from, to) of a text.
type window struct{ from, to int }

// windows calls each for the windows of n tokens, one at least.
func (e *Encoder) windows(n int, each func(w window) error) error {
	room := e.net.most - e.tokenizer.Around(false)
	step := max(room-overlap, (room+1)/2)
	for from := 0; ; from += step {
		to := min(from+room, n)
		if err := each(window{from, to}); err != nil || to == n {
			return err
		}
	}
}

// read runs the net over a window and what stands around a text. It returns how many tokens went in, and how many
// of them stand before the text.
func (e *Encoder) read(ids []uint32, s *Scratch, stop func() error) (tokens, before int, err error) {
	s.ids, s.kinds = e.net.framed(e.tokenizer, ids, s)
	return len(s.ids), e.tokenizer.Before(), e.net.run(s.ids, s.kinds, s, stop)
}

// Classify calls found with the probabilities of the labels for each window of a text; they are valid until it
// returns. stop is asked between layers and may be nil; its error ends the reading and is returned.
func (e *Encoder) Classify(found func(p []float32), text []byte, s *Scratch, stop func() error) error {
	if e.Task != Sequence {
		panic("BUG: an encoder for " + e.Task.String() + " is asked for one label")
	}
	s.tokens.ids = e.tokenizer.Append(s.tokens.ids[:0], text, false)
	return e.windows(len(s.tokens.ids), func(w window) error {
		tokens, _, err := e.read(s.tokens.ids[w.from:w.to], s, stop)
		if err != nil {
			return err
		}
		p := e.outputs(e.pool(tokens, s), 1, s)
		if !softmax(p) {
			return errNotFinite
		}
		found(p)
		return nil
	})
}

// A Label is a token's.
type Label struct {
	tokenize.Span         // in the text
	Label         int     // the likeliest
	Score         float32 // its probability
}

// Tag appends the labels of a text's tokens to dst. A token that lies in two windows has the label of the one in
// which it stands farther from the edge.
func (e *Encoder) Tag(dst []Label, text []byte, s *Scratch, stop func() error) ([]Label, error) {
	if e.Task != Token {
		panic("BUG: an encoder for " + e.Task.String() + " is asked for labels of tokens")
	}
	t, first := &s.tokens, len(dst)
	t.ids, t.spans = e.tokenizer.AppendSpans(t.ids[:0], t.spans[:0], text)
	err := e.windows(len(t.ids), func(w window) error {
		_, before, err := e.read(t.ids[w.from:w.to], s, stop)
		if err != nil || w.from == w.to {
			return err
		}
		if shared := first + w.from + overlap/2; w.from > 0 && shared < len(dst) {
			dst = dst[:shared]
		}
		for at := len(dst) - first; at < w.to; at += model.RowBlock {
			n := min(model.RowBlock, w.to-at)
			out := e.outputs(s.x[(before+at-w.from)*e.net.hidden:][:n*e.net.hidden], n, s)
			for i := range n {
				p := out[i*len(e.Labels):][:len(e.Labels)]
				if !softmax(p) {
					return errNotFinite
				}
				best := largest(p)
				dst = append(dst, Label{t.spans[at+i], best, p[best]})
			}
		}
		return nil
	})
	return dst, err
}

// Embed appends the embedding of a text to dst, Size values of length 1. Of a text that is longer than one window the
// first is read.
func (e *Encoder) Embed(dst []float32, text []byte, s *Scratch, stop func() error) ([]float32, error) {
	s.tokens.ids = e.tokenizer.Append(s.tokens.ids[:0], text, false)
	room := e.net.most - e.tokenizer.Around(false)
	tokens, _, err := e.read(s.tokens.ids[:min(len(s.tokens.ids), room)], s, stop)
	if err != nil {
		return dst, err
	}
	first := len(dst)
	dst = append(dst, e.pool(tokens, s)...)
	var squares float64
	for _, v := range dst[first:] {
		squares += float64(v) * float64(v)
	}
	if math.IsNaN(squares) || math.IsInf(squares, 0) {
		return dst[:first], errNotFinite
	}
	length := float32(max(math.Sqrt(squares), 1e-12))
	for i := range dst[first:] {
		dst[first+i] /= length
	}
	return dst, nil
}

// pool is the hidden state that stands for the sequence.
func (e *Encoder) pool(tokens int, s *Scratch) []float32 {
	size := e.net.hidden
	if !e.head.mean {
		return s.x[:size]
	}
	return mean(s.x, tokens, size, s)
}

// mean is the mean of the states of all tokens; it is valid until the next run.
func mean(x []float32, tokens, size int, s *Scratch) []float32 {
	sum := s.read[:size]
	clear(sum)
	for t := range tokens {
		for i, v := range x[t*size:][:size] {
			sum[i] += v
		}
	}
	for i := range sum {
		sum[i] /= float32(tokens)
	}
	return sum
}

// outputs applies the head to rows of hidden states, RowBlock at most.
func (e *Encoder) outputs(x []float32, rows int, s *Scratch) []float32 {
	size, n := e.net.hidden, len(e.Labels)
	s.head = sized(s.head, rows*(size+n))
	out := model.Rows{Values: s.head[rows*size:], Stride: n}
	if e.head.dense != nil {
		made := s.head[:rows*size]
		e.head.dense.apply(e.net.hiddenRows(made), e.net.hiddenRows(x), model.Rows{}, rows, &s.sums)
		e.head.act(made)
		e.net.normalise(made, e.head.norm)
		x = made
	}
	e.head.classifier.apply(out, e.net.hiddenRows(x), model.Rows{}, rows, &s.sums)
	return out.Values[:rows*n]
}

// softmax turns a few scores into probabilities, and says whether they are numbers.
func softmax(x []float32) bool {
	top := x[largest(x)]
	var sum float64
	for _, v := range x {
		sum += math.Exp(float64(v - top))
	}
	for i, v := range x {
		x[i] = float32(math.Exp(float64(v-top)) / sum)
	}
	return !math.IsNaN(sum) && !math.IsInf(float64(top), 0)
}

func largest(x []float32) (at int) {
	for i, v := range x {
		if v > x[at] {
			at = i
		}
	}
	return at
}

const poolingFile = "1_Pooling/config.json"

// pooling says whether an embedding is the mean of all tokens or the first one, as sentence-transformers has it in
// poolingFile. Without that file it is the mean.
func pooling(dir string) (mean bool, err error) {
	data, err := readText(filepath.Join(dir, poolingFile), maxText)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", poolingFile, err)
	}
	return meanOf(data)
}

// meanOf reads a file of pooling. Older ones have a flag for each way, newer ones the way's name or a list of names.
func meanOf(data []byte) (mean bool, err error) {
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		return false, fmt.Errorf("cannot read %s: %w", poolingFile, err)
	}
	var ways []string
	switch named := fields["pooling_mode"].(type) {
	case string:
		ways = append(ways, named)
	case []any:
		for _, way := range named {
			ways = append(ways, fmt.Sprint(way))
		}
	}
	for key, on := range fields {
		if way, ok := strings.CutPrefix(key, "pooling_mode_"); ok && on == true {
			ways = append(ways, strings.TrimSuffix(way, "_tokens"))
		}
	}
	slices.Sort(ways)
	switch ways = slices.Compact(ways); strings.Join(ways, " and ") {
	case "", "mean":
		return true, nil
	case "cls", "cls_token":
		return false, nil
	}
	return false, fmt.Errorf("%s: pooling by %s is %w", poolingFile, strings.Join(ways, " and "), ErrUnsupported)
}
