// Answers as they are kept: written, read, and refused where they are none.
package proxy

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func wholeAnswer() answer {
	return answer{
		model: "m", created: 1795263445, text: []byte("Grüße, 世界!"), reasoning: []byte("hm\n"), reasoningKey: "reasoning",
		finish: "stop", fingerprint: "vllm-0.32.0-e7a2c13f", usage: []byte(`{"prompt_tokens":7}`),
		calls: []byte(`[{"id":"a"}]`), pieces: []int32{4, 9, 12, 16},
	}
}

func TestAnswerIsReadAsItWasWritten(t *testing.T) {
	for _, want := range []answer{
		wholeAnswer(),
		{},
		{created: -1, text: []byte("a")},
		{model: strings.Repeat("m", nameLimit), text: bytes.Repeat([]byte("a"), answerLimit), finish: "length"},
	} {
		got, err := readAnswer(want.append(nil))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %.200v %v\nwant %.200v", got, err, want)
		}
	}
}

func TestAnswerThatIsNone(t *testing.T) {
	whole := wholeAnswer()
	data := whole.append(nil)
	for n := range data {
		if _, err := readAnswer(data[:n]); err == nil {
			t.Errorf("read one that was cut at %d of %d", n, len(data))
		}
	}
	for name, change := range map[string]func(*answer){
		"text in no UTF-8":             func(a *answer) { a.text[3] = 0xff },
		"reasoning in no UTF-8":        func(a *answer) { a.reasoning[0] = 0xff },
		"model in no UTF-8":            func(a *answer) { a.model = "\xff" },
		"a long model":                 func(a *answer) { a.model = strings.Repeat("m", nameLimit+1) },
		"a long text":                  func(a *answer) { a.text, a.pieces = make([]byte, answerLimit+1), nil },
		"usage over two lines":         func(a *answer) { a.usage = []byte("{\n}") },
		"usage that is none":           func(a *answer) { a.usage = []byte(`{"a":}`) },
		"usage and more":               func(a *answer) { a.usage = []byte(`{},{}`) },
		"calls that are no array":      func(a *answer) { a.calls = []byte(`{}`) },
		"a piece within a character":   func(a *answer) { a.pieces[0] = 3 },
		"a piece behind the text":      func(a *answer) { a.pieces[3] = 17 },
		"pieces that end before it":    func(a *answer) { a.pieces = a.pieces[:3] },
		"an empty piece":               func(a *answer) { a.pieces = []int32{4, 4, 16} },
		"reasoning without its member": func(a *answer) { a.reasoningKey = "" },
	} {
		a := wholeAnswer()
		change(&a)
		if got, err := readAnswer(a.append(nil)); err == nil {
			t.Errorf("%s: read %v", name, got)
		}
	}
	if _, err := readAnswer(append(data, 0)); err == nil {
		t.Error("read one with a byte behind it")
	}
	data[2]++
	if _, err := readAnswer(data); err == nil || !strings.Contains(err.Error(), "cannot read a kept answer of 96 bytes: it is cut") {
		t.Errorf("another version: %v", err)
	}
}

// FuzzAnswer: whatever the bytes are, what is read keeps the rules of the type,
// and is read again as it is.
func FuzzAnswer(f *testing.F) {
	whole, few := wholeAnswer(), answer{text: []byte("a")}
	f.Add(whole.append(nil))
	f.Add(few.append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := readAnswer(data)
		if err != nil {
			return
		}
		if !utf8.Valid(a.text) || !utf8.Valid(a.reasoning) || !slices.IsSorted(a.pieces) ||
			bytes.ContainsAny(a.usage, "\r\n") || bytes.ContainsAny(a.calls, "\r\n") {
			t.Fatalf("%q", a.append(nil))
		}
		again, err := readAnswer(a.append(nil))
		if err != nil || !reflect.DeepEqual(again, a) {
			t.Fatalf("%v is %v %v", a, again, err)
		}
	})
}
