// Tokens: where each model's tokens come from, found beside the requests.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kvasir/kvroute/prompt"
	"kvasir/upstream"
)

// A lexicon knows the source of each model's tokens. One goroutine finds them, as
// workers say what they serve: reading a tokenizer takes a second, which no
// request and no probe should wait for.
type lexicon struct {
	*Proxy
	library *prompt.Library
	known   atomic.Pointer[map[string]*tokenSource] // by the name that clients ask for; replaced, never changed

	begin sync.Once
	wake  chan struct{}
	stop  context.CancelFunc
	done  chan struct{} // closed when the goroutine has ended; nil: it never began
}

// A tokenSource is how prompts of one model become tokens. It is never changed.
type tokenSource struct {
	setting string          // models[].tokenizer
	listed  upstream.Listed // as a worker lists it
	model   *prompt.Model
	err     error // there are no tokens
	mixed   error // the files say something else than the worker, which is asked then; or it could not be compared
}

// checked says whether files were compared with the worker. A worker that was busy,
// or starting, is asked again.
func (t *tokenSource) checked() bool { return t.mixed == nil || errors.Is(t.mixed, prompt.ErrDiffers) }

// told says whether there is nothing new to say of t after old.
func (t *tokenSource) told(old *tokenSource) bool {
	return old != nil && old.err == nil && old.model == t.model && old.mixed != nil && t.mixed != nil && old.mixed.Error() == t.mixed.Error()
}

const (
	lexiconEvery = 30 * time.Second // a tokenizer may come to be, and change, while we run
)

// errPending is why there are no tokens of a model that no worker has spoken of yet.
var errPending = errors.New("its source is not found yet")

func newLexicon(p *Proxy) *lexicon {
	l := &lexicon{Proxy: p, library: prompt.NewLibrary(prompt.Options{}), wake: make(chan struct{}, 1)}
	l.known.Store(&map[string]*tokenSource{})
	return l
}

// look says that there may be something new: a configuration, or a worker that
// has said what it serves. It does not wait.
func (l *lexicon) look() {
	if s := l.state.Load(); s == nil || !s.prices() {
		return
	}
	l.begin.Do(func() {
		var ctx context.Context
		ctx, l.stop = context.WithCancel(context.Background())
		l.done = make(chan struct{})
		go l.run(ctx)
	})
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// close ends the goroutine and waits for it. Nobody may call look after it.
func (l *lexicon) close() {
	l.begin.Do(func() {})
	if l.done != nil {
		l.stop()
		<-l.done
	}
}

func (l *lexicon) run(ctx context.Context) {
	defer close(l.done)
	again := time.NewTicker(lexiconEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		case <-again.C:
		}
		l.findAll(ctx)
	}
}

// findAll finds the sources of all models that are served, and forgets the others.
func (l *lexicon) findAll(ctx context.Context) {
	defer func() {
		if fault := recover(); fault != nil {
			l.noteBug(fault, "a tokenizer")
		}
	}()
	s := l.state.Load()
	old := *l.known.Load()
	known := make(map[string]*tokenSource, len(old))
	if s.prices() {
		for _, m := range s.pool.Models() {
			if ctx.Err() != nil {
				return // what is not finished is forgotten
			}
			known[m.Name] = l.find(ctx, s, m.Name, old[m.Name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if known[name] == nil {
			l.reasons.Set("tokens of "+name, "")
		}
	}
	l.known.Store(&known)
}

// find finds the source of one model, before which it had old, nil: none.
func (l *lexicon) find(ctx context.Context, s *state, model string, old *tokenSource) *tokenSource {
	listed := s.listing(model)
	t := &tokenSource{setting: s.settings.tokenizer(model), listed: listed}
	root := listed.Root
	if listed.Parent != "" { // an adapter, whose own root has no tokenizer most often
		root = s.listing(listed.Parent).Root
		if _, named := s.models[model]; !named {
			t.setting = s.settings.tokenizer(listed.Parent)
		}
	}
	t.model, t.err = l.library.Model(model, t.setting, prompt.Hints{Root: root, Engine: s.otherPrompts(model), Ask: l.askerOf(model)})
	same := old != nil && old.model == t.model && old.err == nil && t.err == nil && old.listed == t.listed
	if same && old.checked() && (old.mixed != nil || !t.model.Asks()) {
		return old
	}
	if t.err == nil {
		t.mixed = t.model.Check(ctx)
	}
	if same && old.mixed == nil && t.mixed == nil {
		return old // the worker that is asked still answers
	}
	if errors.Is(t.mixed, prompt.ErrNone) {
		t.err, t.mixed = t.mixed, nil
	}
	if ctx.Err() == nil {
		l.tell(model, t, old)
	}
	return t
}

// tell says once in the log, and in /readyz as long as it is so, that there are no tokens.
func (l *lexicon) tell(model string, t, old *tokenSource) {
	key := "tokens of " + model
	switch {
	case t.err == nil && t.told(old):
	case t.err == nil:
		e := l.log.Info().Str("model", model).Str("source", t.model.Source())
		problem, reason := t.mixed, ""
		switch trouble := t.model.Trouble(); {
		case trouble != nil:
			problem = fmt.Errorf("its files cannot be used, or not for chats: %w; the worker is asked", trouble)
			reason = fmt.Sprintf("tokens of model %q: %v; where it does not say them placement is approximate", model, problem)
		case !t.checked() && t.model.Asks():
			reason = fmt.Sprintf("tokens of model %q: %v; where the worker does not say them placement is approximate", model, problem)
		}
		l.reasons.Set(key, reason)
		if problem != nil {
			e = l.log.Warn().Str("model", model).Str("source", t.model.Source()).Str("problem", problem.Error())
		}
		e.Msg("tokens of the model are known")
	case t.setting == "none":
		l.reasons.Set(key, "") // as asked
	default:
		l.reasons.Set(key, fmt.Sprintf("tokens of model %q are not known: %v; placement is approximate", model, t.err))
		if old == nil || old.err == nil || old.err.Error() != t.err.Error() {
			l.log.Warn().Str("model", model).Str("problem", t.err.Error()).Msg("tokens of the model are not known; placement is approximate")
		}
	}
}

// of is the source of a model's tokens as far as it is found.
func (l *lexicon) of(model string) *tokenSource {
	if t := (*l.known.Load())[model]; t != nil {
		return t
	}
	return pendingSource
}

var pendingSource = &tokenSource{err: errPending}

// tokenizer is models[].tokenizer of a model, auto for one that the configuration does not name.
func (s *Settings) tokenizer(model string) string {
	for i := range s.Models {
		if m := &s.Models[i]; m.Name == model && m.Tokenizer != "" {
			return m.Tokenizer
		}
	}
	return "auto"
}

// listing is how the first of the workers, by name, that lists the model does so.
func (s *state) listing(model string) upstream.Listed {
	for _, b := range s.byName() {
		if m := b.Lists(model); m.Name != "" {
			return m
		}
	}
	return upstream.Listed{}
}

// otherPrompts is an engine among the workers that serve the model whose prompts may be
// others than vLLM's: what is sure of its prompts is sure of all. "": there is none.
func (s *state) otherPrompts(model string) string {
	for _, b := range s.byName() {
		if e := b.OtherPrompts(); e != "" && b.Serves(model) {
			return e
		}
	}
	return ""
}

// byName are the backends in the order of their names.
func (s *state) byName() []*backend {
	return slices.SortedFunc(maps.Values(s.backends), func(a, b *backend) int {
		if a.Name() < b.Name() {
			return -1
		}
		return 1
	})
}

// askerOf asks a worker of the model: one that is up, the least busy first. One that
// did not answer in time is not asked again for a while: each request would wait so
// long for it.
func (l *lexicon) askerOf(model string) prompt.Asker {
	return func(ctx context.Context, path string, body []byte) ([]byte, error) {
		now := time.Now()
		var best *backend
		for _, b := range l.state.Load().backends {
			if b.Serves(model) && usable(b.Status(now).State) && !b.Muted(now) && (best == nil || b.Active() < best.Active()) {
				best = b
			}
		}
		if best == nil {
			return nil, fmt.Errorf("cannot ask for tokens: no worker of model %q is up, or answers in time", model)
		}
		return best.AskTokens(ctx, path, body)
	}
}
