// Events told apart, however their bytes come, and their fields.

package openai_test

import (
	"slices"
	"strings"
	"testing"

	"kvasir/openai"
	"kvasir/openai/answer/answertest"
)

// scan feeds stream in pieces of the given size and returns the events, and
// what is left unfinished at the end.
func scan(stream string, size int) (events []string, rest string) {
	var s openai.EventScanner
	var b []byte
	for i := 0; i < len(stream); i += size {
		b = append(b, stream[i:min(i+size, len(stream))]...)
		for {
			n := s.Next(b)
			if n == 0 {
				break
			}
			events = append(events, string(b[:n]))
			b = b[n:]
		}
	}
	return events, string(b)
}

func TestEventsOfEveryTranscriptSplitEverywhere(t *testing.T) {
	streams := 0
	for _, tr := range answertest.Transcripts(t) {
		want := tr.Events()
		if want == nil {
			continue
		}
		streams++
		for size := 1; size <= len(tr.Body); size++ {
			got, rest := scan(string(tr.Body), size)
			if !slices.Equal(got, want) || rest != "" {
				t.Fatalf("%s in pieces of %d: %d events of %d, rest %q", tr.Name, size, len(got), len(want), rest)
			}
		}
	}
	if streams < 20 {
		t.Errorf("only %d streams", streams)
	}
}

func TestEvents(t *testing.T) {
	for _, c := range []struct {
		in     string
		events []string // in one piece
		rest   string
	}{
		{in: ""},
		{in: "data: 1\n\ndata: 2\n\n", events: []string{"data: 1\n\n", "data: 2\n\n"}},
		{in: "data: 1\r\n\r\ndata: 2\r\n\r\n", events: []string{"data: 1\r\n\r\n", "data: 2\r\n\r\n"}},
		{in: "data: 1\r\rdata: 2\r\r", events: []string{"data: 1\r\r", "data: 2\r\r"}},
		{in: "data: 1\r\n\rdata: 2\n\r\n", events: []string{"data: 1\r\n\r", "data: 2\n\r\n"}},
		{in: "event: a\ndata: 1\r\ndata: 2\rid: 3\n\n", events: []string{"event: a\ndata: 1\r\ndata: 2\rid: 3\n\n"}},
		{in: ": ping\n\n\n\ndata: 1\n\n", events: []string{": ping\n\n", "\n", "\n", "data: 1\n\n"}},
		{in: "data: 1\n", rest: "data: 1\n"},
		{in: "data: 1\n\ndata: 2\r\n", events: []string{"data: 1\n\n"}, rest: "data: 2\r\n"},
		{in: "12345678\n87654321\r\n\r\n1", events: []string{"12345678\n87654321\r\n\r\n"}, rest: "1"},
	} {
		events, rest := scan(c.in, len(c.in)+1)
		if !slices.Equal(events, c.events) || rest != c.rest {
			t.Errorf("%q: %q rest %q", c.in, events, rest)
		}
	}
}

// An event that ends in CR is not held back for the LF that may follow; the LF
// then leads the next event.
func TestEventEndsInCRBeforeItsLF(t *testing.T) {
	var s openai.EventScanner
	if n := s.Next([]byte("data: 1\r\n\r")); n != 10 {
		t.Fatalf("n %d", n)
	}
	if n := s.Next([]byte("\n")); n != 0 {
		t.Fatalf("an LF alone is an event of %d bytes", n)
	}
	if n := s.Next([]byte("\ndata: 2\n\n")); n != 10 {
		t.Fatalf("n %d", n)
	}
	if _, data := openai.EventFields([]byte("\ndata: [DONE]\n\n")); string(data) != "[DONE]\n\n" {
		t.Errorf("%q", data)
	}
}

// An event that is too long for the buffer goes on in pieces.
func TestEventPassedInPieces(t *testing.T) {
	const tail = "end\n\ndata: 2\n\n"
	event := "data: " + strings.Repeat("x", 1000) + "\r\n"
	for _, keep := range []int{0, 1, 5} {
		var s openai.EventScanner
		b := []byte(event)
		if n := s.Next(b); n != 0 || s.Pending() != len(event) {
			t.Fatalf("n %d, pending %d", n, s.Pending())
		}
		s.Passed(len(b) - keep)
		b = append(b[len(b)-keep:], "data: "...)
		if n := s.Next(b); n != 0 || s.Pending() != len(event)+6 {
			t.Fatalf("keep %d: n %d, pending %d", keep, n, s.Pending())
		}
		s.Passed(len(b))
		if n := s.Next([]byte(tail)); n != 5 {
			t.Fatalf("keep %d: n %d", keep, n)
		}
		if n := s.Next([]byte(tail[5:])); n != 9 || s.Pending() != 0 {
			t.Fatalf("keep %d: next n %d", keep, n)
		}
	}
}

func TestEventFields(t *testing.T) {
	for _, c := range []struct{ event, name, data string }{
		{"data: x\n\n", "", "x\n\n"},
		{"data:x\n\n", "", "x\n\n"},
		{"data:  x \n\n", "", "x \n\n"},
		{"\xef\xbb\xbfdata: x\n\n", "", "x\n\n"},
		{"event: a\r\ndata: x\r\nevent: b\r\n\r\n", "b", "x\r\nevent: b\r\n\r\n"},
		{"event\ndata\ndata:\ndata: \t\ndata: x\n\n", "", "x\n\n"},
		{"datax: x\neventy: z\n: data: c\nid: 4\n\n", "", ""},
		{"\n", "", ""},
		{"data: x", "", "x"},
	} {
		name, data := openai.EventFields([]byte(c.event))
		if string(name) != c.name || string(data) != c.data {
			t.Errorf("%q: %q %q", c.event, name, data)
		}
	}
}

// slowEvents is the standard's way, a byte at a time over the whole stream.
func slowEvents(stream string) (events []string, rest string) {
	start, line := 0, 0
	for i := 0; i < len(stream); i++ {
		if stream[i] != '\n' && stream[i] != '\r' {
			continue
		}
		blank := i == line
		if stream[i] == '\r' && i+1 < len(stream) && stream[i+1] == '\n' {
			i++
		}
		line = i + 1
		if blank {
			events = append(events, stream[start:line])
			start = line
		}
	}
	return events, stream[start:]
}

// FuzzEvents: however the stream is split, the events are those of the slow
// twin, but that an LF parted from its CR may lead the next event.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("data: 1\n\ndata: 2\r\n\r\n: c\r\r"), uint16(3))
	f.Fuzz(func(t *testing.T, stream []byte, size uint16) {
		want, wantRest := slowEvents(string(stream))
		got, rest := scan(string(stream), len(stream)+1)
		if !slices.Equal(got, want) || rest != wantRest {
			t.Fatalf("%q: %q rest %q, want %q rest %q", stream, got, rest, want, wantRest)
		}
		got, rest = scan(string(stream), int(size%97)+1)
		if strings.Join(got, "")+rest != string(stream) {
			t.Fatalf("%q: lost bytes: %q rest %q", stream, got, rest)
		}
		got = append(got, rest)
		for i := range got[1:] {
			if strings.HasSuffix(got[i], "\r") && strings.HasPrefix(got[i+1], "\n") {
				got[i], got[i+1] = got[i]+"\n", got[i+1][1:]
			}
		}
		if !slices.Equal(got, append(want, wantRest)) {
			t.Fatalf("%q in pieces of %d: %q, want %q", stream, size%97+1, got, append(want, wantRest))
		}
	})
}

func BenchmarkEventScanner(b *testing.B) {
	tr := answertest.Find(b, "vllm/cache_3_warm_stream")
	body := []byte(strings.Repeat(string(tr.Body), 8))
	events, _ := scan(string(body), len(body))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		var s openai.EventScanner
		count := 0
		for rest := body; ; count++ {
			n := s.Next(rest)
			if n == 0 {
				break
			}
			rest = rest[n:]
		}
		if count != len(events) {
			b.Fatal(count)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)), "ns/event")
}
