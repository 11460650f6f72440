// Trace context: which trace a request belongs to, as the headers traceparent and tracestate say it.

// Package traceparent reads and writes the trace context of W3C, and decides which requests are
// sampled. It knows nothing of spans: what is made of them stands in package tracing.
//
//	c := sampler.Begin(headerLines)         // of a client's request
//	leg := traceparent.NewSpan()
//	head = c.AppendTo(head, leg)            // for the worker that is asked
//
// The form is https://www.w3.org/TR/trace-context/. Nothing here allocates, but for a tracestate.
package traceparent

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"

	"kvasir/header"
)

// A TraceID names one trace. The zero value names none.
type TraceID [16]byte

// String is the id in hex, as collectors show it.
func (t TraceID) String() string { return hex.EncodeToString(t[:]) }

// A SpanID names one span of a trace. The zero value names none.
type SpanID [8]byte

// A Context is the part of one request in a trace. The zero value has none.
type Context struct {
	Trace   TraceID
	Parent  SpanID // the client's span; zero: the trace begins here
	Span    SpanID // of the request
	Sampled bool
	Random  bool   // the client says that its trace id is random
	State   string // of the client's tracestate; "": none
}

// On says whether the request has a part in a trace.
func (c *Context) On() bool { return c.Trace != TraceID{} }

// A Link names a request of another trace. The zero value names none.
type Link struct {
	Trace TraceID
	Span  SpanID
}

// Link is how others name the request; zero: nobody finds it, because it is not sampled.
func (c *Context) Link() Link {
	if !c.Sampled {
		return Link{}
	}
	return Link{c.Trace, c.Span}
}

// The flags of a traceparent.
const (
	flagSampled = 1
	flagRandom  = 2
)

// maxState bounds a tracestate in bytes: what the specification wants passed on at least. A longer
// one is dropped whole.
const maxState = 512

// NewSpan makes the id of a span.
func NewSpan() (id SpanID) {
	for id == (SpanID{}) {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}

func newTrace() (id TraceID) {
	for id == (TraceID{}) {
		binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	}
	return id
}

// Is says whether a header of this name carries the trace context. A name with _ for - is the same
// one to CGI and WSGI.
func Is(name []byte) bool {
	return header.Alike(name, "traceparent") || header.Alike(name, "tracestate")
}

// read takes the context from a client's header lines: trace, parent, flags and state. Without a
// traceparent, with two, or with one that is malformed, there is none.
func read(lines []byte) (c Context) {
	seen := false
	var state [maxState]byte
	n := 0
	for len(lines) > 0 {
		var line []byte
		line, lines = header.CutLine(lines)
		name, value := header.SplitField(line)
		switch {
		case header.Is(name, "traceparent"):
			if seen || !c.parse(value) {
				return Context{}
			}
			seen = true
		case header.Is(name, "tracestate"):
			n = appendState(&state, n, value)
		}
	}
	if seen && n <= maxState {
		c.State = string(compactState(state[:n]))
	}
	return c
}

// appendState joins the lines of a tracestate by commas, and returns how long it then is: more than
// maxState where it does not fit.
func appendState(state *[maxState]byte, n int, value []byte) int {
	comma := min(n, 1)
	if n+comma+len(value) > maxState {
		return maxState + 1
	}
	if comma > 0 {
		state[n] = ','
	}
	return n + comma + copy(state[n+comma:], value)
}

// lengthOf00 is that of version 00: two digits, 32 of the trace, 16 of the parent, two of the flags.
const lengthOf00 = 2 + 1 + 32 + 1 + 16 + 1 + 2

// parse reads a traceparent. Of a version that is not known yet it reads what version 00 has, as
// the specification wants.
func (c *Context) parse(b []byte) bool {
	if len(b) < lengthOf00 || b[2] != '-' || b[35] != '-' || b[52] != '-' {
		return false
	}
	var version, flags [1]byte
	if !unhex(version[:], b[0:2]) || !unhex(c.Trace[:], b[3:35]) || !unhex(c.Parent[:], b[36:52]) || !unhex(flags[:], b[53:55]) {
		return false
	}
	switch {
	case version[0] == 0xff, version[0] == 0 && len(b) > lengthOf00, len(b) > lengthOf00 && b[lengthOf00] != '-':
		return false
	}
	c.Sampled, c.Random = flags[0]&flagSampled != 0, flags[0]&flagRandom != 0
	return c.Trace != TraceID{} && c.Parent != SpanID{}
}

// unhex reads lower-case hex digits, as many as fill dst.
func unhex(dst, digits []byte) bool {
	for _, d := range digits {
		if (d < '0' || d > '9') && (d < 'a' || d > 'f') {
			return false
		}
	}
	_, err := hex.Decode(dst, digits)
	return err == nil
}

// maxMembers bounds the members of a tracestate.
const maxMembers = 32

// compactState drops what is empty from a tracestate, in place: members key=value, divided by commas,
// no key twice. It returns nil where it is none.
func compactState(b []byte) []byte {
	var keys [maxMembers][]byte
	n, kept := 0, b[:0]
	for rest := b; rest != nil; {
		var member []byte
		member, rest = cutMember(rest)
		if len(member) == 0 {
			continue
		}
		key, value, found := bytes.Cut(member, []byte("="))
		if !found || n == maxMembers || !validKey(key) || !validValue(value) {
			return nil
		}
		if n > 0 {
			kept = append(kept, ',')
		}
		kept = append(kept, member...)
		key = kept[len(kept)-len(member):][:len(key)]
		for _, k := range keys[:n] {
			if bytes.Equal(k, key) {
				return nil
			}
		}
		keys[n] = key
		n++
	}
	return kept
}

// cutMember takes the first member off a list, without the blanks around it; rest is nil behind the
// last one.
func cutMember(list []byte) (member, rest []byte) {
	if i := bytes.IndexByte(list, ','); i >= 0 {
		return bytes.Trim(list[:i], " \t"), list[i+1:]
	}
	return bytes.Trim(list, " \t"), nil
}

// validKey knows keys of version 1, which all SDKs take: a name that begins with a letter, or a
// tenant, which may begin with a digit, @ and a name of 14 bytes at most.
func validKey(key []byte) bool {
	tenant, system, found := bytes.Cut(key, []byte("@"))
	if !found {
		return len(key) <= 256 && validName(key, false)
	}
	return len(tenant) <= 241 && len(system) <= 14 && validName(tenant, true) && validName(system, false)
}

func validName(name []byte, digitFirst bool) bool {
	for i, c := range name {
		letter := c >= 'a' && c <= 'z'
		other := c >= '0' && c <= '9' && (i > 0 || digitFirst) || i > 0 && (c == '_' || c == '-' || c == '*' || c == '/')
		if !letter && !other {
			return false
		}
	}
	return len(name) > 0
}

func validValue(value []byte) bool {
	if len(value) == 0 || len(value) > 256 {
		return false
	}
	for _, c := range value {
		if c < ' ' || c > '~' || c == ',' || c == '=' {
			return false
		}
	}
	return true
}

// AppendTo appends the header lines by which a worker goes on with the trace, under the span of
// the leg that asks it.
func (c *Context) AppendTo(dst []byte, leg SpanID) []byte {
	if !c.On() {
		return dst
	}
	dst = append(dst, "traceparent: 00-"...)
	dst = append(hex.AppendEncode(dst, c.Trace[:]), '-')
	dst = append(hex.AppendEncode(dst, leg[:]), "-0"...)
	dst = append(append(dst, '0'+c.flags()), "\r\n"...)
	if c.State != "" {
		dst = append(append(append(dst, "tracestate: "...), c.State...), "\r\n"...)
	}
	return dst
}

func (c *Context) flags() (flags byte) {
	if c.Sampled {
		flags |= flagSampled
	}
	if c.Random {
		flags |= flagRandom
	}
	return flags
}
