// Entry: one stored answer and the question that it answers.

package cache

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strconv"
	"time"
)

// Dim is the number of values of an embedding.
const Dim = 512

// A Scope identifies everything that an answer depends on besides the question: the tenant, the
// model, system prompts, tools, the form and length of the answer, sampling, and every turn
// before the question. It is 128 bits of a SHA-256. No entry ever answers a query of another
// scope.
type Scope [16]byte

func (s Scope) String() string { return hex.EncodeToString(s[:]) }

// ParseScope reads the form that String writes.
func ParseScope(text string) (s Scope, err error) {
	if len(text) != hex.EncodedLen(len(s)) {
		return s, errors.New("a scope has 32 hexadecimal digits")
	}
	if _, err := hex.Decode(s[:], []byte(text)); err != nil {
		return s, errors.New("a scope has 32 hexadecimal digits")
	}
	return s, nil
}

// An ID identifies an entry as long as it is stored. It is never 0.
type ID uint64

// NewID returns a random ID that cannot be guessed.
func NewID() ID {
	var b [8]byte
	for {
		_, _ = rand.Read(b[:]) // never fails
		if id := ID(binary.LittleEndian.Uint64(b[:])); id != 0 {
			return id
		}
	}
}

func (id ID) String() string {
	const digits = 16
	s := strconv.FormatUint(uint64(id), 16)
	return "0000000000000000"[:digits-len(s)] + s
}

// ParseID reads the form that String writes.
func ParseID(text string) (ID, error) {
	n, err := strconv.ParseUint(text, 16, 64)
	if err != nil || n == 0 || len(text) != 16 {
		return 0, errors.New("the id of an entry has 16 hexadecimal digits")
	}
	return ID(n), nil
}

// An Entry is an answer and the question that it answers. It never changes once it is in a store.
type Entry struct {
	ID      ID
	Scope   Scope
	Tenant  string // of the request; part of Scope, stored here for Delete
	Model   string // that answered; stored for the same reason
	Text    string // the question, normalised
	Answer  []byte // opaque here; the proxy writes and reads it
	Created time.Time
	Expires time.Time // has a monotonic clock reading in the process that made or loaded the entry
}
