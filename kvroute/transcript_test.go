// Transcripts: testdata/*.txt say what placement answers to a story; -update writes the answers.

package kvroute

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kvasir/transcripttest"
)

func TestTranscripts(t *testing.T) {
	transcripttest.Run(t, "testdata/*.txt", func(t *testing.T, text string) (got string) {
		synctest.Test(t, func(t *testing.T) { got = newStory(t).retell(text) })
		return got
	})
}

// A story is the state behind one transcript. Its clock is the bubble's.
type story struct {
	t       *testing.T
	begin   time.Time
	random  func() uint64
	workers []*Worker
	pool    *Pool
	gone    map[string]chan struct{}
	ids     int

	mu     sync.Mutex // guards below
	placed map[string]Placement
	said   []string              // since the last answers
	woken  map[int]func() string // what those in line say to the command under way, by number
}

func newStory(t *testing.T) *story {
	return &story{
		t: t, begin: time.Now(), random: seeded(1),
		placed: map[string]Placement{}, gone: map[string]chan struct{}{}, woken: map[int]func() string{},
	}
}

// seeded returns a source that always gives the same numbers.
func seeded(seed uint64) func() uint64 {
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(seed, seed))
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return r.Uint64()
	}
}

func (s *story) retell(text string) string {
	got := transcripttest.Replay(text, s.tell, s.told)
	for id, gone := range s.gone { // whoever still waits
		close(gone)
		delete(s.gone, id)
	}
	synctest.Wait()
	return got
}

func (s *story) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, fmt.Sprintf(format, args...))
}

// sayWoken writes down what the woken said behind what the command itself
// said, the first in line first: which of them ran first is chance. It is told
// when all of them have what they waited for.
func (s *story) sayWoken() {
	s.mu.Lock()
	woken := s.woken
	s.woken = map[int]func() string{}
	s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(woken)) {
		s.say("%s", woken[id]())
	}
}

func (s *story) told() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.Join(s.said, "")
	s.said = nil
	return text
}

// words are the arguments of a command: bare words and name=value.
type words struct {
	bare  []string
	named map[string]string
}

func (w words) at(i int) string {
	if i < len(w.bare) {
		return w.bare[i]
	}
	return ""
}

func (w words) number(name string) int {
	n, _ := strconv.Atoi(w.named[name])
	return n
}

func (w words) duration(name string, otherwise time.Duration) time.Duration {
	if d, err := time.ParseDuration(w.named[name]); err == nil {
		return d
	}
	return otherwise
}

func (s *story) tell(command string) {
	w := words{named: map[string]string{}}
	fields := strings.Fields(command)
	for _, f := range fields[1:] {
		if name, value, ok := strings.Cut(f, "="); ok {
			w.named[name] = value
		} else {
			w.bare = append(w.bare, f)
		}
	}
	tell, ok := commands()[fields[0]]
	if !ok {
		s.t.Fatalf("no command %q", command)
	}
	tell(s, w)
	synctest.Wait()
	s.sayWoken()
}

func commands() map[string]func(*story, words) {
	return map[string]func(*story, words){
		"worker": (*story).tellWorker, "pool": (*story).tellPool, "models": (*story).tellModels,
		"place": (*story).tellPlace, "wait": (*story).tellWait, "leave": (*story).tellLeave,
		"release": (*story).tellRelease,
		"limit": func(s *story, w words) {
			n, _ := strconv.Atoi(w.at(1))
			s.worker(w.at(0)).SetMaxRequests(n)
		},
		"ok":     func(s *story, w words) { s.news(w, s.worker(w.at(0)).Succeeded(time.Now())) },
		"busy":   func(s *story, w words) { s.news(w, s.worker(w.at(0)).Busy(time.Now(), w.duration("for", 0))) },
		"fail":   (*story).tellFail,
		"probe":  (*story).tellProbe,
		"tick":   func(s *story, w words) { d, _ := time.ParseDuration(w.at(0)); time.Sleep(d) },
		"status": (*story).tellStatus,
		"list":   (*story).tellList,

		"engine": (*story).tellEngine, "holds": (*story).tellHolds, "drops": (*story).tellDrops,
		"restart":   func(s *story, w words) { s.worker(w.at(0)).Restarted() },
		"hardware":  (*story).tellHardware,
		"tokens":    (*story).tellTokens,
		"prefilled": (*story).tellPrefilled, "explain": (*story).tellExplain,
	}
}

func (s *story) worker(name string) *Worker {
	i := slices.IndexFunc(s.workers, func(w *Worker) bool { return w.Name() == name })
	if i < 0 {
		s.t.Fatalf("no worker %q", name)
	}
	return s.workers[i]
}

func (s *story) workersNamed(list string) (workers []*Worker) {
	for name := range strings.SplitSeq(list, ",") {
		if name != "" {
			workers = append(workers, s.worker(name))
		}
	}
	return workers
}

func models(list string) []Model {
	models := []Model{}
	for m := range strings.SplitSeq(list, ",") {
		name, length, _ := strings.Cut(m, ":")
		n, _ := strconv.Atoi(length)
		if name != "" {
			models = append(models, Model{Name: name, MaxModelLen: n})
		}
	}
	return models
}

// worker NAME [role=R] [max=N] [models=A,B:LEN]; without models they are not known yet
func (s *story) tellWorker(w words) {
	role, err := ParseRole(w.named["role"])
	if err != nil {
		s.t.Fatal(err)
	}
	worker := NewWorker(w.at(0), role, w.number("max"))
	if list, ok := w.named["models"]; ok {
		worker.SetModels(models(list))
	}
	s.workers = append(s.workers, worker)
}

// pool [policy=P] [queued=N] [workers=A,B]; a second one replaces the first
func (s *story) tellPool(w words) {
	o := PoolOptions{Workers: s.workers, MaxQueued: w.number("queued"), Random: s.random, After: s.pool}
	o.CentralQueue = slices.Contains(w.bare, "central")
	var err error
	if o.Disaggregate, err = ParseDisaggregate(w.named["disaggregate"]); err != nil {
		s.t.Fatal(err)
	}
	if name, ok := w.named["policy"]; ok {
		if o.Policy, err = ParsePolicy(name); err != nil {
			s.t.Fatal(err)
		}
	}
	if list, ok := w.named["workers"]; ok {
		o.Workers = s.workersNamed(list)
	}
	first := s.pool == nil
	if s.pool = NewPool(o); !first {
		s.pool.Start()
	}
}

// models NAME A,B
func (s *story) tellModels(w words) {
	if !s.worker(w.at(0)).SetModels(models(w.at(1))) {
		s.say("no news\n")
	}
}

func (s *story) query(w words) Query {
	q := Query{
		Now: time.Now(), Model: w.at(0), Tried: s.workersNamed(w.named["tried"]),
		Strict: slices.Contains(w.bare, "strict"), Aggregate: slices.Contains(w.bare, "aggregate"),
		Tokens: w.number("tokens"), TriedPrefill: s.workersNamed(w.named["tried-prefill"]),
		Pin: Pin{Worker: w.named["worker"], Prefill: w.named["prefill"]},
	}
	if _, ok := w.named["rank"]; ok {
		q.Pin.Rank, q.Pin.Ranked = w.number("rank"), true
	}
	if _, ok := w.named["prefill-rank"]; ok {
		q.Pin.PrefillRank, q.Pin.PrefillRanked = w.number("prefill-rank"), true
	}
	if ids, ok := w.named["prompt"]; ok {
		q.Prompt = &Prompt{IDs: tokens(ids)}
	} else if ids, ok := w.named["text"]; ok {
		q.Prompt = &Prompt{Text: textOf(tokens(ids))}
	}
	return q
}

func (s *story) id() int {
	s.ids++
	return s.ids
}

// result keeps what a request holds and returns the line about it.
func (s *story) result(id int, at Placement, err error) string {
	if err != nil {
		return fmt.Sprintf("#%d %v\n", id, err)
	}
	if at.LastResort != (at.Why == "last_resort") {
		s.t.Errorf("LastResort is %v and Why is %q", at.LastResort, at.Why)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.placed[fmt.Sprintf("#%d", id)] = at
	return fmt.Sprintf("#%d %s (%s), active %d%s\n", id, at.Worker.Name(), at.Why, at.Worker.Active(), priced(at))
}

// place MODEL [tried=A,B] [strict]
func (s *story) tellPlace(w words) {
	at, err := s.pool.Place(s.query(w))
	s.say("%s", s.result(s.id(), at, err))
}

// wait MODEL [limit=D] [tried=A,B] [strict]
func (s *story) tellWait(w words) {
	id, q, pool, gone := s.id(), s.query(w), s.pool, make(chan struct{})
	s.gone[fmt.Sprintf("#%d", id)] = gone
	go func() {
		at, err := pool.Wait(q, gone, w.duration("limit", time.Hour))
		s.mu.Lock()
		defer s.mu.Unlock()
		s.woken[id] = func() string { return s.result(id, at, err) }
	}()
	synctest.Wait()
	s.sayWoken()
	if n := pool.QueueLen(q.Model); n > 0 {
		s.say("#%d: %d in line\n", id, n)
	}
}

// release ID
func (s *story) tellRelease(w words) {
	s.mu.Lock()
	at, ok := s.placed[w.at(0)]
	delete(s.placed, w.at(0))
	s.mu.Unlock()
	if !ok {
		s.say("%s holds nothing\n", w.at(0))
		return
	}
	at.Release()
}

// leave ID
func (s *story) tellLeave(w words) {
	gone, ok := s.gone[w.at(0)]
	if !ok {
		s.t.Fatalf("%s does not wait", w.at(0))
	}
	close(gone)
	delete(s.gone, w.at(0))
}

// news says the new state, if it is one.
func (s *story) news(w words, changed bool) {
	if changed {
		s.say("%s\n", s.status(s.worker(w.at(0))))
	}
}

// fail NAME [times=N]
func (s *story) tellFail(w words) {
	for range max(w.number("times"), 1) {
		s.news(w, s.worker(w.at(0)).Failed(time.Now(), "connection reset"))
	}
}

// probe NAME ok|fail|refused
func (s *story) tellProbe(w words) {
	worker := s.worker(w.at(0))
	if w.at(1) == "ok" {
		s.news(w, worker.ProbeOK(time.Now()))
		return
	}
	refused := w.at(1) == "refused"
	why := "status 500"
	if refused {
		why = "connection refused"
	}
	s.news(w, worker.ProbeFailed(time.Now(), why, refused))
}

func (s *story) status(w *Worker) string {
	at := w.Status(time.Now())
	text := w.Name() + " " + at.State.String()
	if !at.Since.IsZero() {
		text += " since " + at.Since.Sub(s.begin).String()
	}
	if !at.Until.IsZero() {
		text += " until " + at.Until.Sub(s.begin).String()
	}
	if at.Why != "" {
		text += ": " + at.Why
	}
	return text
}

// status
func (s *story) tellStatus(words) {
	s.say("at %v\n", time.Since(s.begin))
	for _, w := range s.workers {
		s.say("%s, active %d\n", s.status(w), w.Active())
	}
}

// list
func (s *story) tellList(words) {
	for _, m := range s.pool.Models() {
		s.say("%s: %s, %d tokens\n", m.Name, strings.Join(m.Workers, " "), m.MaxModelLen)
	}
}
