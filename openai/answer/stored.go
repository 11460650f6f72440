// Stored answers: the bytes in which a cache keeps them, written and read.

package answer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"kvasir/openai"
)

// storedMark begins every stored answer: two letters that are no JSON, and the
// version of what follows.
const storedMark = "kA\x01"

var errStored = errors.New("it is cut, or not in a form that this version writes")

// AppendTo appends the answer as it is stored: storedMark, Created (varint),
// the number of ReasoningKey (a byte), then Model, Finish, Fingerprint, Text,
// Reasoning, RawUsage and Calls, each behind its length (uvarint), then the
// number of pieces and the length of each (uvarint).
func (a *Answer) AppendTo(dst []byte) []byte {
	dst = append(dst, storedMark...)
	dst = binary.AppendVarint(dst, a.Created)
	key := byte(0)
	for i, name := range reasoningKeys {
		if name == a.ReasoningKey {
			key = byte(i)
		}
	}
	dst = append(dst, key)
	for _, s := range [...]string{a.Model, a.Finish, a.Fingerprint} {
		dst = append(binary.AppendUvarint(dst, uint64(len(s))), s...)
	}
	for _, b := range [...][]byte{a.Text, a.Reasoning, a.RawUsage, a.Calls} {
		dst = append(binary.AppendUvarint(dst, uint64(len(b))), b...)
	}
	dst = binary.AppendUvarint(dst, uint64(len(a.Pieces)))
	from := int32(0)
	for _, end := range a.Pieces {
		dst = binary.AppendUvarint(dst, uint64(end-from))
		from = end
	}
	return dst
}

// Size is about how many bytes AppendTo appends.
func (a *Answer) Size() int {
	const lengths = 64
	return lengths + len(a.Model) + len(a.Finish) + len(a.Fingerprint) +
		len(a.Text) + len(a.Reasoning) + len(a.RawUsage) + len(a.Calls) + len(a.Pieces) + len(a.Pieces)/8
}

// Parse reads what AppendTo wrote. The answer's slices are sub-slices of data,
// which must not change after. Whatever the bytes are, an answer that it
// returns without an error keeps the rules of the type.
func Parse(data []byte) (a Answer, err error) {
	r := storedReader{rest: data}
	r.mark()
	a.Created = r.integer()
	if key := r.take(1); len(key) == 1 && int(key[0]) < len(reasoningKeys) {
		a.ReasoningKey = reasoningKeys[key[0]]
	} else {
		r.bad = true
	}
	for _, s := range [...]*string{&a.Model, &a.Finish, &a.Fingerprint} {
		b := r.bytes(nameLimit)
		r.bad = r.bad || !utf8.Valid(b)
		*s = string(b)
	}
	a.Text, a.Reasoning = r.text(), r.text()
	a.RawUsage, a.Calls = r.json(usageLimit, '{'), r.json(callsLimit, '[')
	a.Pieces = r.pieces(a.Text)
	if r.bad || len(r.rest) > 0 || len(a.Reasoning) > 0 && a.ReasoningKey == "" {
		return Answer{}, fmt.Errorf("cannot read a kept answer of %d bytes: %w", len(data), errStored)
	}
	return a, nil
}

// A storedReader reads one value after another. Once one was bad, nothing more
// is read.
type storedReader struct {
	rest []byte
	bad  bool
}

func (r *storedReader) mark() { r.bad = string(r.take(len(storedMark))) != storedMark }

// take returns the next n bytes, nil if there are not so many.
func (r *storedReader) take(n int) []byte {
	if r.bad || n > len(r.rest) {
		r.bad = true
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *storedReader) integer() int64 {
	v, n := binary.Varint(r.rest)
	r.take(max(n, 0))
	r.bad = r.bad || n <= 0
	return v
}

// length returns the next number, which must not be above most.
func (r *storedReader) length(most int) int {
	v, n := binary.Uvarint(r.rest)
	r.take(max(n, 0))
	if r.bad = r.bad || n <= 0 || v > uint64(most); r.bad {
		return 0
	}
	return int(v)
}

// bytes returns the next bytes behind their length, nil if there are none.
func (r *storedReader) bytes(most int) []byte {
	if n := r.length(most); n > 0 {
		return r.take(n)
	}
	return nil
}

func (r *storedReader) text() []byte {
	b := r.bytes(textLimit)
	r.bad = r.bad || !utf8.Valid(b)
	return b
}

// json returns the next bytes if they are one value that begins with open.
func (r *storedReader) json(most int, open byte) []byte {
	b := r.bytes(most)
	r.bad = r.bad || b != nil && !isLineOfJSON(b, open)
	return b
}

// isLineOfJSON says whether b is one array or object, as open says, on one line.
func isLineOfJSON(b []byte, open byte) bool {
	if len(b) == 0 || b[0] != open || openai.IndexEOL(b) >= 0 {
		return false
	}
	return openai.ValidValue(b)
}

// pieces returns the ends of the pieces of text.
func (r *storedReader) pieces(text []byte) []int32 {
	count := r.length(len(text)) // none is empty
	if count == 0 {
		return nil
	}
	ends := make([]int32, 0, min(count, len(r.rest)))
	end := 0
	for range count {
		n := r.length(math.MaxInt32)
		if end += n; r.bad || n == 0 || end > len(text) || end < len(text) && !utf8.RuneStart(text[end]) {
			r.bad = true
			return nil
		}
		ends = append(ends, int32(end))
	}
	r.bad = r.bad || end != len(text)
	return ends
}
