// Replies as they were recorded: their heads say how their bodies are framed.

package upstream

import (
	"bytes"
	"strings"
	"testing"

	"kvasir/openai/answer/answertest"
	"kvasir/wire"
)

// feed decodes body in reads that end at the given offsets, each in a buffer
// of its own, and returns the payload and the state at the end.
func feed(begin wire.Framing, body []byte, ends ...int) (payload string, f wire.Framing, err error) {
	f = begin
	var out []byte
	start := 0
	for _, end := range append(ends, len(body)) {
		read := bytes.Clone(body[start:end])
		start = end
		p, rest, e := f.Decode(read)
		out = append(out, p...)
		if len(rest) > 0 && !f.Done() {
			panic("rest before the end")
		}
		if e != nil {
			return string(out), f, e
		}
	}
	return string(out), f, nil
}

// Some replies have no body, whatever their head says of its length.
func TestNoBodyByStatus(t *testing.T) {
	for _, h := range []Head{{Status: 204, Length: 5, chunked: true}, {Status: 304, Length: 5}} {
		if got, f, err := feed(h.framing(), nil); got != "" || err != nil || f.AtEOF() != nil || f.Dirty() || !f.Done() {
			t.Errorf("%+v: %q, %v, %+v", h, got, err, f)
		}
	}
}

func TestFramingOfEveryTranscriptSplitEverywhere(t *testing.T) {
	for _, tr := range answertest.Transcripts(t) {
		var h Head
		if _, err := h.parse(tr.Response); err != nil {
			t.Fatal(err)
		}
		raw := tr.Response[tr.Head:]
		step := 1
		switch {
		case len(raw) > 16<<10:
			step = 509 // the two metrics pages: every offset would take minutes
		case h.Length >= 0:
			step = 61 // one number has been counted down wherever it is split
		}
		for i := 0; i <= len(raw); i += step {
			got, f, err := feed(h.framing(), raw, i)
			if got != string(tr.Body) || err != nil || f.Dirty() || f.Done() == tr.Cut {
				t.Fatalf("%s split at %d: %d of %d bytes, done %v, dirty %v, %v", tr.Name, i, len(got), len(tr.Body), f.Done(), f.Dirty(), err)
			}
			if eof := f.AtEOF(); tr.Cut && eof != wire.ErrCut || !tr.Cut && eof != nil {
				t.Fatalf("%s split at %d: at EOF %v", tr.Name, i, eof)
			}
		}
		var each []int
		for i := range len(raw) {
			each = append(each, i)
		}
		if got, f, err := feed(h.framing(), raw, each...); got != string(tr.Body) || err != nil || f.Done() == tr.Cut {
			t.Errorf("%s byte by byte: %d of %d bytes, %v", tr.Name, len(got), len(tr.Body), err)
		}
	}
}

// A stream that stops at any byte of its chunked body is cut, and gives what
// came.
func TestFramingCutEverywhere(t *testing.T) {
	tr := answertest.Find(t, "vllm/chat_stream_usage")
	var h Head
	if _, err := h.parse(tr.Response); err != nil {
		t.Fatal(err)
	}
	raw := tr.Response[tr.Head:]
	for i := range len(raw) {
		got, f, err := feed(h.framing(), raw[:i])
		if err != nil || !strings.HasPrefix(string(tr.Body), got) || f.Done() || f.AtEOF() != wire.ErrCut {
			t.Fatalf("cut at %d of %d: done %v, %v, at EOF %v", i, len(raw), f.Done(), err, f.AtEOF())
		}
	}
}
