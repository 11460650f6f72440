// Along: who has a thread judges short texts of those who wait for one along
// with its own.

package classify

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"kvasir/classify/model"
)

// The weights' way through the processor takes half of the time of a short text,
// and more texts can share it. So the texts that wait when one is judged are
// judged with it, and what comes out is put where equal texts share results:
// when their requests get a thread they find it there.
//
//  1. Nobody waits for others while a thread is free. Where all are taken, who
//     has got one after a company lets others come for a moment (see letCome).
//  2. It only fills in results. Deadlines, faults, errors and what a request is
//     asked are its own as ever, and what is missing it computes itself.
//  3. A waiting request's text is copied under the lock of the queue, which it
//     leaves before Judge returns: nobody reads it after.

// A company is small enough for one pass over the weights: its texts have about
// 24 windows together, one a hundred bytes.
const (
	maxCompany      = 24
	maxCompanyBytes = 2400
	maxCompanion    = 800 // bytes of one
)

// leadTime is how long before its deadline a request takes others along: a
// company takes about 3 ms of AVX-512 and 20 ms of AVX2.
const leadTime = 100 * time.Millisecond

// maxWaiting is how many waiting requests can be seen.
const maxWaiting = 256

// A queue is the requests that wait for a thread and have a text to be taken
// along, in order.
type queue struct {
	mu      sync.Mutex // guards the rest
	waiting []companion
	last    int // texts of the company that was taken last
}

// A companion is the last user text of a request.
type companion struct {
	of       *Request
	text     []byte
	category bool // what will be asked of it, beside whether it is an attack
	sentence bool
}

// asked is what decisions ask of the last user text.
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

// companion returns the last user text of a request, if it is one short text
// that no equal one came before of.
func (c *Classifier) companion(r *Request) (w companion, ok bool) {
	if r == nil || c.options.Jailbreak.Action == Off || !c.weights.sociable() {
		return w, false
	}
	start, end := lastMessage(r.Texts)
	if end != start+1 || len(r.Texts[start].Bytes) > maxCompanion {
		return w, false
	}
	w = companion{of: r, text: r.Texts[start].Bytes}
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

// join lets others see a request that is about to wait.
func (q *queue) join(w companion) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) < maxWaiting {
		q.waiting = append(q.waiting, w)
	}
}

// leave takes a request out if it is still there.
func (q *queue) leave(r *Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.IndexFunc(q.waiting, func(w companion) bool { return w.of == r }); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
}

// enough is how many make a company worth a pause.
const enough = maxCompany / 3

// due says that more are about to come: many were judged together last, and few wait as yet.
func (q *queue) due() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.last >= enough && len(q.waiting) < enough
}

// After a company the requests of many connections lie in the sockets unread, and who was first was
// judged alone for twice the price. So where all threads are taken, who comes after a company lets
// others come, patience at most, or what one pause takes: where nothing else runs that is the
// millisecond that the system's wait has at least. If they do not come nobody waits for more of them:
// of two to six who ask at once each waited for others that there were not, for ten times the price.
const (
	patience = 4 * pause
	pause    = 50 * time.Microsecond
)

// letCome lets those who could wait come to it.
func (c *Classifier) letCome() {
	runtime.Gosched()
	if c.options.Threads < 2 {
		return
	}
	for start := time.Now(); c.line.full() && c.queue.due() && time.Since(start) < patience; {
		time.Sleep(pause)
	}
}

// A company is the memory of texts that are judged together.
type company struct {
	n      int
	of     [maxCompany]companion
	texts  [maxCompany]model.Short
	copied []byte
	folds  folds
}

// take copies texts from the queue, as many as fit beside own.
func (m *company) take(q *queue, own companion) {
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
func (m *company) add(w companion) bool {
	if m.n == maxCompany || m.n > 0 && len(m.copied)+len(w.text) > maxCompanyBytes {
		return false
	}
	at := len(m.copied)
	m.copied = append(m.copied, w.text...)
	w.of, w.text = nil, m.copied[at:]
	m.of[m.n] = w
	m.n++
	return true
}

// alongWith judges the request's last text together with those that wait, if
// there are any. A panic is left for who asks for that text to have.
func (j *judging) alongWith() {
	own, ok := j.c.companion(j.r)
	if !ok || j.deadline-clock() < leadTime {
		return
	}
	if j.company == nil {
		j.company = &company{copied: make([]byte, 0, maxCompanyBytes+maxCompanion)}
	}
	m := j.company
	j.c.letCome()
	if m.take(&j.c.queue, own); m.n < 2 {
		return
	}
	start := clock()
	defer func() {
		if recover() != nil {
			j.reader, j.company = j.c.weights.newReader(), nil
		}
		j.took(KindJailbreak, clock()-start, nil) // that of all
	}()
	m.judge(j.c.shared, j.reader)
}

// judge judges the texts and shares what comes out.
func (m *company) judge(s *shared, r reader) {
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
		s.attacks.put(s.key(w.text), attackScores{t.Scores.Attack, t.Scores.Injection, t.Scores.Indirect})
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
