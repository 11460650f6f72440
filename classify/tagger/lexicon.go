// The word lists: which words are known as first names, places, companies ...

package tagger

import (
	"encoding/binary"
	"fmt"
)

// lexicon holds the lists as one table of slots: 16 bits of a word's hash over 16 bits that say
// which lists have it. A slot is searched from the hash's place on; 0 is an empty slot. A word
// that is in no list is taken for one that is in about one of 50,000 cases.
type lexicon struct {
	slots []byte // little-endian uint32
	mask  uint32
}

// lexiconBits is the number of lists.
const lexiconBits = 16

// The lists, by their bits; scripts/train/taglists.py has the same order.
const (
	listFirst     = iota // first names
	listLast             // last names
	listCity             // cities, whole
	listCityPart         // words of cities of several words
	listCountry          // countries, states, regions
	listPeople           // nationalities, religions, parties
	listOrgWord          // Inc, bank, university
	listOrg              // well-known companies and authorities
	listCommon           // words that are nearly always written small
	listMixed            // words that are written both ways
	listJob              // words of occupations
	listStreet           // words of addresses
	listCalendar         // months, days
	listHonorific        // Mr, Dr
	listFrequent         // the most frequent names
	listPlain            // the most frequent common words
)

// open takes a table of slots, used in place.
func (l *lexicon) open(slots []byte) error {
	n := len(slots) / 4
	if n == 0 || n&(n-1) != 0 {
		return fmt.Errorf("cannot open word lists: %d slots are no power of two", n)
	}
	l.slots, l.mask = slots, uint32(n-1)
	return nil
}

// maxProbe bounds a search; the table is made so that every word lies within.
const maxProbe = 64

const (
	hashSeed  = 0xcbf29ce484222325 // FNV-1a of 64 bits, a character at a time
	hashPrime = 0x100000001b3
)

// hashRune adds a character to a hash.
func hashRune(h uint64, r rune) uint64 { return (h ^ uint64(r)) * hashPrime }

// hashPair returns the hash of two words in a row.
func hashPair(a, b uint64) uint64 { return (a*hashPrime ^ b) * hashPrime }

// find returns the lists that have the word or pair with hash h.
func (l *lexicon) find(h uint64) uint16 {
	if len(l.slots) == 0 {
		return 0
	}
	h ^= h >> 32
	h *= 0x9e3779b97f4a7c15
	key := uint32(h>>48) << 16
	at := uint32(h>>16) & l.mask
	for range maxProbe {
		slot := binary.LittleEndian.Uint32(l.slots[4*at:])
		if slot == 0 {
			return 0
		}
		if slot&0xffff0000 == key {
			return uint16(slot)
		}
		at = (at + 1) & l.mask
	}
	return 0
}

// look sets the lists that have w, alone and behind the word before it.
func (l *lexicon) look(w *word, before []word) {
	if w.shape&shapeLetters == 0 {
		return
	}
	w.lists = l.find(w.hash)
	if n := len(before); n > 0 && before[n-1].shape&shapeLetters != 0 {
		w.pair = l.find(hashPair(before[n-1].hash, w.hash))
	}
}
