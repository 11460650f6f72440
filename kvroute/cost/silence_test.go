// A mirror that nobody asked for a while.

package cost

import (
	"testing"
	"time"
)

// TestSilence: a long silence of an engine whose passes are short is not followed
// pass by pass: with a quiet answer under way that once took minutes, under a lock.
func TestSilence(t *testing.T) {
	m := NewMirror(Engine{Timing: Timing{Decode: [3]float64{0.001}}})
	now := start
	r := m.Send(now, Sent{Prompt: 16, Quiet: true})
	for _, silence := range []time.Duration{time.Millisecond, time.Hour / 20, time.Second} {
		before := m.pass.number
		now = now.Add(silence)
		if m.Load(now); m.pass.number-before > 2*catchUp {
			t.Fatalf("after %v: %d passes more", silence, m.pass.number-before)
		}
	}
	m.End(r, now)
}

// Quiet answers grow as much in a silence as where somebody asks all the time. (They had 1,024 tokens at most, so that
// an answer of 4,000 that nobody disturbed seemed to be of an engine with a quarter of the guessed time, the next of one
// with a quarter of that, down to the bound of a thirtieth.)
func TestQuietAnswersGrowInSilence(t *testing.T) {
	e := known()
	e.Timing = Timing{}
	for _, tokens := range []int{500, 2000, 8000} {
		m := NewMirror(e)
		asked := NewMirror(e)
		took := duration(typical.prefill(1000) + float64(tokens-1)*typical.decode(float64(1000+tokens/2)/float64(e.tokens())))
		asked.Send(start, Sent{Prompt: 1000, Quiet: true})
		for at := time.Duration(0); at < took; at += 100 * time.Millisecond {
			asked.Load(start.Add(at))
		}
		now := start
		for i := range 3 * enough {
			r := m.Send(now, Sent{Prompt: 1000, Quiet: true})
			now = now.Add(took)
			m.Answer(r, now, tokens)
			if i == 0 {
				near(t, "tokens of a quiet answer", float64(r.tokens), float64(asked.Load(now).Streamed), 0.03*float64(tokens))
			}
			m.End(r, now)
			now = now.Add(time.Second)
		}
		near(t, "the pace of an engine that is as guessed", m.answers.pace(), 1, 0.05)
	}
}
