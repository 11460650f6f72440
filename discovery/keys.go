// Keys that workers are read from: each is read once, and one that is bad keeps what it said before.

package discovery

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"kvasir/wording"
)

// A keyTable is what was read of keys, by their names.
type keyTable[T any] struct {
	read  func(key string, value []byte) (T, error)
	known map[string]*keyRow[T]
	gone  map[string]*keyRow[T] // that were good when they went: they may come again as they were
}

type keyRow[T any] struct {
	sum     [sha256.Size]byte // of the value that was read last
	good    *T                // of the last value that was good; nil: none was
	value   []byte            // that good was read of
	err     error             // what is wrong with the last one
	created int64             // when the key came, in the order of its store; 0: nobody says
}

// mostGone bounds the keys that are remembered beside those that are there.
const mostGone = 1024

func newKeyTable[T any](read func(key string, value []byte) (T, error)) *keyTable[T] {
	return &keyTable[T]{read: read, known: map[string]*keyRow[T]{}, gone: map[string]*keyRow[T]{}}
}

// put reads the value of a key, unless it is the one that was read last. The value is kept.
func (t *keyTable[T]) put(key string, value []byte, created int64) {
	sum := sha256.Sum256(value)
	row := t.known[key]
	if row == nil {
		if row = t.gone[key]; row == nil || row.sum != sum {
			row = &keyRow[T]{}
		}
		delete(t.gone, key)
		t.known[key] = row
	}
	if row.created = created; row.sum == sum {
		return
	}
	row.sum = sum
	got, err := t.read(key, value)
	if row.err = err; err == nil {
		row.good, row.value = &got, value
	}
}

// spoil notes that a key has a value that cannot be read at all.
func (t *keyTable[T]) spoil(key string, created int64, err error) {
	row := t.known[key]
	if row == nil {
		row = &keyRow[T]{}
		t.known[key] = row
	}
	row.sum, row.err, row.created = [sha256.Size]byte{}, err, created
}

func (t *keyTable[T]) drop(key string) {
	row := t.known[key]
	delete(t.known, key)
	if row == nil || row.err != nil {
		return
	}
	if len(t.gone) >= mostGone {
		clear(t.gone)
	}
	t.gone[key] = row
}

// only drops all keys that are not there.
func (t *keyTable[T]) only(there map[string]bool) {
	for key := range t.known {
		if !there[key] {
			t.drop(key)
		}
	}
}

// anew reads what was good once more, and has all else be read again when it is put: what a value says
// may mean something else now, and who holds the keys may be away.
func (t *keyTable[T]) anew() {
	clear(t.gone)
	for key, row := range t.known {
		if row.err != nil {
			row.sum = [sha256.Size]byte{}
		}
		if row.good == nil {
			continue
		}
		if got, err := t.read(key, row.value); err == nil {
			row.good = &got
		} else if row.err == nil {
			row.err = err
		}
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

// all calls do for what each key says, those first that came first, and returns what is wrong
// with some of them, in the order of the keys.
func (t *keyTable[T]) all(do func(key string, what *T)) error {
	var wrong []error
	keys := sortedKeys(t.known)
	for _, key := range keys {
		if err := t.known[key].err; err != nil && len(wrong) <= shortLines {
			wrong = append(wrong, fmt.Errorf("%s: %w", shortKey(key), err))
		}
	}
	slices.SortStableFunc(keys, func(a, b string) int { return cmp.Compare(t.known[a].created, t.known[b].created) })
	for _, key := range keys {
		if row := t.known[key]; row.good != nil {
			do(key, row.good)
		}
	}
	return errors.Join(wrong...)
}
