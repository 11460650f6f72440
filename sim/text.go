// The text of a simulated answer: the same for the same prompt, seeds and worker. It says that it
// is simulated.

package sim

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// words are the words of answers after their opening. Some are not ASCII, so that clients meet
// characters of two to four bytes. A character of four bytes is two tokens, and the first of them
// adds no text, as in real tokenizers.
var words = []string{
	"tokens", "blocks", "cached", "prefix", "a", "the", "of", "and", "queue", "batch", "worker", "pass", "nothing",
	"simulated", "really", "computed", "here", "only", "counted", "in", "time", "with", "river", "copper", "lantern",
	"harbour", "quiet", "seven", "orange", "window", "letter", "morning", "café", "naïve", "Zürich", "日本語", "数据",
	"привет", "π", "→", "🙂", "🚀", "paper", "garden", "between", "small", "bridge", "winter",
}

// limits determine where an answer ends.
type limits struct {
	max, min    int  // tokens
	ignoreEnd   bool // never end by itself
	stop        []string
	includeStop bool // leave the stop string in the text
}

// answer is a whole answer, known before its first token is generated.
type answer struct {
	tokens     []uint32
	text       []byte
	visible    []int  // bytes of text visible after each token; the beginning of a possible stop string is held back
	reason     string // stop | length
	stopString string // the stop string found, else ""
}

// writeAnswer writes a worker's answer. key identifies the prompt and the seeds.
func writeAnswer(worker string, key uint64, l limits) answer {
	length, byItself := 32+int(key%128), true
	length = max(length, l.min)
	if l.ignoreEnd || length > l.max {
		length, byItself = l.max, false
	}
	a := answer{reason: "length", tokens: make([]uint32, 0, length+16), visible: make([]int, 0, length)}
	a.tokens = appendTokens(a.tokens,
		fmt.Sprintf("%04x: This is a simulated answer from worker %s, no model is behind it.", key&0xffff, worker))
	for sentence, i := 0, uint64(0); len(a.tokens) < length; i++ {
		pick := mix(key, i)
		a.tokens = appendTokens(a.tokens, " "+words[pick%uint64(len(words))])
		if sentence++; sentence > 5 && pick>>32%7 == 0 {
			a.tokens = append(a.tokens, '.')
			sentence = 0
		}
	}
	a.tokens = a.tokens[:length]
	if byItself {
		a.tokens[length-1] = imEnd
		a.reason = "stop"
	}
	a.show(l)
	return a
}

// show sets the text and how much of it is visible after each token, and cuts the answer at a
// stop string.
func (a *answer) show(l limits) {
	longest := 0
	for _, s := range l.stop {
		longest = max(longest, len(s))
	}
	hold := 0
	if longest > 0 && !l.includeStop {
		hold = longest - 1
	}
	for i, id := range a.tokens {
		if id != imEnd {
			a.text = appendTokenText(a.text, id)
		}
		if i+1 > l.min && a.cut(l, longest) {
			a.tokens = a.tokens[:i+1]
			a.visible = append(a.visible, len(a.text))
			return
		}
		a.visible = append(a.visible, wholeCharacters(a.text, len(a.text)-hold))
	}
	a.visible[len(a.visible)-1] = len(a.text)
}

// cut ends the text at its first stop string. It searches only as much of the end as one token
// can have completed.
func (a *answer) cut(l limits, longest int) bool {
	from := max(len(a.text)-longest-utf8.UTFMax-1, 0)
	for _, s := range l.stop {
		at := bytes.Index(a.text[from:], []byte(s))
		if at < 0 {
			continue
		}
		end := from + at
		if l.includeStop {
			end += len(s)
		}
		a.text = a.text[:end]
		a.reason, a.stopString = "stop", s
		return true
	}
	return false
}

// wholeCharacters returns the largest number of bytes, from 0 to n, that splits no character of
// text.
func wholeCharacters(text []byte, n int) int {
	n = max(n, 0)
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}

// piece returns the text that the i-th token makes visible.
func (a *answer) piece(i int) []byte {
	from := 0
	if i > 0 {
		from = a.visible[i-1]
	}
	return a.text[from:a.visible[i]]
}
