// Tests of trace contexts as clients send them, and of sampling.

package traceparent

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

const (
	trace1  = "4bf92f3577b34da6a3ce929d0e0e4736"
	parent1 = "00f067aa0ba902b7"
)

func lines(headers ...string) []byte { return []byte(strings.Join(headers, "\r\n") + "\r\n\r\n") }

// TestRead has the rows of the specification, and those that a lenient reader gets wrong.
func TestRead(t *testing.T) {
	good := "00-" + trace1 + "-" + parent1 + "-01"
	for _, c := range []struct {
		name  string
		lines []byte
		on    bool
		state string
	}{
		{"one", lines("Host: a", "traceparent: "+good), true, ""},
		{"any case of the name", lines("TraceParent: " + good), true, ""},
		{"blanks around it", lines("traceparent: \t" + good + "  "), true, ""},
		{"none", lines("Host: a"), false, ""},
		{"empty", lines("traceparent: "), false, ""},
		{"two", lines("traceparent: "+good, "traceparent: "+good), false, ""},
		{"upper-case digits", lines("traceparent: 00-" + strings.ToUpper(trace1) + "-" + parent1 + "-01"), false, ""},
		{"no trace", lines("traceparent: 00-" + strings.Repeat("0", 32) + "-" + parent1 + "-01"), false, ""},
		{"no parent", lines("traceparent: 00-" + trace1 + "-" + strings.Repeat("0", 16) + "-01"), false, ""},
		{"version ff", lines("traceparent: ff-" + trace1 + "-" + parent1 + "-01"), false, ""},
		{"version 00 with more", lines("traceparent: " + good + "-1"), false, ""},
		{"a later version", lines("traceparent: cc-" + trace1 + "-" + parent1 + "-01"), true, ""},
		{"a later version with more", lines("traceparent: cc-" + trace1 + "-" + parent1 + "-01-what"), true, ""},
		{"a later version run on", lines("traceparent: cc-" + trace1 + "-" + parent1 + "-01what"), false, ""},
		{"short", lines("traceparent: " + good[:54]), false, ""},
		{"no digits", lines("traceparent: 00-" + trace1 + "-" + parent1[:15] + "g-01"), false, ""},
		{"a comma", lines("traceparent: " + good + "," + good), false, ""},
		{"other dividers", lines("traceparent: " + strings.ReplaceAll(good, "-", "_")), false, ""},

		{"a state", lines("traceparent: "+good, "tracestate: a=1,b@c=2"), true, "a=1,b@c=2"},
		{"a state in two lines", lines("tracestate: a=1", "traceparent: "+good, "tracestate: b=2"), true, "a=1,b=2"},
		{"a state without a parent", lines("tracestate: a=1"), false, ""},
		{"an empty member", lines("traceparent: "+good, "tracestate: a=1, ,b=2"), true, "a=1,b=2"},
		{"a key twice", lines("traceparent: "+good, "tracestate: a=1,a=2"), true, ""},
		{"no value", lines("traceparent: "+good, "tracestate: a"), true, ""},
		{"an upper-case key", lines("traceparent: "+good, "tracestate: A=1"), true, ""},
		{"two equal signs", lines("traceparent: "+good, "tracestate: a=1=2"), true, ""},
		{"a long state", lines("traceparent: "+good, "tracestate: a="+strings.Repeat("1", 256)+",b="+strings.Repeat("1", 256)), true, ""},
		{"the longest state", lines("traceparent: "+good, "tracestate: a="+strings.Repeat("1", 253)+",b="+strings.Repeat("1", 254)), true, "a=" + strings.Repeat("1", 253) + ",b=" + strings.Repeat("1", 254)},
		{"33 members", lines("traceparent: "+good, "tracestate: "+members(33)), true, ""},
		{"32 members", lines("traceparent: "+good, "tracestate: "+members(32)), true, members(32)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := read(c.lines)
			if got.On() != c.on || got.State != c.state {
				t.Fatalf("got on %v, state %q; want %v, %q", got.On(), got.State, c.on, c.state)
			}
			if c.on && (got.Trace.String() != trace1 || fmt.Sprintf("%x", got.Parent) != parent1 || !got.Sampled) {
				t.Errorf("got %s-%x, sampled %v", got.Trace, got.Parent, got.Sampled)
			}
		})
	}
}

func members(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("k%d=v", i)
	}
	return strings.Join(all, ",")
}

func TestSampler(t *testing.T) {
	client := func(flags string) []byte { return lines("traceparent: 00-" + trace1 + "-" + parent1 + "-" + flags) }
	for _, c := range []struct {
		mode  Mode
		ratio float64
		lines []byte
		want  bool
	}{
		{Parent, 0, client("01"), true},
		{Parent, 1, client("00"), false},
		{Parent, 1, nil, true},
		{Parent, 0, nil, false},
		{Ratio, 0, client("01"), false},
		{Ratio, 1, client("00"), true},
		{Always, 0, client("00"), true},
		{Never, 1, client("01"), false},
	} {
		got := NewSampler(c.mode, c.ratio).Begin(c.lines)
		if got.Sampled != c.want {
			t.Errorf("%v of %v, %q: sampled %v, want %v", c.mode, c.ratio, c.lines, got.Sampled, c.want)
		}
		if !got.On() || got.Span == (SpanID{}) || (got.Parent == SpanID{}) != (c.lines == nil) {
			t.Errorf("%v of %v, %q: got %+v", c.mode, c.ratio, c.lines, got)
		}
	}
}

// TestSamplerShare holds a ratio against what it means; the tests of package tracing hold it against
// the SDK's own sampler.
func TestSamplerShare(t *testing.T) {
	s := NewSampler(Parent, 0.25)
	n := 0
	for range 20_000 {
		c := s.Begin(nil)
		if c.Sampled {
			n++
		}
	}
	if n < 4_600 || n > 5_400 { // 6.5 standard deviations
		t.Errorf("sampled %d of 20000, want a quarter", n)
	}
}

func TestAppendTo(t *testing.T) {
	c := NewSampler(Parent, 1).Begin(lines("traceparent: 00-"+trace1+"-"+parent1+"-03", "tracestate: a=1"))
	leg := SpanID{0: 1, 7: 2}
	want := "traceparent: 00-" + trace1 + "-0100000000000002-03\r\ntracestate: a=1\r\n"
	if got := string(c.AppendTo(nil, leg)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (&Context{}).AppendTo(nil, leg); got != nil {
		t.Errorf("a request without a trace sends %q", got)
	}
}

// TestAllocates holds what each request pays while tracing is on.
func TestAllocates(t *testing.T) {
	s, head := NewSampler(Parent, 0.01), make([]byte, 0, 4096)
	h := lines("Host: a", "traceparent: 00-"+trace1+"-"+parent1+"-01", "Content-Type: application/json")
	if n := testing.AllocsPerRun(100, func() {
		c := s.Begin(h)
		head = c.AppendTo(head[:0], NewSpan())
	}); n > 0 {
		t.Errorf("allocates %v times", n)
	}
}

// FuzzRead holds the reader against the SDK's idea of a tracestate, and against what it writes
// itself: a context that was read comes back from the lines that are sent on.
func FuzzRead(f *testing.F) {
	f.Add("00-"+trace1+"-"+parent1+"-01", "a=1,b@c=2")
	f.Add("cc-"+trace1+"-"+parent1+"-03-x", "a=1, ,b=2")
	f.Add("00-"+trace1+"-"+parent1, "a")
	f.Add("ff-"+trace1+"-"+parent1+"-01", members(33))
	f.Fuzz(func(t *testing.T, parent, state string) {
		if strings.ContainsAny(parent+state, "\r\n") {
			t.Skip()
		}
		c := read(lines("traceparent: "+parent, "tracestate: "+state))
		if !c.On() {
			if c != (Context{}) {
				t.Fatalf("no context, but %+v", c)
			}
			return
		}
		if len(c.State) > maxState {
			t.Fatalf("a state of %d bytes", len(c.State))
		}
		if c.State != "" {
			if _, err := trace.ParseTraceState(c.State); err != nil {
				t.Fatalf("state %q: %v", c.State, err)
			}
		}
		sent := c.AppendTo(nil, c.Parent)
		again := read(append(bytes.Clone(sent), "\r\n"...))
		if again != c {
			t.Fatalf("%+v was sent as %q, read as %+v", c, sent, again)
		}
	})
}

func BenchmarkBegin(b *testing.B) {
	s, head := NewSampler(Parent, 0.01), make([]byte, 0, 4096)
	h := lines("Host: 127.0.0.1:8080", "User-Agent: OpenAI/Python 2.8.1", "Accept: application/json", "Content-Type: application/json",
		"traceparent: 00-"+trace1+"-"+parent1+"-01", "Authorization: Bearer sk-1234567890", "Content-Length: 200")
	b.ReportAllocs()
	for b.Loop() {
		c := s.Begin(h)
		head = c.AppendTo(head[:0], NewSpan())
	}
}
