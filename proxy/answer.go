// Answer: what a model said, apart from the form in which it came, and how it is kept.
package proxy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"kvasir/openai"
)

// An answer is what a model said, apart from the form in which it came. The
// slices of one that is kept are never changed: they are shared with whoever
// replays it.
//
//  1. text and reasoning are valid UTF-8.
//  2. pieces ascend, lie on borders of characters, and end at len(text).
//  3. usage and calls are JSON without a line break: they may stand in an event.
type answer struct {
	model        string // as the worker named it
	created      int64  // Unix seconds, of the worker
	text         []byte
	reasoning    []byte  // nil: none
	reasoningKey string  // the member it came in: reasoning_content or reasoning
	finish       string  // stop, length ..., in the words of chat completions
	fingerprint  string  // system_fingerprint; "": none
	usage        []byte  // the object as the worker sent it, in the names of its route; nil: none
	calls        []byte  // the array tool_calls; nil: none
	pieces       []int32 // ends of the pieces of text as they were streamed; nil: it came whole
}

// Bounds of an answer that is kept.
const (
	answerLimit = 1 << 20 // bytes of text, and of reasoning
	callsLimit  = 256 << 10
	usageLimit  = 4 << 10
	nameLimit   = 1 << 10 // of a model, a finish_reason, a fingerprint
)

// answerMark begins every kept answer: two letters that are no JSON, and the
// version of what follows.
const answerMark = "kA\x01"

// The members that reasoning comes in, by their number in a kept answer.
var reasoningKeys = [...]string{"", "reasoning_content", "reasoning"}

var errAnswer = errors.New("it is cut, or not in a form that this version writes")

// append appends the answer as it is kept: answerMark, created (varint), the
// number of the reasoning's member (a byte), then model, finish, fingerprint,
// text, reasoning, usage and calls, each behind its length (uvarint), then the
// number of pieces and the length of each (uvarint).
func (a *answer) append(dst []byte) []byte {
	dst = append(dst, answerMark...)
	dst = binary.AppendVarint(dst, a.created)
	key := byte(0)
	for i, name := range reasoningKeys {
		if name == a.reasoningKey {
			key = byte(i)
		}
	}
	dst = append(dst, key)
	for _, s := range [...]string{a.model, a.finish, a.fingerprint} {
		dst = append(binary.AppendUvarint(dst, uint64(len(s))), s...)
	}
	for _, b := range [...][]byte{a.text, a.reasoning, a.usage, a.calls} {
		dst = append(binary.AppendUvarint(dst, uint64(len(b))), b...)
	}
	dst = binary.AppendUvarint(dst, uint64(len(a.pieces)))
	from := int32(0)
	for _, end := range a.pieces {
		dst = binary.AppendUvarint(dst, uint64(end-from))
		from = end
	}
	return dst
}

// size is about how long the answer is when it is kept.
func (a *answer) size() int {
	const lengths = 64
	return lengths + len(a.model) + len(a.finish) + len(a.fingerprint) +
		len(a.text) + len(a.reasoning) + len(a.usage) + len(a.calls) + len(a.pieces) + len(a.pieces)/8
}

// readAnswer reads what append wrote. The answer's slices are sub-slices of
// data, which must not change after. Whatever the bytes are, an answer that it
// returns without an error keeps the rules of the type.
func readAnswer(data []byte) (a answer, err error) {
	r := answerReader{rest: data}
	r.mark()
	a.created = r.integer()
	if key := r.take(1); len(key) == 1 && int(key[0]) < len(reasoningKeys) {
		a.reasoningKey = reasoningKeys[key[0]]
	} else {
		r.bad = true
	}
	for _, s := range [...]*string{&a.model, &a.finish, &a.fingerprint} {
		b := r.bytes(nameLimit)
		r.bad = r.bad || !utf8.Valid(b)
		*s = string(b)
	}
	a.text, a.reasoning = r.text(), r.text()
	a.usage, a.calls = r.json(usageLimit, '{'), r.json(callsLimit, '[')
	a.pieces = r.pieces(a.text)
	if r.bad || len(r.rest) > 0 || len(a.reasoning) > 0 && a.reasoningKey == "" {
		return answer{}, fmt.Errorf("cannot read a kept answer of %d bytes: %w", len(data), errAnswer)
	}
	return a, nil
}

// An answerReader reads one value after another; nothing is read after a bad one.
type answerReader struct {
	rest []byte
	bad  bool
}

func (r *answerReader) mark() { r.bad = string(r.take(len(answerMark))) != answerMark }

// take returns the next n bytes, nil if there are not so many.
func (r *answerReader) take(n int) []byte {
	if r.bad || n > len(r.rest) {
		r.bad = true
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *answerReader) integer() int64 {
	v, n := binary.Varint(r.rest)
	r.take(max(n, 0))
	r.bad = r.bad || n <= 0
	return v
}

// length returns the next number, which must not be above most.
func (r *answerReader) length(most int) int {
	v, n := binary.Uvarint(r.rest)
	r.take(max(n, 0))
	if r.bad = r.bad || n <= 0 || v > uint64(most); r.bad {
		return 0
	}
	return int(v)
}

// bytes returns the next bytes behind their length, nil if there are none.
func (r *answerReader) bytes(most int) []byte {
	if n := r.length(most); n > 0 {
		return r.take(n)
	}
	return nil
}

func (r *answerReader) text() []byte {
	b := r.bytes(answerLimit)
	r.bad = r.bad || !utf8.Valid(b)
	return b
}

// json returns the next bytes if they are one value that begins with open.
func (r *answerReader) json(most int, open byte) []byte {
	b := r.bytes(most)
	r.bad = r.bad || b != nil && !isLineOfJSON(b, open)
	return b
}

// isLineOfJSON says whether b is one array or object, all of it on one line.
func isLineOfJSON(b []byte, open byte) bool {
	if len(b) == 0 || b[0] != open || openai.IndexEOL(b) >= 0 {
		return false
	}
	return openai.ValidValue(b)
}

// pieces returns the ends of the pieces of text.
func (r *answerReader) pieces(text []byte) []int32 {
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
