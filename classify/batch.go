// Batch: a request that has a thread judges, together with its own text, the short
// texts of requests that still wait for one.

package classify

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"kvasir/classify/encoder"
	"kvasir/classify/model"
)

// Half of the time that a short text takes goes into bringing the weights through
// the processor, and several texts can share that. So when one text is judged, the
// texts of waiting requests are judged in the same pass, and the results are put
// where equal texts share theirs (see recent.go): a request finds them there when
// it gets a thread of its own.
//
//  1. While a thread is free nobody waits for a batch to fill. Where all threads
//     are taken, a request that follows a batch waits a moment for others to come
//     (see waitForMore).
//  2. A batch only fills in results. Each request keeps its own deadline, faults,
//     errors and questions, and computes itself what it does not find.
//  3. The text of a waiting request is copied under the lock of the queue, and the
//     request leaves the queue before Judge returns: nobody reads its text later.

// A batch is small enough for one pass over the weights: its texts have about 24
// windows together, one for each hundred bytes.
const (
	maxBatch      = 24
	maxBatchBytes = 2400
	maxShort      = 800 // bytes of one
)

// leadTime is how much time a request must have left before it judges a batch: one
// takes about 3 ms with AVX-512 and 20 ms with AVX2.
const leadTime = 100 * time.Millisecond

// maxWaiting is how many waiting requests a batch is taken from.
const maxWaiting = 256

// A queue holds the requests that wait for a thread and whose text can be judged in
// a batch, in the order in which they came.
type queue struct {
	mu      sync.Mutex // guards the rest
	waiting []shortText
	last    int // how many texts the last batch had
}

// A shortText is the last user text of a request that waits. It is judged as an
// attack in any case.
type shortText struct {
	of       *Request
	text     []byte
	category bool // its category will be asked for
	sentence bool // its embedding will be asked for
}

// asked is what the decisions of a configuration ask of the last user text.
type asked struct{ category, sentence bool }

func (c *Classifier) askedBy(rules []rule) (a asked) {
	for i := range rules {
		when := &rules[i].decision.When
		a.category = a.category || when.asksFor(KindCategory)
		for _, s := range c.table {
			a.sentence = a.sentence || s.embeds && when.asksFor(s.kind)
		}
	}
	return a
}

// shortText returns the last user text of a request. ok is false unless it is a
// single short text whose result is not known yet from an equal one.
func (c *Classifier) shortText(r *Request) (w shortText, ok bool) {
	if r == nil || c.options.Jailbreak.Action == Off || !c.weights.batches() {
		return w, false
	}
	start, end := lastMessage(r.Texts)
	if end != start+1 || len(r.Texts[start].Bytes) > maxShort {
		return w, false
	}
	w = shortText{of: r, text: r.Texts[start].Bytes}
	if from, to := noise(w.text, 0); from < to { // judged without it
		return w, false
	}
	if _, known := c.shared.attacks.get(c.shared.key(w.text)); known {
		return w, false
	}
	a := c.explicitAsked
	if r.Auto {
		a = c.autoAsked
	}
	w.category = a.category || r.Auto || slices.Contains(r.Also, KindCategory)
	w.sentence = a.sentence || slices.Contains(r.Also, KindSentence)
	return w, true
}

// join puts a request that is about to wait into the queue.
func (q *queue) join(w shortText) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) < maxWaiting {
		q.waiting = append(q.waiting, w)
	}
}

// leave takes a request out of the queue if no batch has taken it.
func (q *queue) leave(r *Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.IndexFunc(q.waiting, func(w shortText) bool { return w.of == r }); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
}

// enough is how many make a batch worth a pause.
const enough = maxBatch / 3

// due says that more requests are about to come: the last batch had many, and few
// wait so far.
func (q *queue) due() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.last >= enough && len(q.waiting) < enough
}

// Right after a batch, the next requests of its connections lie unread in the sockets. The first of
// them to be read was judged alone, at twice the price. So where all threads are taken, a request that
// follows a batch waits for others: patience at most, or one pause, which takes a millisecond at least
// where nothing else runs, since that is the shortest wait of the system. If none come, the next request
// does not wait: with two to six clients each waited for others that did not exist, which cost ten times
// as much.
const (
	patience = 4 * pause
	pause    = 50 * time.Microsecond
)

// waitForMore gives requests that are about to come the time to join the queue.
func (c *Classifier) waitForMore() {
	runtime.Gosched()
	if c.options.Threads < 2 {
		return
	}
	for start := time.Now(); c.line.full() && c.queue.due() && time.Since(start) < patience; {
		time.Sleep(pause)
	}
}

// A batch holds texts that are judged together.
type batch struct {
	n      int
	of     [maxBatch]shortText
	texts  [maxBatch]model.Short
	copied []byte
	folds  folds
}

// take fills the batch with own and with texts of the queue, as many as fit.
func (m *batch) take(q *queue, own shortText) {
	m.n, m.copied = 0, m.copied[:0]
	m.add(own)
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := 0
	for taken < len(q.waiting) && m.add(q.waiting[taken]) {
		taken++
	}
	q.waiting = slices.Delete(q.waiting, 0, taken)
	q.last = m.n
}

// add copies a text; false: there is no room.
func (m *batch) add(w shortText) bool {
	if m.n == maxBatch || m.n > 0 && len(m.copied)+len(w.text) > maxBatchBytes {
		return false
	}
	at := len(m.copied)
	m.copied = append(m.copied, w.text...)
	w.of, w.text = nil, m.copied[at:]
	m.of[m.n] = w
	m.n++
	return true
}

// judgeBatch judges the request's last text together with those that wait, if any
// do. If that panics nothing is shared: the request that asks for the text itself
// has the panic again, as its own.
func (j *judging) judgeBatch() {
	own, ok := j.c.shortText(j.r)
	if !ok || j.deadline-clock() < leadTime {
		return
	}
	if j.batch == nil {
		j.batch = &batch{copied: make([]byte, 0, maxBatchBytes+maxShort)}
	}
	m := j.batch
	j.c.waitForMore()
	if m.take(&j.c.queue, own); m.n < 2 {
		return
	}
	start := clock()
	defer func() {
		if recover() != nil {
			j.reader, j.batch = j.c.weights.newReader(stops{j.stop, j.stopLate}), nil
		}
		j.took(KindJailbreak, clock()-start, nil) // the time of the whole batch
	}()
	m.judge(j.c, j.reader)
}

// judge judges the texts and shares the results.
func (m *batch) judge(c *Classifier, r reader) {
	s := c.shared
	m.folds.begin(m.n)
	for i, w := range m.of[:m.n] {
		t := &m.texts[i]
		t.Text, t.Categorise = m.folds.fold(i, w.text).bytes, w.category
	}
	r.together(m.texts[:m.n])
	for i, w := range m.of[:m.n] {
		t := &m.texts[i]
		text := t.Text // folded, as lastUser has it
		if t.Text = nil; !t.Judged || !speaks(text) {
			continue
		}
		if scores, ok := c.sure(text, attackScores{t.Scores.Attack, t.Scores.Injection, t.Scores.Indirect}, encoder.AsUser); ok {
			s.attacks.put(s.key(w.text), scores)
		}
		key := s.key(text)
		if w.category {
			s.category.put(key, t.Category)
		}
		if w.sentence {
			s.sentence.put(key, t.Embedding)
		}
	}
	m.folds.reset()
}
