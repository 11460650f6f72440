package wire

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
func feed(begin Framing, body []byte, ends ...int) (payload string, f Framing, err error) {
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

// recorded returns the body of a recorded reply as received, with its framing.
func recorded(tr answertest.Transcript) []byte { return tr.Response[tr.Head:] }

func TestFraming(t *testing.T) {
	chunked := Chunked()
	ext := strings.Repeat("e", maxChunkLine-3)
	trailer := strings.Repeat("t", maxTrailers-6)
	for _, c := range []struct {
		name  string
		h     Framing
		in    string
		out   string
		err   error // of decode
		eof   error
		dirty bool
	}{
		{name: "length", h: Sized(5), in: "hello", out: "hello"},
		{name: "length, short", h: Sized(5), in: "hell", out: "hell", eof: ErrCut},
		{name: "length, long", h: Sized(5), in: "hello!", out: "hello", dirty: true},
		{name: "length 0", h: Sized(0), in: ""},
		{name: "length 0, long", h: Sized(0), in: "x", dirty: true},
		{name: "until close", h: UntilClose(), in: "hello", out: "hello"},
		{name: "until close, empty", h: UntilClose(), in: ""},

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
		{name: "largest chunk", h: chunked, in: "10000000000\r\nx", out: "x", eof: ErrCut},
		{name: "one byte larger", h: chunked, in: "10000000001\r\nx", err: errChunkSize, eof: errChunkSize},
		{name: "2^64", h: chunked, in: "10000000000000000\r\nx", err: errChunkSize, eof: errChunkSize},

		{name: "cut before a size", h: chunked, in: "", eof: ErrCut},
		{name: "cut in a chunk", h: chunked, in: "5\r\nhel", out: "hel", eof: ErrCut},
		{name: "cut before the last CRLF", h: chunked, in: "1\r\nx\r\n0\r\n", out: "x", eof: ErrCut},
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
			got, f, err := feed(c.h, []byte(c.in), ends...)
			eof := f.AtEOF()
			if got != c.out || err != c.err || eof != c.eof || f.dirty != c.dirty || f.Done() != (c.eof == nil) {
				t.Errorf("%s (whole %v): %q, %v, at EOF %v, dirty %v, done %v", c.name, whole, got, err, eof, f.dirty, f.Done())
			}
		}
	}
}

// Bytes after the end are returned, an error stays, and a read inside one chunk is not moved.
func TestFramingInPlace(t *testing.T) {
	f := Chunked()
	b := []byte("6\r\nabc")
	p, _, err := f.Decode(b)
	if string(p) != "abc" || &p[0] != &b[3] || err != nil {
		t.Fatalf("%q %v", p, err)
	}
	b = []byte("def")
	if p, _, _ = f.Decode(b); &p[0] != &b[0] || len(p) != 3 {
		t.Fatalf("%q", p)
	}
	b = []byte("\r\n2\r\ngh\r\n1\r\ni\r\n0\r\n\r\nrest")
	p, rest, err := f.Decode(b)
	if string(p) != "ghi" || &p[0] != &b[5] || string(rest) != "rest" || err != nil || !f.dirty || !f.Done() {
		t.Fatalf("%q %q %v %+v", p, rest, err, f)
	}
	f = Chunked()
	if p, _, err = f.Decode([]byte("1\r\nx\r\nzz\r\n")); string(p) != "x" || err != errChunkSize {
		t.Fatalf("%q %v", p, err)
	}
	if p, _, err = f.Decode([]byte("1\r\ny\r\n")); len(p) != 0 || err != errChunkSize {
		t.Fatalf("after an error: %q %v", p, err)
	}
}

func TestFrameChunk(t *testing.T) {
	for _, n := range []int{1, 9, 15, 16, 255, 4096, 65536} {
		payload := strings.Repeat("p", n)
		buf := []byte(strings.Repeat("-", chunkHeadroom) + payload + "--")
		s, e := FrameChunk(buf, chunkHeadroom, chunkHeadroom+n)
		want := string(AppendChunkHead(nil, n)) + payload + "\r\n"
		if string(buf[s:e]) != want {
			t.Fatalf("%d bytes: %.40q", n, buf[s:e])
		}
		got, err := io.ReadAll(httputil.NewChunkedReader(strings.NewReader(string(buf[s:e]) + LastChunk)))
		if string(got) != payload || err != nil {
			t.Fatalf("%d bytes: net/http reads %d, %v", n, len(got), err)
		}
	}
	for _, bad := range [][2]int{{9, 10}, {10, 10}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("FrameChunk of %v does not panic", bad)
				}
			}()
			FrameChunk(make([]byte, 16), bad[0], bad[1])
		}()
	}
}

// A read is decoded, framed again and ready to send without an allocation.
func TestFramingAllocs(t *testing.T) {
	wire := []byte("e\r\ndata: [DONE]\n\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n")
	buf := make([]byte, chunkHeadroom+len(wire)+chunkTailroom)
	if n := testing.AllocsPerRun(100, func() {
		f := Chunked()
		copy(buf[chunkHeadroom:], wire)
		p, _, err := f.Decode(buf[chunkHeadroom : chunkHeadroom+len(wire)])
		if err != nil || !f.Done() {
			t.Fatal(err)
		}
		start := chunkHeadroom + bytes.Index(wire, []byte("data"))
		FrameChunk(buf, start, start+len(p))
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzFraming: the result does not depend on how the reads are split, and equals that of
// net/http's chunked reader.
func FuzzFraming(f *testing.F) {
	for _, name := range []string{"vllm/chat_stream", "vllm/sse_keepalive_queued", "vllm/pd/sigterm_stream"} {
		f.Add(recorded(answertest.Find(f, name)), uint16(7))
	}
	f.Add([]byte("5;a=b\r\nhello\r\n0\r\nT: x\r\n\r\nmore"), uint16(3))
	f.Fuzz(func(t *testing.T, wire []byte, size uint16) {
		whole, f1, err1 := feed(Chunked(), wire)
		var ends []int
		for i := int(size%64) + 1; i < len(wire); i += int(size%64) + 1 {
			ends = append(ends, i)
		}
		split, f2, err2 := feed(Chunked(), wire, ends...)
		if whole != split || err1 != err2 || f1.Done() != f2.Done() || f1.dirty != f2.dirty {
			t.Fatalf("split %v: %q %v, whole %q %v", ends, split, err2, whole, err1)
		}
		twin, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(wire)))
		switch {
		case err == nil && (whole != string(twin) || err1 != nil && err1 != errTrailers && err1 != errChunkLine):
			// The twin stops before the trailers, and accepts control characters in extensions.
			t.Fatalf("%q %v, net/http %q", whole, err1, twin)
		case errors.Is(err, io.ErrUnexpectedEOF) && err1 == nil && (whole != string(twin) || f1.Done()):
			t.Fatalf("%q done %v, net/http was cut at %q", whole, f1.Done(), twin)
		case !strings.HasPrefix(whole, string(twin)) && !strings.HasPrefix(string(twin), whole):
			t.Fatalf("%q, net/http %q", whole, twin)
		case f1.Done() && err != nil && !twinLimit(wire, err):
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
	wire := recorded(answertest.Find(b, "vllm/cache_3_warm_stream"))
	for _, c := range []struct {
		name string
		read int
	}{{"one event a read", 240}, {"whole body a read", len(wire)}} {
		b.Run(c.name, func(b *testing.B) {
			buf := make([]byte, len(wire))
			b.SetBytes(int64(len(wire)))
			b.ReportAllocs()
			for b.Loop() {
				f := Chunked()
				copy(buf, wire)
				for i := 0; i < len(buf); i += c.read {
					if _, _, err := f.Decode(buf[i:min(i+c.read, len(buf))]); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
