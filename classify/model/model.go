// Package model turns text into numbers: tokens, the vectors of tokens, the embedding of a text.
//
//	m, err := model.Embedded()
//	var s model.Scratch // one for each goroutine, reused
//	tokens = m.Tokenize(tokens[:0], text, &s)
//	var vector [model.Dim]float32
//	m.Embed(&vector, tokens, &s) // cosine of two texts = dot product of their vectors
//
// The weights are those of Google's Universal Sentence Encoder multilingual v3 (Apache-2.0, see
// NOTICE), made compact by scripts/train/table.py and encoder.py and embedded in the binary, where they
// are used in place. Inner loops are in assembly for AVX-512 VNNI, AVX2 and arm64, else in Go; all give the
// same bits, so that every machine judges alike.
package model

import (
	"crypto/sha256"
	_ "embed" // the weights
	"encoding/hex"
	"fmt"
	"sync"
)

//go:embed weights/tokens.safetensors
var tokensFile string

//go:embed weights/encoder.safetensors
var encoderFile string

//go:embed weights/heads.safetensors
var headsFile string

//go:embed weights/guard.safetensors
var guardFile string

// Model is the tokenizer, the token table, the sentence encoder and the heads on them; read-only, but for what it keeps of the pieces that it meets.
type Model struct {
	words    unigram
	table    table
	encoder  encoder
	category categoryHead
	guard    guardHead
	spreads  *spreads
}

// Embedded returns the model that the binary carries. It is opened once.
func Embedded() (*Model, error) { return embedded() }

var embedded = sync.OnceValues(func() (*Model, error) {
	m, err := open(bytesOf(tokensFile), bytesOf(encoderFile))
	if err != nil {
		return nil, err
	}
	if err := m.openCategory(bytesOf(headsFile)); err != nil {
		return nil, err
	}
	return m, m.openGuard(bytesOf(guardFile))
})

// Headless returns the model without its heads, which training makes anew. It works whatever heads the
// binary carries.
func Headless() (*Model, error) { return open(bytesOf(tokensFile), bytesOf(encoderFile)) }

// openCategory adds the head of a file, which must stay as it is. openGuard does the same.
func (m *Model) openCategory(file []byte) error {
	t, err := OpenTensors(file)
	if err != nil {
		return err
	}
	if err := m.category.open(t); err != nil {
		return fmt.Errorf("cannot open category head: %w", err)
	}
	return nil
}

func (m *Model) openGuard(file []byte) error {
	t, err := OpenTensors(file)
	if err != nil {
		return err
	}
	if err := m.guard.open(t); err != nil {
		return fmt.Errorf("cannot open guard head: %w", err)
	}
	m.encoder.dense[3].next = m.guard.net.hidden.w
	return nil
}

// Hash returns a short hash of the embedded weights, and of others that go with them: 12 hexadecimal
// digits. It reads all of them.
func Hash(others ...[]byte) string {
	h := sha256.New()
	for _, file := range append([][]byte{bytesOf(tokensFile), bytesOf(encoderFile), bytesOf(headsFile), bytesOf(guardFile)}, others...) {
		h.Write(file)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// EncoderHash is a hash of what embeddings are made with, and of nothing else: vectors kept
// elsewhere are comparable as long as it stays the same. It is written down here, because reading 42
// MB at each start would keep them in memory; TestEncoderHash says what it must be.
const EncoderHash = "d886c5e20139"

// open makes a model of its two files, which must stay as they are.
func open(tokens, encoder []byte) (*Model, error) {
	m := &Model{spreads: new(spreads)}
	t, err := OpenTensors(tokens)
	if err != nil {
		return nil, err
	}
	if err := m.table.open(t); err != nil {
		return nil, fmt.Errorf("cannot open token table: %w", err)
	}
	if err := m.openWords(t); err != nil {
		return nil, fmt.Errorf("cannot open tokenizer: %w", err)
	}
	if t, err = OpenTensors(encoder); err != nil {
		return nil, err
	}
	if err := m.encoder.open(t); err != nil {
		return nil, fmt.Errorf("cannot open encoder: %w", err)
	}
	return m, nil
}

func (m *Model) openWords(t *Tensors) error {
	if len(m.table.kinds) <= endID {
		return fmt.Errorf("a table of %d rows is too small", len(m.table.kinds))
	}
	pieces, err := t.view("pieces", "U32", []int{-1})
	if err != nil {
		return err
	}
	scores, err := t.view("scores", "F32", []int{len(m.table.kinds)})
	if err != nil {
		return err
	}
	unknown, err := t.Float32s("unknown", 1)
	if err != nil {
		return err
	}
	units, err := t.view("charsmap", "U32", []int{-1})
	if err != nil {
		return err
	}
	replacements, err := t.bytes("replacements", -1)
	if err != nil {
		return err
	}
	m.words = unigram{
		normal: newNormaliser(units, replacements),
		pieces: trie(pieces), scores: scores, unknown: float64(unknown[0]),
	}
	return nil
}
