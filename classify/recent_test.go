// Tests of what equal texts share.
package classify

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// counting are weights that count how often they are asked.
type counting struct {
	saying
	asked *atomic.Int32
}

func (c counting) newReader() reader { return c }

func (c counting) attack(text []byte) attackScores {
	c.asked.Add(1)
	return c.saying.attack(text)
}

func TestEqualTextsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		c, err := newWith(blocking(), counting{asked: &asked})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range []struct {
			text string
			role Role
			wait time.Duration
			want int32
		}{
			{"text one", User, 0, 1}, {"text one", User, 0, 1}, {"text two", User, 0, 2}, {"text one", System, 0, 2},
			{"text one", User, 59 * time.Second, 2}, {"text one", User, 2 * time.Second, 3},
		} {
			time.Sleep(row.wait)
			c.Judge(&Request{Texts: []Text{{[]byte(row.text), row.role, 0}}}).Release()
			if got := asked.Load(); got != row.want {
				t.Errorf("%+v: asked %d times", row, got)
			}
		}
	})
}

// The results of other texts give way; none is taken for another's.
func TestRecentIsBounded(t *testing.T) {
	s := newShared()
	for i := range 50000 {
		text := fmt.Appendf(nil, "text %d", i)
		s.attacks.put(s.key(text), attackScores{attack: float32(i)})
		if got, ok := s.attacks.get(s.key(text)); !ok || got.attack != float32(i) {
			t.Fatalf("%d: %v %v", i, got, ok)
		}
	}
	kept := 0
	for i := range 50000 {
		if got, ok := s.attacks.get(s.key(fmt.Appendf(nil, "text %d", i))); ok {
			kept++
			if got.attack != float32(i) {
				t.Fatalf("%d has the result of %v", i, got.attack)
			}
		}
	}
	if kept == 0 || kept > 4096 {
		t.Errorf("%d are kept", kept)
	}
}
