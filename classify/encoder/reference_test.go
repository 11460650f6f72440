package encoder

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// expected is what the reference library computes of a text (scripts/encoders/reference.py).
type expected struct {
	Text      string    `json:"text"`
	IDs       []uint32  `json:"ids"`
	Hidden    []float32 `json:"hidden"`
	Logits    []float32 `json:"logits"`
	Embedding []float32 `json:"embedding"`
}

// each calls with for every model in testdata.
func each(t *testing.T, with func(t *testing.T, dir string, want []expected)) {
	dirs, err := filepath.Glob("testdata/*/expected.json")
	if err != nil || len(dirs) < 10 {
		t.Fatalf("%d models, %v", len(dirs), err)
	}
	for _, file := range dirs {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) { with(t, dir, readExpected(t, file)) })
	}
}

func readExpected(t testing.TB, file string) (want []expected) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	return want
}

func mustOpen(t testing.TB, dir string, arithmetic arithmetic) *Encoder {
	t.Helper()
	e, err := open(dir, arithmetic)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// What floats compute is what the reference library computes.
func TestReference(t *testing.T) {
	each(t, func(t *testing.T, dir string, all []expected) {
		e, s := mustOpen(t, dir, inFloats), new(Scratch)
		for _, want := range all {
			hidden, logits := asked(t, e, want, s)
			if d := distance(hidden, want.Hidden); d > 1e-4 {
				t.Errorf("%q: hidden states are off by %g", want.Text, d)
			}
			if d := distance(logits, slices.Concat(want.Logits, want.Embedding)); d > 1e-4 {
				t.Errorf("%q: outputs are off by %g", want.Text, d)
			}
		}
	})
}

// What 8 bits compute is near.
func TestInt8(t *testing.T) {
	each(t, func(t *testing.T, dir string, all []expected) {
		e, s := mustOpen(t, dir, inInt8), new(Scratch)
		for _, want := range all {
			hidden, _ := asked(t, e, want, s)
			if c := cosine(hidden, want.Hidden); c < 0.999 {
				t.Errorf("%q: the cosine of the hidden states is %g", want.Text, c)
			}
		}
	})
}

// asked returns the hidden states of a text, and its logits or its embedding.
func asked(t *testing.T, e *Encoder, of expected, s *Scratch) (hidden, out []float32) {
	t.Helper()
	ids := e.tokenizer.Append(nil, []byte(of.Text), false)
	tokens, _, err := e.read(ids, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.ids, of.IDs) {
		t.Fatalf("%q: ids %v, want %v", of.Text, s.ids, of.IDs)
	}
	hidden = slices.Clone(s.x[:tokens*e.net.hidden])
	switch e.Task {
	case Sequence:
		out = e.outputs(e.pool(tokens, s), 1, s)
	case Token:
		for i := range tokens {
			out = append(out, e.outputs(s.x[i*e.net.hidden:][:e.net.hidden], 1, s)...)
		}
	default:
		if out, err = e.Embed(nil, []byte(of.Text), s, nil); err != nil {
			t.Fatal(err)
		}
	}
	return hidden, out
}

// distance is the largest difference.
func distance(a, b []float32) (most float64) {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	for i := range a {
		if d := math.Abs(float64(a[i] - b[i])); !(d <= most) {
			most = d
		}
	}
	return most
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}
