// Probes: asking workers what they are and whether they are well.
package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"kvasir/kvroute"
	"kvasir/upstream"
)

const (
	probeEvery   = 2 * time.Second        // while a worker is well, give or take a fifth
	probeAgain   = 500 * time.Millisecond // while it is not, growing to probeEvery
	probeTimeout = 5 * time.Second        // SGLang's /health takes a second each time
	modelsEvery  = 30 * time.Second       // adapters come and go while a worker runs
	probeBody    = 4 << 20
	maxListed    = 1000 // models of one worker that are taken, beside those that its configuration names
)

// A probe is the asking of one worker and what it found.
type probe struct {
	stop     context.CancelFunc
	first    chan struct{} // closed after the first answer or failure
	engine   string
	version  string
	noHealth bool     // it has no /health: its list of models is asked instead
	news     bool     // it lists other models than before
	listed   []string // the models in its list, whatever the configuration says
	fewer    bool     // it was said that not all of them are served
}

// A servedModel is a model as the worker lists it.
type servedModel struct {
	name   string
	root   string // a path or a Hugging Face id; "": it does not say
	parent string // of an adapter: the model that it adapts
}

// A discovery is what asking a worker has found, for who else wants to know. It
// is never changed.
type discovery struct {
	engine string
	models []servedModel
}

// engine is the worker's engine as the configuration or the worker says; "": nobody
// has said yet.
func (b *backend) engine() string {
	if b.settings.Engine != "" {
		return b.settings.Engine
	}
	if d := b.discovered.Load(); d != nil {
		return d.engine
	}
	return ""
}

// lists is how the worker lists a model; zero where it does not, or was not asked yet.
func (b *backend) lists(model string) servedModel {
	if d := b.discovered.Load(); d != nil {
		for _, m := range d.models {
			if m.name == model {
				return m
			}
		}
	}
	return servedModel{}
}

// A prober asks workers what they are, each from a goroutine of its own.
type prober struct{ *Proxy }

// probeAll begins to ask the workers that are new in s, and gives those of the
// first configuration a moment to answer before anybody asks for them.
func (p prober) probeAll(s *state) {
	var begun []*backend
	for _, b := range s.backends {
		if b.probe.stop != nil {
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		b.probe.stop = cancel
		b.probe.first = make(chan struct{})
		begun = append(begun, b)
		p.probers.Add(1)
		go p.probeWorker(ctx, b)
	}
	patience := time.NewTimer(250 * time.Millisecond)
	defer patience.Stop()
	for _, b := range begun {
		select {
		case <-b.probe.first:
		case <-patience.C:
			return
		}
	}
}

func named(names []string) []kvroute.Model {
	models := make([]kvroute.Model, len(names))
	for i, name := range names {
		models[i].Name = name
	}
	return models
}

// retire stops the asking and closes connections that nobody uses. Requests
// under way keep theirs.
func (b *backend) retire() {
	b.probe.stop()
	b.conns.CloseIdle()
}

// probeWorker asks until the worker is retired.
func (p prober) probeWorker(ctx context.Context, b *backend) {
	defer p.probers.Done()
	defer b.listening.close()
	pause := probeAgain
	var asked time.Time // when it last told its models; zero: ask
	for first := true; ; first = false {
		err := p.askGuarded(ctx, b, &asked)
		if ctx.Err() != nil {
			return
		}
		p.noteProbe(b, err)
		if b.probe.news {
			b.probe.news = false
			p.lexicon.look()
		}
		if first {
			close(b.probe.first)
		}
		if p.learn(ctx, b, err); ctx.Err() != nil {
			return
		}
		if err == nil {
			pause = probeEvery
		} else {
			asked = time.Time{} // it may come back as another
			pause = min(2*pause, probeEvery)
			if first {
				pause = probeAgain
			}
		}
		jitter := time.Duration(rand.Int64N(int64(pause)*2/5)) - pause/5
		if wait(pause+jitter, ctx.Done()); ctx.Err() != nil {
			return
		}
	}
}

// askGuarded is ask, with a bug in it told as a failed probe: whatever a worker
// answers, the other workers' requests go on.
func (p prober) askGuarded(ctx context.Context, b *backend, asked *time.Time) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			p.noteBug(fault, "a probe")
			err = errors.New("a bug was met while asking it")
		}
	}()
	return b.ask(ctx, asked)
}

// noteProbe tells the worker's health, and the log when it changes.
func (p prober) noteProbe(b *backend, err error) {
	now := time.Now()
	if err == nil {
		if few := b.listsTooMany(); (few != "") != b.probe.fewer {
			if b.probe.fewer = few != ""; b.probe.fewer {
				p.log.Warn().Str("worker", b.Name()).Str("problem", few).Msg("not all models of the worker are served")
			}
		}
		if b.ProbeOK(now) {
			p.log.Info().Str("worker", b.Name()).Str("engine", b.probe.engine).Str("version", b.probe.version).Msg("worker is up")
		}
		return
	}
	if upstream.IsShort(err) { // a worker that could not be asked is as it was
		p.descriptors.noteShort(&p.descriptors.shortDialling)
		return
	}
	if isRefused(err) {
		b.life.Add(1)
	}
	if b.ProbeFailed(now, err.Error(), isRefused(err)) {
		p.log.Warn().Str("worker", b.Name()).Str("problem", err.Error()).Msg("worker is down")
	}
}

// ask asks once whether the worker is well, and from time to time what it serves.
func (b *backend) ask(ctx context.Context, asked *time.Time) error {
	if !b.probe.noHealth {
		status, _, err := b.get(ctx, "/health")
		switch {
		case err != nil:
			return err
		case status == http.StatusNotFound:
			b.probe.noHealth = true
		case status != http.StatusOK:
			return fmt.Errorf("/health answers %d", status)
		}
	}
	if !b.probe.noHealth && time.Since(*asked) < modelsEvery {
		return nil
	}
	if err := b.askModels(ctx); err != nil {
		return err
	}
	*asked = time.Now()
	return nil
}

// askModels asks what the worker serves and what engine it is.
func (b *backend) askModels(ctx context.Context) error {
	status, body, err := b.get(ctx, "/v1/models")
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		if len(b.settings.Models) > 0 && status == http.StatusNotFound {
			return nil // the configuration says what it serves
		}
		return refusedModels(status)
	}
	var list struct {
		Data []struct {
			ID          string `json:"id"`
			OwnedBy     string `json:"owned_by"`
			Root        any    `json:"root"` // a string, or what must not spoil the rest
			Parent      any    `json:"parent"`
			MaxModelLen int    `json:"max_model_len"`
			Meta        struct {
				Context int `json:"n_ctx_train"` // llama.cpp
			} `json:"meta"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return fmt.Errorf("cannot read /v1/models: %w", err)
	}
	models := named(b.settings.Models)
	place := make(map[string]int, len(models)) // in models
	for i := range models {
		place[models[i].Name] = i
	}
	owner, leftOut := "", 0
	var served []servedModel
	b.probe.listed = b.probe.listed[:0]
	for i := range list.Data {
		m := &list.Data[i]
		at, known := place[m.ID]
		if most := maxListed + len(b.settings.Models); len(served) >= most || !known && len(served) >= maxListed {
			leftOut++
			continue
		}
		owner = m.OwnedBy
		b.probe.listed = append(b.probe.listed, m.ID)
		root, _ := m.Root.(string)
		parent, _ := m.Parent.(string)
		served = append(served, servedModel{m.ID, root, parent})
		length := max(m.MaxModelLen, 0)
		switch {
		case known:
			models[at].MaxModelLen = length
		case len(b.settings.Models) == 0 && m.ID != "" && len(m.ID) <= 256 && isPrintable([]byte(m.ID)):
			place[m.ID] = len(models)
			models = append(models, kvroute.Model{Name: m.ID, MaxModelLen: length})
		}
	}
	if len(b.settings.Models) > 0 {
		leftOut = 0 // others were never wanted
	}
	b.leftOut.Store(int32(leftOut)) // a reply has room for a million
	err = b.askEngine(ctx, owner)
	if old := b.discovered.Swap(&discovery{b.probe.engine, served}); old == nil || !slices.Equal(old.models, served) {
		b.probe.news = true
	}
	b.SetHelped(computesNoPrompts(b.engine()))
	b.SetModels(models) // from here on it is asked
	return err
}

func refusedModels(status int) error {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("/v1/models answers %d: the worker wants a key, set its key_file or headers", status)
	case http.StatusNotFound:
		return fmt.Errorf("/v1/models answers %d: this is no OpenAI server, or its url lacks the base path; else set its models", status)
	}
	return fmt.Errorf("/v1/models answers %d", status)
}

// askEngine finds the engine out by the owner that it gives its models.
func (b *backend) askEngine(ctx context.Context, owner string) error {
	b.probe.engine = b.settings.Engine
	if b.probe.engine == "" {
		b.probe.engine = engineOf(owner)
	}
	if b.probe.engine == "sglang" && b.Role() == kvroute.Prefill {
		if err := b.askBootstrap(ctx); err != nil {
			return err
		}
	}
	status, body, err := b.get(ctx, "/version")
	if err != nil {
		return err
	}
	var v struct {
		Version string `json:"version"`
	}
	if status == http.StatusOK && json.Unmarshal(body, &v) == nil {
		b.probe.version = v.Version
	}
	return nil
}

// askBootstrap asks an SGLang prefill worker where its bootstrap server is.
func (b *backend) askBootstrap(ctx context.Context) error {
	status, body, err := b.get(ctx, "/get_server_info")
	if err != nil {
		return err
	}
	if status == http.StatusOK {
		b.readServerInfo(body)
	}
	return nil
}

func (b *backend) readServerInfo(body []byte) {
	var info struct {
		Port int32 `json:"disaggregation_bootstrap_port"`
	}
	if json.Unmarshal(body, &info) == nil && info.Port > 0 && info.Port < 1<<16 {
		b.bootstrap.Store(info.Port)
	}
}

func engineOf(owner string) string {
	owner = strings.ToLower(owner)
	switch {
	case strings.Contains(owner, "vllm"):
		return "vllm"
	case strings.Contains(owner, "sglang"):
		return "sglang"
	case strings.Contains(owner, "tensorrt"):
		return "trtllm"
	default:
		return "openai"
	}
}

// get asks the worker for a path below its base path, by the same means as
// requests go: the same connections, clocks and strictness.
func (b *backend) get(ctx context.Context, path string) (status int, body []byte, err error) {
	return b.question(&question{ctx: ctx, path: path, within: probeTimeout, limit: probeBody})
}

// post is get with a JSON body, and clock and bound of its own.
func (b *backend) post(ctx context.Context, path string, body []byte, within time.Duration, limit int) (status int, reply []byte, err error) {
	return b.question(&question{ctx: ctx, path: path, body: body, within: within, limit: limit})
}

func (b *backend) question(by *question) (status int, body []byte, err error) {
	by.of = b
	var c upstream.Call
	defer func() { c.Finish(by) }()
	err = c.Open(by, b.conns, upstream.Timeouts{FirstByte: by.within, Idle: by.within})
	if err == nil {
		// Only here is EOF a right end: from open it is a worker that hung up.
		if err = c.Hold(by.limit); errors.Is(err, io.EOF) {
			err = nil
		}
	}
	switch {
	case errors.Is(err, upstream.ErrFirstByte) || errors.Is(err, upstream.ErrIdle):
		return 0, nil, fmt.Errorf("%s is not answered within %v", by.path, by.within)
	case err != nil:
		return 0, nil, fmt.Errorf("cannot ask %s: %w", by.path, err)
	}
	return c.Head.Status, bytes.Clone(c.Payload()), nil
}

// A question is a GET of our own, or a POST where it has a body, asked for as
// long as its context lives.
type question struct {
	of     *backend
	ctx    context.Context
	path   string
	body   []byte
	within time.Duration // to its first byte, and between two reads after
	limit  int           // bytes that are read of the reply
	stop   func() bool
}

// Request is upstream.Asker.
func (q *question) Request() net.Buffers {
	b := q.of
	head := " " + b.base + q.path + " HTTP/1.1\r\nHost: " + b.host + "\r\nUser-Agent: kvasir\r\n" + string(b.fixed)
	if q.body == nil {
		return net.Buffers{[]byte("GET" + head + "\r\n")}
	}
	head += "Content-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(q.body)) + "\r\n\r\n"
	return net.Buffers{[]byte("POST" + head), q.body}
}

// Bind is upstream.Holder.
func (q *question) Bind(c io.Closer) bool {
	q.stop = context.AfterFunc(q.ctx, func() { _ = c.Close() })
	return q.ctx.Err() == nil
}

// Unbind is upstream.Holder.
func (q *question) Unbind() bool { return q.stop == nil || q.stop() }

// A CheckResult is what asking one worker of a configuration gave.
type CheckResult struct {
	Worker string
	What   string // engine, version and models, when it answered
	Err    error
}

// CheckWorkers asks every worker of the settings once, all at the same time:
// one that is silent must not use up the time of the others.
func CheckWorkers(ctx context.Context, s *Settings) []CheckResult {
	results := make([]CheckResult, len(s.Workers))
	var asking sync.WaitGroup
	for i, w := range s.Workers {
		asking.Go(func() { results[i] = checkWorker(ctx, w, s.Timeouts) })
	}
	asking.Wait()
	return results
}

func checkWorker(ctx context.Context, w Worker, t Timeouts) CheckResult {
	r := CheckResult{Worker: w.Name}
	b, err := newBackend(w, t)
	if err != nil {
		r.Err = err
		return r
	}
	defer b.conns.CloseIdle()
	var asked time.Time
	if r.Err = b.ask(ctx, &asked); r.Err != nil {
		return r
	}
	r.What = b.describe()
	return r
}

// describe tells what asking the worker has found.
func (b *backend) describe() string {
	what := b.probe.engine
	if b.probe.version != "" {
		what += " " + b.probe.version
	}
	models, _ := b.Models()
	var names, unlisted []string
	for _, m := range models {
		names = append(names, m.Name)
		if !slices.Contains(b.probe.listed, m.Name) {
			unlisted = append(unlisted, m.Name)
		}
	}
	switch {
	case len(names) == 0:
		return what + ", but it serves no model"
	case len(unlisted) > 0:
		return fmt.Sprintf("%s, models: %s; but its /v1/models does not list %s, only %s",
			what, strings.Join(names, ", "), strings.Join(unlisted, ", "), strings.Join(b.probe.listed, ", "))
	}
	return what + ", models: " + strings.Join(names, ", ")
}

// listsTooMany is why not all models of the worker are served; "": they are.
func (b *backend) listsTooMany() string {
	n := b.leftOut.Load()
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("worker %q lists %d models; the first %d are served: name those that are wanted in workers[].models", b.Name(), maxListed+int(n), maxListed)
}

// usable says whether requests are sent to a worker in this state.
func usable(s kvroute.State) bool { return s <= kvroute.Busy }

// isRefused says that nobody listens there at all.
func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
