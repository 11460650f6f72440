// Package pii finds structured personal data in text by rules: e-mail
// addresses, phone numbers, cards, account and identity numbers, keys,
// passwords, dates and more, named as Presidio names them.
//
//	spans := pii.Find(nil, text)
//	for _, s := range spans {
//		fmt.Println(s.Type, s.Score, string(text[s.Start:s.End]))
//	}
//
// One pass goes over the bytes and calls the scanners only at bytes that can begin a value: a
// digit, a letter, '@', ':', '-'. Check digits decide if the type has them. A value with the
// shape of a type but a wrong check digit is found neither as that type nor as a looser one: a
// card number that fails Luhn is not a phone number. If the shape alone is not enough (passport,
// driver licence, account number), a word before the value, in one of about twenty languages, is
// required; see words.go.
//
// The text need not be folded: full-width forms, the digits of other scripts, and unusual spaces
// and dashes are read as the plain ones. Offsets are always in bytes of the original text.
package pii

import "sync"

// Span is a value found in a text.
type Span struct {
	Start, End int32   // bytes of the text: text[Start:End] is the value
	Type       Type    // what it is
	Score      float32 // probability that it is of this type, in (0, 1]; see table.go
}

// maxText is how many bytes Find reads at most: offsets are int32.
const maxText = 1<<31 - 1

// HasKey reports whether Find would find a key or a token of a program in text.
func HasKey(text []byte) bool {
	var few [4]Span
	for _, s := range Find(few[:0], text) {
		if s.Type == APIKey {
			return true
		}
	}
	return false
}

// Find appends to dst the values found in text, sorted by Start, not overlapping, on the
// boundaries of UTF-8 sequences, and returns it. Its time is linear in the text; it allocates
// only dst. It keeps no reference to either.
func Find(dst []Span, text []byte) []Span {
	s := scans.Get().(*scan)
	base := len(dst)
	dst = s.find(dst, text)
	dst = s.findDressed(dst, base, text)
	s.text, s.out = nil, nil
	scans.Put(s)
	return dst
}

// findDressed adds the values found in the reading of the text to dst[base:], the values found in
// the text itself. Both count, because apparent emphasis may be part of a key.
func (s *scan) findDressed(dst []Span, base int, text []byte) []Span {
	r := &s.reading
	if len(text) > maxText || !r.read(text) {
		return dst
	}
	r.found = s.find(r.found[:0], r.text)
	if len(r.found) > 0 {
		for i := range r.found {
			f := &r.found[i]
			f.Start, f.End = r.place(f.Start, f.End)
		}
		r.rules = append(r.rules[:0], dst[base:]...)
		dst = Merge(dst[:base], r.rules, r.found)
	}
	if cap(r.text)+12*cap(r.steps) > maxReading {
		*r = reading{}
	}
	return dst
}

// scans pools the memory of a pass, about 1 KB. A scan is passed to the functions of the table
// and so escapes: without the pool every call would allocate one.
var scans = sync.Pool{New: func() any { return new(scan) }}
