// Where each model's tokens come from, found beside the requests.

// Package tokens knows how the prompts of each served model become tokens: by the
// model's own files, or by asking one of its workers.
//
//	sources := tokens.New(log, degraded, noteBug)
//	sources.Follow(&tokens.Served{...})   // again at each reload
//	hooks.News = sources.Look             // a worker has said what it serves
//	if source := sources.Of(model); source.Err == nil { ids, err = source.Model.Chat(ctx, nil, body) }
//	sources.Close()
//
// One goroutine finds the sources: reading a tokenizer takes a second, which no
// request and no probe should wait for.
package tokens

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"kvasir/kvroute"
	"kvasir/kvroute/prompt"
	"kvasir/upstream"
)

// Sources are the sources of all models that are served.
type Sources struct {
	log      zerolog.Logger
	degraded func(key, text string)
	bug      func(fault any, what string)
	library  *prompt.Library
	served   atomic.Pointer[Served]             // nil: nothing was followed yet
	known    atomic.Pointer[map[string]*Source] // by the name that clients ask for; replaced, never changed

	begin sync.Once
	wake  chan struct{}
	stop  context.CancelFunc
	done  chan struct{} // closed when the goroutine has ended; nil: it never began
}

// Served is what one configuration serves. It is never changed.
type Served struct {
	Wanted     bool               // placement asks for tokens; if not, no source is looked for
	Pool       *kvroute.Pool      // knows the models
	Workers    []*upstream.Worker // of the pool
	Tokenizers map[string]string  // models[].tokenizer of the models that the configuration names; "": auto
}

// A Source is how prompts of one model become tokens. It is never changed.
type Source struct {
	Model  *prompt.Model   // makes tokens of prompts; not to be used where there is an Err
	Listed upstream.Listed // the model as a worker lists it
	Err    error           // why there are no tokens; see ErrPending and package prompt's

	setting string // models[].tokenizer
	mixed   error  // the files say something else than the worker, which is asked then; or they could not be compared
}

// ErrPending is why there are no tokens of a model that no worker has spoken of yet.
var ErrPending = errors.New("its source is not found yet")

// ReadsTokens says whether the source is sure to read tokens as the model does: its
// files agree with the worker, or whoever runs this has named them.
func (t *Source) ReadsTokens() bool {
	switch {
	case t.Err != nil || errors.Is(t.mixed, prompt.ErrDiffers):
		return false
	case t.setting == "auto" || t.setting == "worker":
		return t.mixed == nil
	}
	return true
}

// checked says whether the files were compared with the worker. If not, since the
// worker was busy or starting, it is asked again.
func (t *Source) checked() bool { return t.mixed == nil || errors.Is(t.mixed, prompt.ErrDiffers) }

// told reports whether the log already has what would be logged about t; old is the source
// before it.
func (t *Source) told(old *Source) bool {
	return old != nil && old.Err == nil && old.Model == t.Model && old.mixed != nil && t.mixed != nil && old.mixed.Error() == t.mixed.Error()
}

// lookEvery is how often sources are looked for without news: a tokenizer may come to
// be, and change, while we run.
const lookEvery = 30 * time.Second

// New knows no source yet. degraded is told, under a key, what is to stand in /readyz
// as long as it is so, "" when it is so no more; bug is told of a panic and of what
// ended in it.
func New(log zerolog.Logger, degraded func(key, text string), bug func(fault any, what string)) *Sources {
	all := &Sources{log: log, degraded: degraded, bug: bug, library: prompt.NewLibrary(prompt.Options{}), wake: make(chan struct{}, 1)}
	all.known.Store(&map[string]*Source{})
	return all
}

// Follow makes s what is served from now on, and looks for its sources.
func (all *Sources) Follow(s *Served) {
	all.served.Store(s)
	all.Look()
}

// Look says that there may be something new: a worker has said what it serves. It does
// not wait.
func (all *Sources) Look() {
	if s := all.served.Load(); s == nil || !s.Wanted {
		return
	}
	all.begin.Do(func() {
		var ctx context.Context
		ctx, all.stop = context.WithCancel(context.Background())
		all.done = make(chan struct{})
		go all.run(ctx)
	})
	select {
	case all.wake <- struct{}{}:
	default:
	}
}

// Close ends the goroutine and waits for it. Nobody may call Look or Follow after it.
func (all *Sources) Close() {
	all.begin.Do(func() {})
	if all.done != nil {
		all.stop()
		<-all.done
	}
}

func (all *Sources) run(ctx context.Context) {
	defer close(all.done)
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-all.wake:
		case <-again.C:
		}
		all.findAll(ctx)
	}
}

// findAll finds the sources of all models that are served, and forgets the others.
func (all *Sources) findAll(ctx context.Context) {
	defer func() {
		if fault := recover(); fault != nil {
			all.bug(fault, "a tokenizer")
		}
	}()
	s := all.served.Load()
	old := *all.known.Load()
	known := make(map[string]*Source, len(old))
	if s.Wanted {
		for _, m := range s.Pool.Models() {
			if ctx.Err() != nil {
				return // what is not finished is forgotten
			}
			known[m.Name] = all.find(ctx, s, m.Name, old[m.Name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if known[name] == nil {
			all.degraded("tokens of "+name, "")
		}
	}
	all.known.Store(&known)
}

// find finds the source of one model. old is the one that it had until now, or nil.
func (all *Sources) find(ctx context.Context, s *Served, model string, old *Source) *Source {
	listed := s.listing(model)
	t := &Source{setting: s.tokenizer(model), Listed: listed}
	root := listed.Root
	if listed.Parent != "" { // an adapter, whose own root has no tokenizer most often
		root = s.listing(listed.Parent).Root
		if _, named := s.Tokenizers[model]; !named {
			t.setting = s.tokenizer(listed.Parent)
		}
	}
	t.Model, t.Err = all.library.Model(model, t.setting, prompt.Hints{Root: root, Engine: s.otherPrompts(model), Ask: all.askerOf(model)})
	same := old != nil && old.Model == t.Model && old.Err == nil && t.Err == nil && old.Listed == t.Listed
	if same && old.checked() && (old.mixed != nil || !t.Model.Asks()) {
		return old
	}
	if t.Err == nil {
		t.mixed = t.Model.Check(ctx)
	}
	if same && old.mixed == nil && t.mixed == nil {
		return old // the worker that is asked still answers
	}
	if errors.Is(t.mixed, prompt.ErrNone) {
		t.Err, t.mixed = t.mixed, nil
	}
	if ctx.Err() == nil {
		all.tell(model, t, old)
	}
	return t
}

// tell says once in the log, and in /readyz as long as it is so, that there are no tokens.
func (all *Sources) tell(model string, t, old *Source) {
	key := "tokens of " + model
	switch {
	case t.Err == nil && t.told(old):
	case t.Err == nil:
		e := all.log.Info().Str("model", model).Str("source", t.Model.Source())
		problem, reason := t.mixed, ""
		switch trouble := t.Model.Trouble(); {
		case trouble != nil:
			problem = fmt.Errorf("its files cannot be used, or not for chats: %w; the worker is asked", trouble)
			reason = fmt.Sprintf("tokens of model %q: %v; where it does not say them placement is approximate", model, problem)
		case !t.checked() && t.Model.Asks():
			reason = fmt.Sprintf("tokens of model %q: %v; where the worker does not say them placement is approximate", model, problem)
		}
		all.degraded(key, reason)
		if problem != nil {
			e = all.log.Warn().Str("model", model).Str("source", t.Model.Source()).Str("problem", problem.Error())
		}
		e.Msg("tokens of the model are known")
	case t.setting == "none":
		all.degraded(key, "") // as asked
	default:
		all.degraded(key, fmt.Sprintf("tokens of model %q are not known: %v; placement is approximate", model, t.Err))
		if old == nil || old.Err == nil || old.Err.Error() != t.Err.Error() {
			all.log.Warn().Str("model", model).Str("problem", t.Err.Error()).Msg("tokens of the model are not known; placement is approximate")
		}
	}
}

// Of is the source of a model's tokens as far as it is found; never nil.
func (all *Sources) Of(model string) *Source {
	if t := (*all.known.Load())[model]; t != nil {
		return t
	}
	return pendingSource
}

var pendingSource = &Source{Err: ErrPending}

// tokenizer is models[].tokenizer of a model, auto for one that the configuration does not name.
func (s *Served) tokenizer(model string) string {
	if setting := s.Tokenizers[model]; setting != "" {
		return setting
	}
	return "auto"
}

// listing is how the model is listed by the first of the workers, by name, that lists it.
func (s *Served) listing(model string) upstream.Listed {
	for _, w := range s.byName() {
		if m := w.Lists(model); m.Name != "" {
			return m
		}
	}
	return upstream.Listed{}
}

// otherPrompts is an engine among the workers of the model that may make other prompts
// than vLLM does; "" if there is none. Only what is sure of that engine's prompts is
// sure of those of all the workers.
func (s *Served) otherPrompts(model string) string {
	for _, w := range s.byName() {
		if e := w.OtherPrompts(); e != "" && w.Serves(model) {
			return e
		}
	}
	return ""
}

func (s *Served) byName() []*upstream.Worker {
	return slices.SortedFunc(slices.Values(s.Workers), func(a, b *upstream.Worker) int { return cmp.Compare(a.Name(), b.Name()) })
}

// askerOf asks a worker of the model: of those that are up, the least busy one. A worker
// that did not answer in time is not asked again for a while, since each request would
// wait so long for it.
func (all *Sources) askerOf(model string) prompt.Asker {
	return func(ctx context.Context, path string, body []byte) ([]byte, error) {
		now := time.Now()
		var best *upstream.Worker
		for _, b := range all.served.Load().Workers {
			if b.Serves(model) && b.Status(now).State.TakesRequests() && !b.Muted(now) && (best == nil || b.Active() < best.Active()) {
				best = b
			}
		}
		if best == nil {
			return nil, fmt.Errorf("cannot ask for tokens: no worker of model %q is up, or answers in time", model)
		}
		return best.AskTokens(ctx, path, body)
	}
}
