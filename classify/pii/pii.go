// Package pii finds structured personal data in text by rules: e-mail
// addresses, phone numbers, cards, account and identity numbers, keys,
// passwords, dates and more, named as Presidio names them.
//
//	spans := pii.Find(nil, text)
//	for _, s := range spans {
//		fmt.Println(s.Type, s.Score, string(text[s.Start:s.End]))
//	}
//
// One pass goes over the bytes and hands a place to the scanners only where
// a byte can begin something: a digit, a letter, '@', ':', '-'. Check digits
// decide wherever a type has them. What has the shape of a type and the wrong
// check digit is found neither as that type nor as a looser one: a card
// number that fails Luhn is no phone number. Where a shape alone says too
// little (passport, driver licence, account number), a word before the value
// in one of some twenty languages is required; see words.go.
//
// The text need not be folded: full-width forms, the digits of other scripts,
// odd spaces and dashes are read as the plain ones. Offsets are always bytes
// of the text that was given.
package pii

import "sync"

// Span is a value found in a text.
type Span struct {
	Start, End int32   // bytes of the text: text[Start:End] is the value
	Type       Type    // what it is
	Score      float32 // how likely it is that, in (0, 1]; see table.go
}

// maxText is the most bytes Find looks at: offsets are int32.
const maxText = 1<<31 - 1

// HasKey tells whether there is a key or a token of a program in text, as Find finds them.
func HasKey(text []byte) bool {
	var few [4]Span
	for _, s := range Find(few[:0], text) {
		if s.Type == APIKey {
			return true
		}
	}
	return false
}

// Find appends to dst the values found in text, sorted by Start, not
// overlapping, on the borders of UTF-8 sequences, and returns it. Its time is
// linear in the text; it allocates nothing but dst. It keeps no reference to
// either.
func Find(dst []Span, text []byte) []Span {
	s := scans.Get().(*scan)
	base := len(dst)
	dst = s.find(dst, text)
	dst = s.findDressed(dst, base, text)
	s.text, s.out = nil, nil
	scans.Put(s)
	return dst
}

// findDressed adds to dst[base:], which was found in the text itself, what is found
// in its reading. The text itself counts too: what looks like emphasis may be part
// of a key.
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

// scans holds the memory of a pass, about 1 KB: it is passed through the
// functions of the table, so it would be allocated anew by every call.
var scans = sync.Pool{New: func() any { return new(scan) }}
