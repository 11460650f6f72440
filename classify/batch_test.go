// Tests of texts that are judged along: what a request is told is the same, and its failures stay its own.

package classify

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kvasir/classify/model"
)

// batching are weights that count what is judged alone and together, and may fail at the latter.
type batching struct {
	saying
	alone, batched *atomic.Int32
	panics         bool
}

func (c batching) newReader(stops) reader { return c }

func (c batching) attack(text []byte, read bool) (attackScores, error) {
	c.alone.Add(1)
	return c.saying.attack(text, read)
}

func (c batching) together(list []model.Short) {
	c.batched.Add(1)
	if c.panics {
		panic("fault")
	}
	c.saying.together(list)
}

// queueUp has one request hold the only thread until all others wait, and returns what these came to.
func queueUp(t *testing.T, o Options, w weights, texts ...string) (c *Classifier, guards []Guard) {
	t.Helper()
	release := make(chan struct{})
	var once sync.Once
	o.Threads = 1
	o.Fault = func(Kind) { once.Do(func() { <-release }) }
	c, err := newWith(o, w)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() { guardOf(c, said("the first one")) })
	synctest.Wait()
	guards = make([]Guard, len(texts))
	for i, text := range texts {
		all.Go(func() { guards[i] = guardOf(c, said(text)) })
		synctest.Wait()
	}
	if len(c.queue.waiting) == 0 {
		t.Error("nobody waits")
	}
	close(release)
	all.Wait()
	if n := len(c.queue.waiting); n > 0 {
		t.Errorf("%d are left in the queue", n)
	}
	return c, guards
}

var (
	waitingTexts  = []string{"hello there", "an ATTACK", "ask me@example.org", "hello again"}
	waitingGuards = []Guard{Passed, ByJailbreak, ByPII, Passed}
)

func TestWhoWaitsIsJudgedAlong(t *testing.T) {
	for _, panics := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := batching{alone: new(atomic.Int32), batched: new(atomic.Int32), panics: panics}
			_, guards := queueUp(t, blocking(), w, waitingTexts...)
			if !slices.Equal(guards, waitingGuards) {
				t.Errorf("%v, want %v", guards, waitingGuards)
			}
			alone, batches := w.alone.Load(), w.batched.Load()
			if panics && alone != 5 || !panics && (alone != 1 || batches != 1) {
				t.Errorf("panics %v: %d are judged alone, and %d batches", panics, alone, batches)
			}
		})
	}
}

// Who gets the last thread after a batch lets those who are about to come do so, but nobody waits
// while a thread is free, or for others that were not there before.
func TestWhoComesAtOnceIsJudgedAlong(t *testing.T) {
	for _, tt := range []struct {
		threads, last int
		batches       int32
		paused        time.Duration
		then          int // texts of the batch that was taken last
	}{{2, enough, 1, patience, 4}, {2, enough - 1, 0, 0, 1}, {3, enough, 0, 0, 1}} {
		synctest.Test(t, func(t *testing.T) {
			w := batching{alone: new(atomic.Int32), batched: new(atomic.Int32)}
			release := make(chan struct{})
			var held atomic.Bool
			o := blocking()
			o.Threads = tt.threads
			o.Fault = func(Kind) {
				if held.CompareAndSwap(false, true) {
					<-release
				}
			}
			c, err := newWith(o, w)
			if err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			all.Go(func() { guardOf(c, said("the first one")) })
			synctest.Wait()
			c.queue.last = tt.last
			start, paused, last := time.Now(), time.Duration(0), 0
			all.Go(func() {
				guardOf(c, said("the second one"))
				paused = time.Since(start)
				c.queue.mu.Lock()
				defer c.queue.mu.Unlock()
				last = c.queue.last
			})
			for i := range 3 {
				time.Sleep(pause / 2)
				all.Go(func() { guardOf(c, said(fmt.Sprintf("another one, %d", i))) })
			}
			synctest.Wait()
			time.Sleep(patience)
			close(release)
			all.Wait()
			if got := w.batched.Load(); got != tt.batches || paused != tt.paused || last != tt.then {
				t.Errorf("%+v: %d batches, %v paused, the last of %d", tt, got, paused, last)
			}
		})
	}
}

// Who waits too long is out of the queue when it has its answer: its text may be another's by then.
func TestWhoLeavesIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := blocking()
		o.Timeout, o.Threads = time.Second, 1
		release := make(chan struct{})
		var once sync.Once
		o.Fault = func(Kind) { once.Do(func() { <-release }) }
		c := newSaying(t, o)
		go guardOf(c, said("the first one"))
		synctest.Wait()
		if got := guardOf(c, said("hello there")); got != ByFailedJailbreak || len(c.queue.waiting) > 0 {
			t.Errorf("%v, and %d wait", got, len(c.queue.waiting))
		}
		close(release)
	})
}

// A request near its deadline has no time for others.
func TestWhoIsLateTakesNobodyAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := batching{alone: new(atomic.Int32), batched: new(atomic.Int32)}
		o := blocking()
		for _, row := range []struct {
			timeout time.Duration
			want    int32
		}{{leadTime, 1}, {leadTime - 1, 0}} {
			o.Timeout = row.timeout
			w.batched.Store(0)
			_, guards := queueUp(t, o, w, waitingTexts...)
			if !slices.Equal(guards, waitingGuards) || w.batched.Load() != row.want {
				t.Errorf("timeout %v: %v, %d batches", row.timeout, guards, w.batched.Load())
			}
		}
	})
}

func TestWhoIsACompanion(t *testing.T) {
	off := blocking()
	off.Jailbreak.Action = Off
	asks := blocking()
	asks.Signals = []SignalOptions{{Name: "e", Kind: KindEmbedding, Phrases: []string{"apple"}}}
	asks.Decisions = []Decision{
		{Name: "a", When: Condition{Not: &Condition{Is: []Is{{KindEmbedding, []string{"e"}}}}}, Explicit: true},
		{Name: "b", When: Condition{Any: []Condition{{Is: []Is{{KindCategory, []string{"math"}}}}}}},
	}
	auto := said("hello there")
	auto.Auto = true
	also := said("hello there")
	also.Also = []Kind{KindCategory, KindSentence}
	for _, row := range []struct {
		name                   string
		o                      Options
		r                      *Request
		ok, category, sentence bool
	}{
		{"a question", blocking(), said("hello there"), true, false, false},
		{"the last of two", blocking(), said(strings.Repeat("long ", 1000), "hello there"), true, false, false},
		{"no request", blocking(), nil, false, false, false},
		{"nothing said", blocking(), &Request{}, false, false, false},
		{"a system prompt", blocking(), parts(System, "hello there"), false, false, false},
		{"parts", blocking(), parts(User, "hello", "there"), false, false, false},
		{"a long text", blocking(), said(strings.Repeat("long ", 1000)), false, false, false},
		{"a text that came before", blocking(), said("came before"), false, false, false},
		{"without the guard", off, said("hello there"), false, false, false},
		{"category for the headers", blocking(), auto, true, true, false},
		{"also", blocking(), also, true, true, true},
		{"a decision asks", asks, said("hello there"), true, false, true},
		{"another decision asks", asks, auto, true, true, true},
	} {
		c := newSaying(t, row.o)
		c.Judge(said("came before")).Release()
		w, ok := c.shortText(row.r)
		if ok != row.ok || w.category != row.category || w.sentence != row.sentence {
			t.Errorf("%s: %v %+v", row.name, ok, w)
		}
		if ok && (w.of != row.r || string(w.text) != "hello there") {
			t.Errorf("%s: %q", row.name, w.text)
		}
	}
}

// A batch is as many as share a pass, in order, and the queue does not grow without end.
func TestCompanyIsBounded(t *testing.T) {
	for _, row := range []struct{ bytes, want int }{{1, maxBatch}, {100, maxBatch}, {101, 23}, {maxShort, 3}} {
		var q queue
		for i := range 2 * maxWaiting {
			q.join(shortText{of: new(Request), text: bytes.Repeat([]byte{byte(i)}, row.bytes)})
		}
		var m batch
		m.take(&q, shortText{text: bytes.Repeat([]byte{255}, row.bytes)})
		if m.n != row.want || len(q.waiting) != maxWaiting-row.want+1 {
			t.Errorf("%d bytes each: %d together, %d wait", row.bytes, m.n, len(q.waiting))
		}
		for i, w := range m.of[:m.n] {
			if len(w.text) != row.bytes || w.text[0] != byte(i-1) {
				t.Errorf("%d bytes each: text %d is %d", row.bytes, i, w.text[0])
			}
		}
	}
}

// TestCrowdIsJudgedAsAlone: with the embedded weights, every score to the bit.
func TestCrowdIsJudgedAsAlone(t *testing.T) {
	w, err := openWeights(new(Options), nil)
	if err != nil {
		t.Fatal(err)
	}
	texts := writtenTexts(t, 20, "question*.txt", "attack*.txt")[:96]
	for i := range texts {
		if i%4 == 0 {
			texts[i] = fmt.Appendf(nil, "zero\u200bwidth %s", texts[i]) // to be folded
		}
	}
	o := blocking()
	o.Threads = 1
	judge := func(c *Classifier, text []byte) Verdict {
		r := said(string(text))
		r.Auto, r.Also = true, []Kind{KindSentence}
		v := c.Judge(r)
		defer v.Release()
		return Verdict{Jailbreak: v.Jailbreak, Category: v.Category, embedding: v.embedding}
	}
	one, err := newWith(o, w)
	if err != nil {
		t.Fatal(err)
	}
	o.Threads = 2
	many, err := newWith(o, w)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	got := make([]Verdict, len(texts))
	for i, text := range texts {
		all.Go(func() { got[i] = judge(many, text) })
	}
	all.Wait()
	for i, text := range texts {
		want := judge(one, text)
		if got[i].Jailbreak != want.Jailbreak || got[i].Category != want.Category || got[i].embedding != want.embedding {
			t.Errorf("%q: %+v, alone %+v", text, got[i].Jailbreak, want.Jailbreak)
		}
	}
}

func TestJudgingAlongAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	w, err := openWeights(new(Options), nil)
	if err != nil {
		t.Fatal(err)
	}
	c, r := everything(t, w, 100)
	others := make([]*Request, 8)
	for i := range others {
		others[i] = said(fmt.Sprintf("xxx What is number %d?", i))
	}
	i := 0
	if allocs := testing.AllocsPerRun(20, func() {
		for _, other := range others {
			fresh(other, i)
			if w, ok := c.shortText(other); ok {
				c.queue.join(w)
			}
		}
		fresh(r, i)
		i++
		c.Judge(r).Release()
		if len(c.queue.waiting) > 0 {
			t.Error("nobody is taken along")
		}
	}); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}
