// Veils: the placeholders that stand in a request for values that a worker is not shown.

package answer

import (
	"bytes"
	"strconv"
	"strings"
)

// A Veil is what was hidden in one request, and under what names. An Unveiler
// puts it back into the answer. The zero value is ready.
type Veil struct {
	Count int // pieces that were hidden, equal ones counted again

	hidden []hidden
	taken  []taken
	counts []kindCount // in the order in which they were met
}

type kindCount struct {
	kind string
	n    int
}

type hidden struct {
	kind        string
	value       string // as it is meant, no escapes
	placeholder string // with its brackets
}

// A taken kind has placeholders, up to a number, that the client wrote itself.
type taken struct {
	kind   string
	number int // 0: none, 1: [PERSON], 2: [PERSON_2]
}

// maxHidden is how many different values of a request are told apart: each is
// compared with those before it.
const maxHidden = 256

// Reset forgets what was hidden and keeps the memory.
func (v *Veil) Reset() {
	v.hidden, v.taken, v.counts, v.Count = v.hidden[:0], v.taken[:0], v.counts[:0], 0
}

// Counts says how many pieces of which kind were hidden: "PERSON=2, EMAIL_ADDRESS=1".
func (v *Veil) Counts() string {
	var b strings.Builder
	for i, c := range v.counts {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(c.kind + "=" + strconv.Itoa(c.n))
	}
	return b.String()
}

func (v *Veil) count(kind string) {
	v.Count++
	for i := range v.counts {
		if v.counts[i].kind == kind {
			v.counts[i].n++
			return
		}
	}
	v.counts = append(v.counts, kindCount{kind, 1})
}

// Placeholder returns what is to stand for a value of this kind: [KIND] for the
// first, [KIND_2] for the next that differs, and so on, equal values under one
// name. It is none that body has itself, since one in the answer could then be
// either. Beyond the first 256 different values of a request those of a kind
// share one placeholder, and are not put back.
func (v *Veil) Placeholder(body []byte, kind string, value []byte) []byte {
	v.count(kind)
	same := v.numbersOf(body, kind)
	for i := range v.hidden {
		h := &v.hidden[i]
		if h.kind != kind {
			continue
		}
		if h.value == string(value) {
			return []byte(h.placeholder)
		}
		same++
	}
	name := "[" + kind + "]"
	if same > 0 {
		name = "[" + kind + "_" + strconv.Itoa(same+1) + "]"
	}
	if len(v.hidden) < maxHidden {
		v.hidden = append(v.hidden, hidden{kind, string(value), name})
	}
	return []byte(name)
}

// numbersOf is the highest number of a placeholder of the kind in the body.
func (v *Veil) numbersOf(body []byte, kind string) int {
	for _, t := range v.taken {
		if t.kind == kind {
			return t.number
		}
	}
	highest := 0
	for name := []byte("[" + kind); ; {
		at := bytes.Index(body, name)
		if at < 0 {
			break
		}
		body = body[at+len(name):]
		digits := bytes.TrimPrefix(body, []byte("_"))
		number := 1
		if len(digits) < len(body) {
			if number = 0; len(digits) > maxNumber {
				digits = digits[:maxNumber]
			}
			for _, c := range digits {
				if c < '0' || c > '9' {
					break
				}
				number = number*10 + int(c-'0')
			}
		}
		highest = max(highest, number)
	}
	v.taken = append(v.taken, taken{kind, highest})
	return highest
}

// maxNumber is how many digits of a placeholder's number are read.
const maxNumber = 6
