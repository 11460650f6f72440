// What a clock that jumps back and a timing that was learned of short passes only must not do.

package cost

import (
	"math"
	"testing"
	"time"
)

// A clock that was set back by hours left a flow beyond all numbers, and every price after it was none.
func TestClockGoesBack(t *testing.T) {
	m := NewMirror(Engine{BlockSize: 16, Blocks: 64, Timing: Mocker})
	for i := range 8 {
		r := m.Send(at(float64(i)), Sent{Prompt: 512})
		m.Tokens(r, at(float64(i)+0.5), 1)
		m.End(r, at(float64(i)+0.6))
	}
	before := at(0).Add(-10 * time.Hour)
	m.End(m.Send(before, Sent{Prompt: 512}), before)
	c := []Candidate{{Load: m.Load(before)}, {Load: NewMirror(Engine{BlockSize: 16, Blocks: 64, Timing: Mocker}).Load(before)}}
	if l := c[0].Load; !(l.Flow < 1000) || l.EvictAge < 0 {
		t.Errorf("%v tokens a second, the next block to go is %v old", l.Flow, l.EvictAge)
	}
	predict := DefaultPredict()
	predict.Price(before, Prompt{Tokens: 512}, c)
	for i := range c {
		if !(math.Abs(c[i].Cost) < 1e4) {
			t.Errorf("candidate %d costs %v: %v", i, c[i].Cost, c[i].Parts)
		}
	}
}

// A square that was learned from short passes made 100,000 tokens take less than none, and go first.
func TestLongPromptsAreNotShort(t *testing.T) {
	bent := Timing{Prefill: [3]float64{16, 0.03, -1e-6}, Decode: [3]float64{5, 50, 0}}
	c := []Candidate{
		{Load: Load{Engine: Engine{}.withDefaults(), Timing: bent}, Hit: 64},
		{Load: Load{Engine: Engine{}.withDefaults()}},
	}
	short, long := Shortest(1064, c), Shortest(100_064, c)
	if short <= 0 || math.Abs(millis(long)/millis(short)-100) > 0.001 {
		t.Errorf("1,000 tokens take %v, 100,000 take %v", short, long)
	}
	if got := Shortest(1000, nil, c[1:]); got != duration(unknownToken*1000) {
		t.Errorf("of unknown timing: %v", got)
	}
	if got := Shortest(1000); got != 0 {
		t.Errorf("of nobody: %v", got)
	}
}
