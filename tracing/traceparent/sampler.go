// Sampling: of which requests a trace is kept.

package traceparent

import "encoding/binary"

// A Mode says whose word counts when it is decided whether a request is sampled.
type Mode uint8

// The modes, as tracing.sampler names them.
const (
	Parent Mode = iota // the client's, and the ratio where it says nothing
	Ratio              // the ratio's alone
	Always
	Never
)

var modes = [...]string{Parent: "parent", Ratio: "ratio", Always: "always", Never: "never"}

func (m Mode) String() string { return modes[m] }

// ParseMode finds a mode by its name; Parent for others, which the configuration refuses.
func ParseMode(name string) Mode {
	for m, n := range modes {
		if n == name {
			return Mode(m)
		}
	}
	return Parent
}

// A Sampler decides which requests are sampled. The zero value follows clients, and samples nothing
// else.
type Sampler struct {
	mode  Mode
	below uint64 // by the last eight bytes of the trace id, halved
}

// NewSampler makes the sampler of a mode and of a ratio from 0 to 1. Which traces a ratio samples
// goes by their ids alone, as in all SDKs of OpenTelemetry: services with the same ratio keep the
// same traces.
func NewSampler(mode Mode, ratio float64) *Sampler {
	return &Sampler{mode: mode, below: uint64(max(0, min(ratio, 1)) * (1 << 63))}
}

// Begin gives a request its part in the trace that the header lines of its client name, else in a
// new one.
func (s *Sampler) Begin(lines []byte) Context {
	c := read(lines)
	continued := c.On()
	if !continued {
		c = Context{Trace: newTrace(), Random: true}
	}
	c.Span = NewSpan()
	if !continued || s.mode != Parent {
		c.Sampled = s.samples(c.Trace)
	}
	return c
}

func (s *Sampler) samples(t TraceID) bool {
	switch s.mode {
	case Always:
		return true
	case Never:
		return false
	}
	return binary.BigEndian.Uint64(t[8:])>>1 < s.below
}
