package proxy

import (
	"bytes"
	"errors"
	"io"
	"net/http/httputil"
	"strings"
	"testing"

	"kvasir/openai/answer/answertest"
)

// feed decodes body in reads that end at the given offsets, each in a buffer
// of its own, and returns the payload and the state at the end.
func feed(h *replyHead, body []byte, ends ...int) (payload string, f framing, err error) {
	f.init(h, false)
	var out []byte
	start := 0
	for _, end := range append(ends, len(body)) {
		read := bytes.Clone(body[start:end])
		start = end
		p, rest, e := f.decode(read)
		out = append(out, p...)
		if len(rest) > 0 && !f.done() {
			panic("rest before the end")
		}
		if e != nil {
			return string(out), f, e
		}
	}
	return string(out), f, nil
}

func TestFramingOfEveryTranscriptSplitEverywhere(t *testing.T) {
	for _, tr := range answertest.Transcripts(t) {
		var h replyHead
		if _, err := h.parse(tr.Response); err != nil {
			t.Fatal(err)
		}
		wire := tr.Response[tr.Head:]
		step := 1
		switch {
		case len(wire) > 16<<10:
			step = 509 // the two metrics pages: every offset would take minutes
		case h.length >= 0:
			step = 61 // one number has been counted down wherever it is split
		}
		for i := 0; i <= len(wire); i += step {
			got, f, err := feed(&h, wire, i)
			if got != string(tr.Body) || err != nil || f.dirty || f.done() == tr.Cut {
				t.Fatalf("%s split at %d: %d of %d bytes, done %v, dirty %v, %v", tr.Name, i, len(got), len(tr.Body), f.done(), f.dirty, err)
			}
			if eof := f.atEOF(); tr.Cut && eof != errCut || !tr.Cut && eof != nil {
				t.Fatalf("%s split at %d: at EOF %v", tr.Name, i, eof)
			}
		}
		var each []int
		for i := range len(wire) {
			each = append(each, i)
		}
		if got, f, err := feed(&h, wire, each...); got != string(tr.Body) || err != nil || f.done() == tr.Cut {
			t.Errorf("%s byte by byte: %d of %d bytes, %v", tr.Name, len(got), len(tr.Body), err)
		}
	}
}

// A stream that stops at any byte of its chunked body is cut, and gives what
// came.
func TestFramingCutEverywhere(t *testing.T) {
	tr := answertest.Find(t, "vllm/chat_stream_usage")
	var h replyHead
	if _, err := h.parse(tr.Response); err != nil {
		t.Fatal(err)
	}
	wire := tr.Response[tr.Head:]
	for i := range len(wire) {
		got, f, err := feed(&h, wire[:i])
		if err != nil || !strings.HasPrefix(string(tr.Body), got) || f.done() || f.atEOF() != errCut {
			t.Fatalf("cut at %d of %d: done %v, %v, at EOF %v", i, len(wire), f.done(), err, f.atEOF())
		}
	}
}

func TestFraming(t *testing.T) {
	chunked := replyHead{status: 200, length: -1, chunked: true}
	sized := func(n int64) replyHead { return replyHead{status: 200, length: n} }
	ext := strings.Repeat("e", maxChunkLine-3)
	trailer := strings.Repeat("t", maxTrailers-6)
	for _, c := range []struct {
		name  string
		h     replyHead
		in    string
		out   string
		err   error // of decode
		eof   error
		dirty bool
	}{
		{name: "length", h: sized(5), in: "hello", out: "hello"},
		{name: "length, short", h: sized(5), in: "hell", out: "hell", eof: errCut},
		{name: "length, long", h: sized(5), in: "hello!", out: "hello", dirty: true},
		{name: "length 0", h: sized(0), in: ""},
		{name: "length 0, long", h: sized(0), in: "x", dirty: true},
		{name: "no body by status", h: replyHead{status: 204, length: 5, chunked: true}, in: ""},
		{name: "not modified", h: replyHead{status: 304, length: 5}, in: "", out: ""},
		{name: "until close", h: replyHead{status: 200, length: -1}, in: "hello", out: "hello"},
		{name: "until close, empty", h: replyHead{status: 200, length: -1}, in: ""},

		{name: "chunks", h: chunked, in: "5\r\nhello\r\n1\r\n \r\n000A\r\n0123456789\r\n0\r\n\r\n", out: "hello 0123456789"},
		{name: "nothing but the end", h: chunked, in: "0\r\n\r\n"},
		{name: "00000000000000000 ends", h: chunked, in: "00000000000000000\r\n\r\n"},
		{name: "extensions", h: chunked, in: "5;a=b\r\nhello\r\n5 \t;c=\"d;e\"\r\nworld\r\n0 \r\n\r\n", out: "helloworld"},
		{name: "trailers", h: chunked, in: "1\r\nx\r\n0\r\nA: b\r\nC:\td\r\n\r\n", out: "x"},
		{name: "next reply behind the end", h: chunked, in: "1\r\nx\r\n0\r\n\r\nHTTP/1.1", out: "x", dirty: true},
		{name: "a size line of 4 KiB", h: chunked, in: "1;" + ext + "\r\nx\r\n0\r\n\r\n", out: "x"},
		{name: "one byte more", h: chunked, in: "1;" + ext + "e\r\nx\r\n0\r\n\r\n", err: errChunkLine, eof: errChunkLine},
		{name: "trailers of 64 KiB", h: chunked, in: "0\r\n" + trailer + ": \r\n\r\n"},
		{name: "a few bytes more", h: chunked, in: "0\r\n" + trailer + ": more\r\n\r\n", err: errTrailers, eof: errTrailers},
		{name: "largest chunk", h: chunked, in: "10000000000\r\nx", out: "x", eof: errCut},
		{name: "one byte larger", h: chunked, in: "10000000001\r\nx", err: errChunkSize, eof: errChunkSize},
		{name: "2^64", h: chunked, in: "10000000000000000\r\nx", err: errChunkSize, eof: errChunkSize},

		{name: "cut before a size", h: chunked, in: "", eof: errCut},
		{name: "cut in a chunk", h: chunked, in: "5\r\nhel", out: "hel", eof: errCut},
		{name: "cut before the last CRLF", h: chunked, in: "1\r\nx\r\n0\r\n", out: "x", eof: errCut},
		{name: "no size", h: chunked, in: "\r\nx", err: errChunkSize, eof: errChunkSize},
		{name: "negative size", h: chunked, in: "-1\r\nx", err: errChunkSize, eof: errChunkSize},
		{name: "0x", h: chunked, in: "0x1\r\nx", err: errChunkSize, eof: errChunkSize},
		{name: "space first", h: chunked, in: " 1\r\nx", err: errChunkSize, eof: errChunkSize},
		{name: "two sizes", h: chunked, in: "1 1\r\nx", err: errChunkSize, eof: errChunkSize},
		{name: "bare LF behind the size", h: chunked, in: "1\nx\r\n0\r\n\r\n", err: errChunkSize, eof: errChunkSize},
		{name: "bare LF in an extension", h: chunked, in: "1;a\nx\r\n", err: errChunkLine, eof: errChunkLine},
		{name: "bare CR behind the size", h: chunked, in: "1\rx", err: errChunkLine, eof: errChunkLine},
		{name: "chunk too long", h: chunked, in: "1\r\nxy\r\n", out: "x", err: errChunkEnd, eof: errChunkEnd},
		{name: "chunk with bare LF", h: chunked, in: "1\r\nx\n", out: "x", err: errChunkEnd, eof: errChunkEnd},
		{name: "chunk with bare CR", h: chunked, in: "1\r\nx\r0", out: "x", err: errChunkEnd, eof: errChunkEnd},
		{name: "trailer with bare LF", h: chunked, in: "0\r\nA: b\n\r\n", err: errTrailers, eof: errTrailers},
		{name: "folded trailer", h: chunked, in: "0\r\nA: b\r\n c\r\n\r\n", err: errTrailers, eof: errTrailers},
		{name: "bare LF at the end", h: chunked, in: "0\r\n\n", err: errTrailers, eof: errTrailers},
	} {
		for _, whole := range []bool{true, false} {
			var ends []int
			for i := range len(c.in) {
				if !whole {
					ends = append(ends, i)
				}
			}
			got, f, err := feed(&c.h, []byte(c.in), ends...)
			eof := f.atEOF()
			if got != c.out || err != c.err || eof != c.eof || f.dirty != c.dirty || f.done() != (c.eof == nil) {
				t.Errorf("%s (whole %v): %q, %v, at EOF %v, dirty %v, done %v", c.name, whole, got, err, eof, f.dirty, f.done())
			}
		}
	}
}

func TestFramingOfHEAD(t *testing.T) {
	var f framing
	f.init(&replyHead{status: 200, length: 5}, true)
	if !f.done() || f.atEOF() != nil {
		t.Error("the reply to HEAD has a body")
	}
}

// The bytes behind the end come back, an error stays, and a read inside one
// chunk is not moved.
func TestFramingInPlace(t *testing.T) {
	var f framing
	h := replyHead{status: 200, length: -1, chunked: true}
	f.init(&h, false)
	b := []byte("6\r\nabc")
	p, _, err := f.decode(b)
	if string(p) != "abc" || &p[0] != &b[3] || err != nil {
		t.Fatalf("%q %v", p, err)
	}
	b = []byte("def")
	if p, _, _ = f.decode(b); &p[0] != &b[0] || len(p) != 3 {
		t.Fatalf("%q", p)
	}
	b = []byte("\r\n2\r\ngh\r\n1\r\ni\r\n0\r\n\r\nrest")
	p, rest, err := f.decode(b)
	if string(p) != "ghi" || &p[0] != &b[5] || string(rest) != "rest" || err != nil || !f.dirty || !f.done() {
		t.Fatalf("%q %q %v %+v", p, rest, err, f)
	}
	f.init(&h, false)
	if p, _, err = f.decode([]byte("1\r\nx\r\nzz\r\n")); string(p) != "x" || err != errChunkSize {
		t.Fatalf("%q %v", p, err)
	}
	if p, _, err = f.decode([]byte("1\r\ny\r\n")); len(p) != 0 || err != errChunkSize {
		t.Fatalf("after an error: %q %v", p, err)
	}
}

func TestFrameChunk(t *testing.T) {
	for _, n := range []int{1, 9, 15, 16, 255, 4096, 65536} {
		payload := strings.Repeat("p", n)
		buf := []byte(strings.Repeat("-", chunkHeadroom) + payload + "--")
		s, e := frameChunk(buf, chunkHeadroom, chunkHeadroom+n)
		want := string(appendChunkHead(nil, n)) + payload + "\r\n"
		if string(buf[s:e]) != want {
			t.Fatalf("%d bytes: %.40q", n, buf[s:e])
		}
		got, err := io.ReadAll(httputil.NewChunkedReader(strings.NewReader(string(buf[s:e]) + lastChunk)))
		if string(got) != payload || err != nil {
			t.Fatalf("%d bytes: net/http reads %d, %v", n, len(got), err)
		}
	}
	for _, bad := range [][2]int{{9, 10}, {10, 10}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("frameChunk of %v does not panic", bad)
				}
			}()
			frameChunk(make([]byte, 16), bad[0], bad[1])
		}()
	}
}

// A read is decoded, framed anew and ready to send without an allocation.
func TestFramingAllocs(t *testing.T) {
	h := replyHead{status: 200, length: -1, chunked: true}
	wire := []byte("e\r\ndata: [DONE]\n\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n")
	buf := make([]byte, chunkHeadroom+len(wire)+chunkTailroom)
	if n := testing.AllocsPerRun(100, func() {
		var f framing
		f.init(&h, false)
		copy(buf[chunkHeadroom:], wire)
		p, _, err := f.decode(buf[chunkHeadroom : chunkHeadroom+len(wire)])
		if err != nil || !f.done() {
			t.Fatal(err)
		}
		start := chunkHeadroom + bytes.Index(wire, []byte("data"))
		frameChunk(buf, start, start+len(p))
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzFraming: however the reads are split the result is the same, and it is
// that of net/http's chunked reader.
func FuzzFraming(f *testing.F) {
	for _, name := range []string{"vllm/chat_stream", "vllm/sse_keepalive_queued", "vllm/pd/sigterm_stream"} {
		tr := answertest.Find(f, name)
		f.Add(tr.Response[tr.Head:], uint16(7))
	}
	f.Add([]byte("5;a=b\r\nhello\r\n0\r\nT: x\r\n\r\nmore"), uint16(3))
	f.Fuzz(func(t *testing.T, wire []byte, size uint16) {
		h := replyHead{status: 200, length: -1, chunked: true}
		whole, f1, err1 := feed(&h, wire)
		var ends []int
		for i := int(size%64) + 1; i < len(wire); i += int(size%64) + 1 {
			ends = append(ends, i)
		}
		split, f2, err2 := feed(&h, wire, ends...)
		if whole != split || err1 != err2 || f1.done() != f2.done() || f1.dirty != f2.dirty {
			t.Fatalf("split %v: %q %v, whole %q %v", ends, split, err2, whole, err1)
		}
		twin, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(wire)))
		switch {
		case err == nil && (whole != string(twin) || err1 != nil && err1 != errTrailers && err1 != errChunkLine):
			// The twin stops before the trailers, and takes control characters in extensions.
			t.Fatalf("%q %v, net/http %q", whole, err1, twin)
		case errors.Is(err, io.ErrUnexpectedEOF) && err1 == nil && (whole != string(twin) || f1.done()):
			t.Fatalf("%q done %v, net/http was cut at %q", whole, f1.done(), twin)
		case !strings.HasPrefix(whole, string(twin)) && !strings.HasPrefix(string(twin), whole):
			t.Fatalf("%q, net/http %q", whole, twin)
		case f1.done() && err != nil && !twinLimit(wire, err):
			t.Fatalf("%q is whole, net/http: %v", whole, err)
		}
	})
}

// twinLimit tells net/http's own limits: 16 digits of a size, how much framing
// there may be for how few bytes, and no blanks before an extension, which RFC
// 9112, 7.1.1, tells recipients to read.
func twinLimit(wire []byte, err error) bool {
	blank := bytes.Contains(wire, []byte(" ;")) || bytes.Contains(wire, []byte("\t;"))
	for _, limit := range []string{"too large", "too much non-data", "line too long"} {
		if strings.Contains(err.Error(), limit) {
			return true
		}
	}
	return blank && strings.Contains(err.Error(), "invalid byte")
}

func BenchmarkFraming(b *testing.B) {
	tr := answertest.Find(b, "vllm/cache_3_warm_stream")
	h := replyHead{status: 200, length: -1, chunked: true}
	wire := tr.Response[tr.Head:]
	for _, c := range []struct {
		name string
		read int
	}{{"one event a read", 240}, {"whole body a read", len(wire)}} {
		b.Run(c.name, func(b *testing.B) {
			buf := make([]byte, len(wire))
			b.SetBytes(int64(len(wire)))
			b.ReportAllocs()
			for b.Loop() {
				var f framing
				f.init(&h, false)
				copy(buf, wire)
				for i := 0; i < len(buf); i += c.read {
					if _, _, err := f.decode(buf[i:min(i+c.read, len(buf))]); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
