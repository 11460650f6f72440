// Line: who judges next where all threads are taken.

package classify

import (
	"slices"
	"sync"
	"time"
)

// turn is how long a request judges before it gives way to others who wait.
// The steps between two looks at the clock take 40 ms at most, of a text of 8 MiB.
const turn = 10 * time.Millisecond

// shortBytes is how long the texts of a short request are at most: it is judged in one turn or two.
const shortBytes = 16 << 10

// maxWait bounds how long a request waits that a guard must judge, all its turns together.
const maxWait = 10 * time.Second

// A line hands out the threads, fairly: those who wait take turns by their client, and a client's short
// requests take turns with its long ones, each for so much time (deficit round robin).
//
//  1. Nobody waits while a thread is free.
//  2. Who gives way goes on before the others of its flow, and of all flows together few long requests are
//     begun: each holds memory, and if all were, each would be finished last. They are more than
//     the threads, so one of them waits where no other may begin.
//  3. A flow in the ring has somebody who waits, or is dropped when its turn comes.
type line struct {
	mu    sync.Mutex // guards the rest
	free  int        // threads
	begun int        // long requests that came through the line, and judge or gave way
	most  int        // of begun
	flows map[flowKey]*flow
	ring  []*flow // the first is next
}

type flowKey struct {
	client uint64
	long   bool
}

// A flow is the requests of one kind of one client, from when one of them has to wait until none waits or judges.
type flow struct {
	key     flowKey
	waiting []*waiter
	judging int           // that came through the line
	credit  time.Duration // of thread time
	inRing  bool
}

// A waiter waits for a thread.
type waiter struct {
	flow  *flow
	begun bool          // it gave way
	begin chan struct{} // closed when it has a thread
	has   bool          // the same; guarded by line.mu
}

func newLine(threads int) *line {
	return &line{free: threads, most: max(2*threads, 4), flows: map[flowKey]*flow{}}
}

// take takes a thread if one is free.
func (l *line) take() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free == 0 {
		return false
	}
	l.free--
	return true
}

// full says that all threads are taken.
func (l *line) full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.free == 0
}

// wait waits for a thread, at most so long. The flow is to be given back with it; nil where nobody has to wait.
func (l *line) wait(key flowKey, limit time.Duration) (f *flow, ok bool) {
	l.mu.Lock()
	if l.free > 0 {
		l.free--
		l.mu.Unlock()
		return nil, true
	}
	f = l.flow(key)
	w := &waiter{flow: f, begin: make(chan struct{})}
	f.waiting = append(f.waiting, w)
	l.mu.Unlock()
	return f, l.await(w, limit)
}

// giveWay lets others who wait have the thread for a turn, if there are any. used is how long it was had.
// Without ok it is lost: nobody gave it back within limit.
func (l *line) giveWay(f *flow, key flowKey, used, limit time.Duration) (_ *flow, ok bool) {
	l.mu.Lock()
	if !l.anybody() {
		l.mu.Unlock()
		return f, true
	}
	if f == nil {
		f = l.flow(key)
		l.start(f, false)
	}
	w := &waiter{flow: f, begun: true, begin: make(chan struct{})}
	f.waiting = slices.Insert(f.waiting, 0, w)
	l.enterRing(f)
	f.judging--
	f.credit += turn - used
	l.pass()
	l.mu.Unlock()
	return f, l.await(w, limit)
}

// leave gives the thread back.
func (l *line) leave(f *flow, used time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f != nil {
		f.judging--
		f.credit += turn - used
		l.finish(f)
	}
	l.pass()
}

// start notes that one of the flow has a thread. What it uses is settled after.
func (l *line) start(f *flow, begun bool) {
	f.judging++
	f.credit -= turn
	if f.key.long && !begun {
		l.begun++
	}
}

// finish notes that one of the flow that had begun is done.
func (l *line) finish(f *flow) {
	if f.key.long {
		l.begun--
	}
	l.drop(f)
}

// pass gives a thread to who is next.
func (l *line) pass() {
	if !l.anybody() {
		l.free++
		return
	}
	for {
		f := l.ring[0]
		may := len(f.waiting) > 0 && (!f.key.long || f.waiting[0].begun || l.begun < l.most)
		if may && f.credit > 0 {
			break
		}
		l.ring = l.ring[1:]
		if len(f.waiting) == 0 {
			f.inRing = false
			l.drop(f)
			continue
		}
		if may {
			f.credit += turn
		}
		l.ring = append(l.ring, f)
	}
	f := l.ring[0]
	w := f.waiting[0]
	f.waiting[0] = nil
	f.waiting = f.waiting[1:]
	l.start(f, w.begun)
	w.has = true
	close(w.begin)
}

// anybody says whether somebody waits, and drops those from the ring's begin of whom nobody does any more.
func (l *line) anybody() bool {
	for len(l.ring) > 0 && len(l.ring[0].waiting) == 0 {
		l.ring[0].inRing = false
		l.drop(l.ring[0])
		l.ring = l.ring[1:]
	}
	return len(l.ring) > 0
}

// flow is that of a key, in the ring.
func (l *line) flow(key flowKey) *flow {
	f := l.flows[key]
	if f == nil {
		f = &flow{key: key}
		l.flows[key] = f
	}
	l.enterRing(f)
	return f
}

func (l *line) enterRing(f *flow) {
	if !f.inRing {
		f.inRing = true
		l.ring = append(l.ring, f)
	}
}

// drop forgets a flow of which nobody waits or judges.
func (l *line) drop(f *flow) {
	if f.judging == 0 && len(f.waiting) == 0 && l.flows[f.key] == f {
		delete(l.flows, f.key)
	}
}

// await waits for the waiter's thread.
func (l *line) await(w *waiter, limit time.Duration) bool {
	if limit == never {
		<-w.begin
		return true
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-w.begin:
		return true
	case <-timer.C:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !w.has {
		f := w.flow
		f.waiting = slices.DeleteFunc(f.waiting, func(other *waiter) bool { return other == w })
		if w.begun {
			l.finish(f)
		} else {
			l.drop(f)
		}
	}
	return w.has
}
