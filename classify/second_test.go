// Tests of the second stage: which texts reach it, and what it changes.

package classify

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kvasir/classify/encoder"
)

// doubting weights are half sure of MAYBE, a little of HARDLY, and count what the second stage is asked. It finds an
// attack in SURELY and fails at FAULT.
type doubting struct {
	saying
	asked *[]encoder.Reading
}

func (d doubting) newReader(stops) reader { return d }

func (doubting) batches() bool { return false }

func (doubting) attack(text []byte, read bool) (s attackScores, _ error) {
	switch {
	case bytes.Contains(text, []byte("MAYBE")):
		s.attack = 0.5
	case bytes.Contains(text, []byte("HARDLY")):
		s.attack = greySaid / 2
	}
	if read {
		s.indirect = s.attack
	}
	return s, nil
}

func (d doubting) suspicion(piece []byte) (attack, indirect float32) {
	s, _ := d.attack(piece, true)
	return s.attack, s.indirect
}

func (d doubting) second(text []byte, as encoder.Reading) (float32, error) {
	*d.asked = append(*d.asked, as)
	switch {
	case bytes.Contains(text, []byte("FAULT")):
		return 0, errors.New("fault")
	case bytes.Contains(text, []byte("SURELY")):
		return 20, nil
	}
	return -20, nil
}

func TestSecondStage(t *testing.T) {
	long := string(bytes.Repeat([]byte("nothing to see here, all is well and quiet. "), maxWhole/40))
	for _, row := range []struct {
		text    string
		role    Role
		off     bool
		asked   int
		as      encoder.Reading
		flagged bool
	}{
		{text: "HARDLY worth a look", role: User},
		{text: "MAYBE SURELY an attack", role: User, asked: 1, flagged: true},
		{text: "MAYBE not an attack", role: User, asked: 1},
		{text: "MAYBE SURELY an attack", role: Tool, asked: 1, as: encoder.AsDocument, flagged: true},
		{text: "MAYBE SURELY an attack", role: Document, asked: 1, as: encoder.AsDocument, flagged: true},
		{text: "MAYBE SURELY an attack", role: System, asked: 1, as: encoder.AsSystem, flagged: true},
		{text: "MAYBE not an attack", role: ToolDefinition, asked: 1, as: encoder.AsSystem},
		{text: "MAYBE SURELY an attack", role: User, off: true},
		{text: long + "MAYBE SURELY an attack" + long, role: User, asked: 1, flagged: true},
		{text: long + "HARDLY worth a look" + long, role: Document},
	} {
		var asked []encoder.Reading
		o := Options{SecondStage: !row.off, Jailbreak: GuardOptions{Action: Block, Threshold: 0.7}}
		c, err := newWith(o, doubting{asked: &asked})
		if err != nil {
			t.Fatal(err)
		}
		r := &Request{Texts: []Text{{Bytes: []byte(row.text), Role: row.role, Message: 0}}, Messages: 1}
		for range 2 { // the second time the result is known
			v := c.Judge(r)
			if v.Jailbreak.Err != nil || v.Jailbreak.Flagged != row.flagged {
				t.Errorf("%.30q as %d: flagged %v with %.3f, %v", row.text, row.role, v.Jailbreak.Flagged, v.Jailbreak.Score, v.Jailbreak.Err)
			}
			v.Release()
		}
		if len(asked) != row.asked || row.asked > 0 && asked[0] != row.as {
			t.Errorf("%.30q as %d: the second stage was asked %v", row.text, row.role, asked)
		}
	}
}

// TestSummand: a long text needs a higher score, by code points and not by bytes, and no length makes it jump.
func TestSummand(t *testing.T) {
	said := func(n int, letter string) float64 { return summand([]byte(strings.Repeat(letter, n)), encoder.AsUser) }
	for _, row := range []struct {
		n    int
		want float64
	}{{0, shortSummand}, {1, shortSummand}, {shortLength, shortSummand}, {longLength, longSummand}, {1 << 20, longSummand}} {
		for _, letter := range []string{"a", "字", "\xff"} {
			if got := said(row.n, letter); math.Abs(got-row.want) > 1e-9 {
				t.Errorf("%d times %q: %v, want %v", row.n, letter, got, row.want)
			}
		}
	}
	for n := 1; n < 2*longLength; n++ {
		if fell := said(n-1, "é") - said(n, "é"); fell < -1e-9 || fell > 0.01 {
			t.Errorf("at %d it falls by %v", n, fell)
		}
	}
	if a, b := summand([]byte("short"), encoder.AsDocument), summand(make([]byte, 1000), encoder.AsDocument); a != readSummand || b != readSummand {
		t.Errorf("of documents %v and %v", a, b)
	}
}

// TestSecondStageFails: what the second stage could not judge is not judged.
func TestSecondStageFails(t *testing.T) {
	var asked []encoder.Reading
	c, err := newWith(Options{SecondStage: true, Jailbreak: GuardOptions{Action: Block}}, doubting{asked: &asked})
	if err != nil {
		t.Fatal(err)
	}
	v := c.Judge(&Request{Texts: []Text{{Bytes: []byte("MAYBE FAULT"), Role: User}}, Messages: 1})
	defer v.Release()
	if v.Jailbreak.Err == nil || v.Blocked() != ByFailedJailbreak {
		t.Errorf("%v, blocked %v", v.Jailbreak.Err, v.Blocked())
	}
}

// TestSecondStageYieldsToOwn: a model of the user's own is not asked again.
func TestSecondStageYieldsToOwn(t *testing.T) {
	c := newOwn(t, Options{SecondStage: true, Jailbreak: GuardOptions{Action: Annotate, Model: OwnModel{Dir: encoders + "/bert"}}})
	if c.second {
		t.Error("the second stage judges beside a model of the user's own")
	}
}

// slowToOpen weights take longer to open the second stage than judging may.
type slowToOpen struct{ doubting }

func (d slowToOpen) newReader(stops) reader { return d }

func (slowToOpen) openSecond() error {
	time.Sleep(2 * time.Second)
	return nil
}

// TestSecondStageOpens: the first text that needs the second stage waits for it, and is judged.
func TestSecondStageOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []encoder.Reading
		o := Options{SecondStage: true, Timeout: time.Second, Jailbreak: GuardOptions{Action: Block}}
		c, err := newWith(o, slowToOpen{doubting{asked: &asked}})
		if err != nil {
			t.Fatal(err)
		}
		v := c.Judge(&Request{Messages: 2, Texts: []Text{
			{Bytes: []byte("MAYBE SURELY an attack"), Role: User}, {Bytes: []byte("HARDLY worth a look"), Role: User, Message: 1},
		}})
		defer v.Release()
		if v.Jailbreak.Err != nil || !v.Jailbreak.Flagged {
			t.Errorf("%v, flagged %v", v.Jailbreak.Err, v.Jailbreak.Flagged)
		}
	})
}
