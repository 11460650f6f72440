// Answers as they are kept: written, read, and refused where they are none.

package answer

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func wholeAnswer() Answer {
	return Answer{
		Model: "m", Created: 1795263445, Text: []byte("Grüße, 世界!"), Reasoning: []byte("hm\n"), ReasoningKey: "reasoning",
		Finish: "stop", Fingerprint: "vllm-0.32.0-e7a2c13f", RawUsage: []byte(`{"prompt_tokens":7}`),
		Calls: []byte(`[{"id":"a"}]`), Pieces: []int32{4, 9, 12, 16},
	}
}

func TestAnswerIsReadAsItWasWritten(t *testing.T) {
	for _, want := range []Answer{
		wholeAnswer(),
		{},
		{Created: -1, Text: []byte("a")},
		{Model: strings.Repeat("m", nameLimit), Text: bytes.Repeat([]byte("a"), textLimit), Finish: "length"},
	} {
		got, err := Parse(want.AppendTo(nil))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %.200v %v\nwant %.200v", got, err, want)
		}
	}
}

func TestAnswerThatIsNone(t *testing.T) {
	whole := wholeAnswer()
	data := whole.AppendTo(nil)
	for n := range data {
		if _, err := Parse(data[:n]); err == nil {
			t.Errorf("read one that was cut at %d of %d", n, len(data))
		}
	}
	for name, change := range map[string]func(*Answer){
		"text in no UTF-8":             func(a *Answer) { a.Text[3] = 0xff },
		"reasoning in no UTF-8":        func(a *Answer) { a.Reasoning[0] = 0xff },
		"model in no UTF-8":            func(a *Answer) { a.Model = "\xff" },
		"a long model":                 func(a *Answer) { a.Model = strings.Repeat("m", nameLimit+1) },
		"a long text":                  func(a *Answer) { a.Text, a.Pieces = make([]byte, textLimit+1), nil },
		"usage over two lines":         func(a *Answer) { a.RawUsage = []byte("{\n}") },
		"usage that is none":           func(a *Answer) { a.RawUsage = []byte(`{"a":}`) },
		"usage and more":               func(a *Answer) { a.RawUsage = []byte(`{},{}`) },
		"calls that are no array":      func(a *Answer) { a.Calls = []byte(`{}`) },
		"a piece within a character":   func(a *Answer) { a.Pieces[0] = 3 },
		"a piece behind the text":      func(a *Answer) { a.Pieces[3] = 17 },
		"pieces that end before it":    func(a *Answer) { a.Pieces = a.Pieces[:3] },
		"an empty piece":               func(a *Answer) { a.Pieces = []int32{4, 4, 16} },
		"reasoning without its member": func(a *Answer) { a.ReasoningKey = "" },
	} {
		a := wholeAnswer()
		change(&a)
		if got, err := Parse(a.AppendTo(nil)); err == nil {
			t.Errorf("%s: read %v", name, got)
		}
	}
	if _, err := Parse(append(data, 0)); err == nil {
		t.Error("read one with a byte behind it")
	}
	data[2]++
	if _, err := Parse(data); err == nil || !strings.Contains(err.Error(), "cannot read a kept answer of 96 bytes: it is cut") {
		t.Errorf("another version: %v", err)
	}
}

// FuzzAnswer: whatever the bytes are, what is read keeps the rules of the type,
// and is read again as it is.
func FuzzAnswer(f *testing.F) {
	whole, few := wholeAnswer(), Answer{Text: []byte("a")}
	f.Add(whole.AppendTo(nil))
	f.Add(few.AppendTo(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := Parse(data)
		if err != nil {
			return
		}
		if !utf8.Valid(a.Text) || !utf8.Valid(a.Reasoning) || !slices.IsSorted(a.Pieces) ||
			bytes.ContainsAny(a.RawUsage, "\r\n") || bytes.ContainsAny(a.Calls, "\r\n") {
			t.Fatalf("%q", a.AppendTo(nil))
		}
		again, err := Parse(a.AppendTo(nil))
		if err != nil || !reflect.DeepEqual(again, a) {
			t.Fatalf("%v is %v %v", a, again, err)
		}
	})
}
