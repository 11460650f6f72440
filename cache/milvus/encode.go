// Encode: entries as rows of a collection, within the limits of a VarChar.

package milvus

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"kvasir/cache"
)

const (
	maxVarChar = 65535   // bytes; Milvus's limit
	maxName    = 1024    // bytes of a tenant or model
	maxPlain   = 8 << 20 // bytes of an answer or text before they are compressed
)

// A row is one entry in the form of the collection. It never changes.
type row struct {
	key      string // SHA-256 of scope and text, in hexadecimal digits
	scope    string
	entry    string // the entry's ID
	tenant   string
	model    string
	text     string // encoded
	answer   string // encoded
	created  int64  // Unix milliseconds
	expires  int64
	semantic bool // vector is that of the question: searches may find the row
	vector   []float32
}

// size returns about how many bytes the row takes in memory and on the wire.
func (r *row) size() int {
	return len(r.key) + len(r.scope) + len(r.entry) + len(r.tenant) + len(r.model) + len(r.text) + len(r.answer) + 4*cache.Dim + 256
}

// keyOf returns the primary key of the entry with a text in a scope.
func keyOf(scope cache.Scope, text []byte) string {
	h := sha256.New()
	h.Write(scope[:])
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}

// nameKey returns the digest that replaces a tenant or model in expressions: a name may be any
// string, and a digest needs no quoting.
func nameKey(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

// Forms of a text or an answer; the first byte says which. Protocol buffers accept only UTF-8 in
// a string.
const (
	formPlain  = '=' // as it is
	formZstd   = 'z' // compressed, then base64
	formAbsent = '#' // too long to be stored: identified only by the key
)

// A codec converts entries to rows and rows to entries. It is safe for concurrent use.
type codec struct {
	in  *zstd.Encoder
	out *zstd.Decoder
}

func newCodec() (*codec, error) {
	in, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(1<<20),
		zstd.WithAllLitEntropyCompression(true)) // digits and base64 in an answer have no repetitions, but need less than 8 bits per character
	if err != nil {
		return nil, err
	}
	// Two at a time: there are many lookups, but decoding an answer takes microseconds.
	out, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(maxPlain), zstd.WithDecoderLowmem(true))
	return &codec{in, out}, err
}

// encode returns the shorter form, or false if none fits.
func (c *codec) encode(plain []byte) (string, bool) {
	const short = 128 // bytes: below this, compression saves nothing
	if len(plain) > maxPlain {
		return "", false
	}
	valid := utf8.Valid(plain)
	if valid && len(plain) <= short {
		return string(formPlain) + string(plain), true
	}
	packed := c.in.EncodeAll(plain, nil)
	length := 1 + base64.RawStdEncoding.EncodedLen(len(packed))
	if valid && 1+len(plain) <= min(length, maxVarChar) {
		return string(formPlain) + string(plain), true
	}
	if length > maxVarChar {
		return "", false
	}
	encoded := make([]byte, 1, length)
	encoded[0] = formZstd
	return string(base64.RawStdEncoding.AppendEncode(encoded, packed)), true
}

// decode is the reverse of encode. The bytes come from a server and are not trusted: the result
// never exceeds maxPlain.
func (c *codec) decode(encoded string) ([]byte, error) {
	if encoded == "" {
		return nil, errors.New("it is empty")
	}
	switch rest := encoded[1:]; encoded[0] {
	case formPlain:
		return []byte(rest), nil
	case formZstd:
		packed, err := base64.RawStdEncoding.DecodeString(rest)
		if err != nil {
			return nil, err
		}
		return c.out.DecodeAll(packed, nil)
	}
	return nil, fmt.Errorf("the form %q is not known", encoded[0])
}

// row converts an entry to a row. It copies vector.
func (c *codec) row(e *cache.Entry, vector *[cache.Dim]float32) (*row, error) {
	if len(e.Tenant) > maxName || len(e.Model) > maxName {
		return nil, fmt.Errorf("cannot keep a tenant or model of more than %d bytes: %w", maxName, cache.ErrTooLarge)
	}
	if !utf8.ValidString(e.Tenant) || !utf8.ValidString(e.Model) {
		return nil, errors.New("cannot keep a tenant or model that is not UTF-8")
	}
	answer, ok := c.encode(e.Answer)
	if !ok {
		return nil, cache.ErrTooLarge
	}
	text, ok := c.encode([]byte(e.Text))
	if !ok {
		text = string(formAbsent)
	}
	r := &row{
		key: keyOf(e.Scope, []byte(e.Text)), scope: e.Scope.String(), entry: e.ID.String(),
		tenant: e.Tenant, model: e.Model, text: text, answer: answer,
		created: e.Created.UnixMilli(), expires: e.Expires.UnixMilli(),
		// A verifier needs the text: without it an entry is found only by equality.
		semantic: vector != nil && ok,
		vector:   make([]float32, cache.Dim),
	}
	if r.semantic {
		copy(r.vector, vector[:])
	} else {
		r.vector[0] = 1 // COSINE does not allow a zero vector; searches exclude the row by its field semantic
	}
	return r, nil
}

// entry converts a row to an entry. asked is the text of the lookup if the row was found by its
// key: it replaces a text too long to be stored, which is otherwise empty. now is the present
// time, so that Expires has a monotonic clock reading.
func (c *codec) entry(r *row, asked []byte, now time.Time) (*cache.Entry, error) {
	scope, err := cache.ParseScope(r.scope)
	if err != nil {
		return nil, err
	}
	id, err := cache.ParseID(r.entry)
	if err != nil {
		return nil, err
	}
	answer, err := c.decode(r.answer)
	if err != nil {
		return nil, fmt.Errorf("cannot read the answer of %v: %w", id, err)
	}
	text, kept := asked, r.text != string(formAbsent)
	if kept {
		if text, err = c.decode(r.text); err != nil {
			return nil, fmt.Errorf("cannot read the text of %v: %w", id, err)
		}
	}
	if (kept || asked != nil) && keyOf(scope, text) != r.key {
		return nil, fmt.Errorf("the key of %v is not that of its text", id)
	}
	return &cache.Entry{
		ID: id, Scope: scope, Tenant: r.tenant, Model: r.model, Text: string(text), Answer: answer,
		Created: now.Add(time.UnixMilli(r.created).Sub(now)), Expires: now.Add(time.UnixMilli(r.expires).Sub(now)),
	}, nil
}
