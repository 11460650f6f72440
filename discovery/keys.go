// Keys that workers are read from: each is read once, and one that is bad keeps what it said before.

package discovery

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"kvasir/wording"
)

// A keyTable is what was read of keys, by their names.
type keyTable[T any] struct {
	read  func(key string, value []byte) (T, error)
	known map[string]*keyRow[T]
}

type keyRow[T any] struct {
	sum  [sha256.Size]byte // of the value that was read last
	good *T                // of the last value that was good; nil: none was
	err  error             // what is wrong with the last one
}

func newKeyTable[T any](read func(key string, value []byte) (T, error)) *keyTable[T] {
	return &keyTable[T]{read: read, known: map[string]*keyRow[T]{}}
}

// put reads the value of a key, unless it is the one that was read last.
func (t *keyTable[T]) put(key string, value []byte) {
	sum := sha256.Sum256(value)
	row := t.known[key]
	if row == nil {
		row = &keyRow[T]{}
		t.known[key] = row
	} else if row.sum == sum {
		return
	}
	row.sum = sum
	got, err := t.read(key, value)
	if row.err = err; err == nil {
		row.good = &got
	}
}

// spoil notes that a key has a value that cannot be read at all.
func (t *keyTable[T]) spoil(key string, err error) {
	row := t.known[key]
	if row == nil {
		row = &keyRow[T]{}
		t.known[key] = row
	}
	row.sum, row.err = [sha256.Size]byte{}, err
}

func (t *keyTable[T]) drop(key string) { delete(t.known, key) }

// only drops all keys that are not there.
func (t *keyTable[T]) only(there map[string]bool) {
	for key := range t.known {
		if !there[key] {
			delete(t.known, key)
		}
	}
}

// anew has every key read again when it is put: what it says may mean something else now.
func (t *keyTable[T]) anew() {
	for _, row := range t.known {
		row.sum = [sha256.Size]byte{}
	}
}

// longestKey is how much of the name of a key is told, in bytes: who writes keys may make up any.
const longestKey = 200

func shortKey(key string) string {
	if len(key) > longestKey || !utf8.ValidString(key) || strings.ContainsFunc(key, unicode.IsControl) {
		return wording.Quote(key)
	}
	return key
}

// all calls do for what each key says, in the order of the keys, and returns what is wrong
// with some of them.
func (t *keyTable[T]) all(do func(key string, what *T)) error {
	var wrong []error
	for _, key := range sortedKeys(t.known) {
		row := t.known[key]
		if row.err != nil && len(wrong) <= shortLines {
			wrong = append(wrong, fmt.Errorf("%s: %w", shortKey(key), row.err))
		}
		if row.good != nil {
			do(key, row.good)
		}
	}
	return errors.Join(wrong...)
}
