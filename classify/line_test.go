// The line: who gets a thread when, by the clock of a test.

package classify

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// dawdling weights take a while for each piece of a long text, and for each short one.
type dawdling struct{ saying }

const (
	perPiece = 4 * time.Millisecond
	perShort = time.Millisecond
)

func (dawdling) newReader(stops) reader { return dawdling{} }

func (s dawdling) suspicion(piece []byte) (attack, indirect float32) {
	time.Sleep(perPiece)
	return s.saying.suspicion(piece)
}

func (s dawdling) attack(text []byte, read bool) (attackScores, error) {
	time.Sleep(perShort)
	return s.saying.attack(text, read)
}

// long is a text of so many pieces, another one for each i.
func long(i, pieces int) string {
	return fmt.Sprint("number ", i, strings.Repeat(" hello there", pieces*attackPiece*7/8/12))
}

func from(client uint64, text string) *Request {
	r := said(text)
	r.Client = client
	return r
}

func newSlow(t *testing.T, threads int) *Classifier {
	o := blocking()
	o.PII.Action = Off
	o.Timeout, o.Threads = time.Second, threads
	c, err := newWith(o, dawdling{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// One client's long texts make a short one of another client wait for a turn, not for all of them.
func TestLongTextsGiveWay(t *testing.T) {
	for _, threads := range []int{1, 2, 16} {
		for client, whose := range []string{"the same client's", "another client's"} {
			synctest.Test(t, func(t *testing.T) {
				c := newSlow(t, threads)
				var all sync.WaitGroup
				for i := range 3 * threads {
					all.Go(func() {
						if got := guardOf(c, from(0, long(i, 200))); got != Passed {
							t.Errorf("a long text is %v", got)
						}
					})
				}
				time.Sleep(25 * time.Millisecond)
				for i := range 5 {
					start := time.Now()
					guardOf(c, from(uint64(client), fmt.Sprint("short one ", i)))
					if waited := time.Since(start) - perShort; waited > 3*turn {
						t.Errorf("%d threads, %s short text waited %v", threads, whose, waited)
					}
					time.Sleep(20 * time.Millisecond)
				}
				all.Wait()
				if !c.line.idle(threads) {
					t.Errorf("left behind: %+v", c.line)
				}
			})
		}
	}
}

// idle says that nobody judges or waits.
func (l *line) idle(threads int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.free == threads && !l.anybody() && len(l.flows) == 0 && l.begun == 0
}

// A client's hundred requests at once make another client's wait for a few of them.
func TestClientsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSlow(t, 1)
		c.weights = alone{c.weights}
		var all sync.WaitGroup
		var mu sync.Mutex
		var order []uint64
		judge := func(client uint64, i int) {
			guardOf(c, from(client, fmt.Sprint("short one ", client, " ", i)))
			mu.Lock()
			defer mu.Unlock()
			order = append(order, client)
		}
		for i := range 100 {
			all.Go(func() { judge(1, i) })
		}
		synctest.Wait()
		all.Go(func() { judge(2, 0) })
		all.Wait()
		if at := slices.Index(order, 2); at > 25 {
			t.Errorf("client 2 came after %d of client 1", at)
		}
	})
}

// alone are weights that judge nobody along.
type alone struct{ weights }

func (alone) batches() bool { return false }

// Waiting does not count to the timeout, and long texts of several clients share the time evenly.
func TestWaitingIsNotJudging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSlow(t, 1)
		var all sync.WaitGroup
		start := time.Now()
		var mu sync.Mutex
		var ready []time.Duration
		for i := range 4 {
			all.Go(func() {
				v := c.Judge(from(uint64(i), long(i, 150))) // 600 ms each
				defer v.Release()
				if v.Blocked() != Passed {
					t.Errorf("%v %v", v.Blocked(), v.Jailbreak.Err)
				}
				if took := v.Took[len(v.Took)-1].Took; took > time.Second {
					t.Errorf("judging is said to have taken %v", took)
				}
				mu.Lock()
				defer mu.Unlock()
				ready = append(ready, time.Since(start))
			})
		}
		all.Wait()
		if slices.Max(ready)-slices.Min(ready) > 200*time.Millisecond {
			t.Errorf("they were ready after %v", ready)
		}
	})
}

// left is a client that goes at some time.
type left struct{ when time.Time }

func (l left) Gone() bool { return time.Now().After(l.when) }

// What nobody waits for any more is not judged to its end, and not begun.
func TestGoneClientsAreNotJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSlow(t, 1)
		start := time.Now()
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				r := from(uint64(i), long(i, 200))
				r.For = left{start.Add(50 * time.Millisecond)}
				v := c.Judge(r)
				defer v.Release()
				if v.Jailbreak.Err != ErrGone {
					t.Errorf("%v", v.Jailbreak.Err)
				}
			})
		}
		all.Wait()
		if took := time.Since(start); took > 200*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		if !c.line.idle(1) {
			t.Errorf("left behind: %+v", c.line)
		}
	})
}

// Who waits for too long, also in the middle, is told so, and the threads are all there after.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSlow(t, 1)
		var all sync.WaitGroup
		busy := 0
		var mu sync.Mutex
		for i := range 40 {
			all.Go(func() {
				v := c.Judge(from(uint64(i), long(i, 120))) // 20 s in all
				defer v.Release()
				mu.Lock()
				defer mu.Unlock()
				if err := v.Jailbreak.Err; errors.Is(err, ErrBusy) {
					busy++
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if busy < 15 || busy > 25 {
			t.Errorf("%d of 40 are told, though half of them can be judged in time", busy)
		}
		if !c.line.idle(1) {
			t.Errorf("left behind: %+v", c.line)
		}
		if got := guardOf(c, from(1, "hello")); got != Passed {
			t.Error(got)
		}
	})
}
