// What a worker serves, and what engine it is, by its own word.

package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"kvasir/kvroute"
)

// maxListed bounds the models that are taken from one worker's list. Those that its
// configuration names are not counted.
const maxListed = 1000

// named returns models of which only the names are known.
func named(names []string) []kvroute.Model {
	models := make([]kvroute.Model, len(names))
	for i, name := range names {
		models[i].Name = name
	}
	return models
}

// askModels asks what the worker serves and what engine it is.
func (t *watch) askModels(ctx context.Context) error {
	w := t.w
	status, body, err := w.get(ctx, "/v1/models")
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		if len(w.Settings.Models) > 0 && status == http.StatusNotFound {
			return nil // it has no list, and needs none
		}
		return refusedModels(status)
	}
	var list struct {
		Data []struct {
			ID          string `json:"id"`
			OwnedBy     string `json:"owned_by"`
			Root        any    `json:"root"` // a string; of another type in some servers, which must not spoil the rest
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
	models := named(w.Settings.Models)
	place := make(map[string]int, len(models)) // by name: the index in models
	for i := range models {
		place[models[i].Name] = i
	}
	owner, leftOut := "", 0
	var listed []Listed
	t.listed = t.listed[:0]
	for i := range list.Data {
		m := &list.Data[i]
		at, known := place[m.ID]
		if most := maxListed + len(w.Settings.Models); len(listed) >= most || !known && len(listed) >= maxListed {
			leftOut++
			continue
		}
		owner = m.OwnedBy
		t.listed = append(t.listed, m.ID)
		root, _ := m.Root.(string)
		parent, _ := m.Parent.(string)
		listed = append(listed, Listed{m.ID, root, parent})
		length := max(m.MaxModelLen, 0)
		switch {
		case known:
			models[at].MaxModelLen = length
		case len(w.Settings.Models) == 0 && isName(m.ID):
			place[m.ID] = len(models)
			models = append(models, kvroute.Model{Name: m.ID, MaxModelLen: length})
		}
	}
	if len(w.Settings.Models) > 0 {
		leftOut = 0 // the configuration wants no others
	}
	w.leftOut.Store(int32(leftOut)) // it fits: a reply has room for a million at most
	err = t.askEngine(ctx, owner)
	if old := w.found.Swap(&findings{t.dialect, listed}); old == nil || !slices.Equal(old.models, listed) {
		t.news = true
	}
	w.SetNeedsPrefill(w.dialect().needsPrefill)
	w.SetModels(models) // from here on requests are sent to it
	return err
}

// isName says whether a listed name is fit for headers, logs and metrics, where the
// names of models go. Models with other names are not served.
func isName(id string) bool {
	return id != "" && len(id) <= 256 && !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r >= 0x7f })
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

// askEngine finds out what engine the worker is: the configured one, or the one that
// names itself as the owner of the models. Then it asks what else the engine's row
// wants to know, and the version, which only people read.
func (t *watch) askEngine(ctx context.Context, owner string) error {
	if t.dialect = t.w.named; t.dialect == nil {
		t.dialect = recognise(owner)
	}
	if meet := t.dialect.meet; meet != nil {
		if err := meet(ctx, t.w); err != nil {
			return err
		}
	}
	status, body, err := t.w.get(ctx, "/version")
	if err != nil {
		return err
	}
	var v struct {
		Version string `json:"version"`
	}
	if status == http.StatusOK && json.Unmarshal(body, &v) == nil {
		t.version = v.Version
	}
	return nil
}

// ListsTooMany says why not all models that the worker lists are served; "": all are.
func (w *Worker) ListsTooMany() string {
	n := w.leftOut.Load()
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("worker %q lists %d models; the first %d are served: name those that are wanted in workers[].models", w.Name(), maxListed+int(n), maxListed)
}

// A CheckResult is what asking one worker of a configuration gave.
type CheckResult struct {
	Worker string
	Source string // of discovery, that found it; "": the configuration names it
	What   string // engine, version and models, when it answered
	Models []string
	Err    error
}

// Check asks every worker once, and all at the same time, so that a silent one uses up
// none of the others' time. The results are in the order of the workers.
func Check(ctx context.Context, workers []Settings, t Timeouts) []CheckResult {
	results := make([]CheckResult, len(workers))
	var asking sync.WaitGroup
	for i, s := range workers {
		asking.Go(func() { results[i] = checkOne(ctx, s, t) })
	}
	asking.Wait()
	return results
}

func checkOne(ctx context.Context, s Settings, t Timeouts) CheckResult {
	r := CheckResult{Worker: s.Name, Source: s.Source}
	w, err := NewWorker(s, t)
	if err != nil {
		r.Err = err
		return r
	}
	defer w.Conns.CloseIdle()
	asking := newWatch(w, nil)
	if r.Err = asking.ask(ctx); r.Err != nil {
		return r
	}
	r.What = asking.describe()
	models, _ := w.Models()
	for _, m := range models {
		r.Models = append(r.Models, m.Name)
	}
	return r
}

// describe says in one line what the worker has answered: its engine, version and models.
func (t *watch) describe() string {
	what := t.dialect.name
	if t.version != "" {
		what += " " + t.version
	}
	models, _ := t.w.Models()
	var names, unlisted []string
	for _, m := range models {
		names = append(names, m.Name)
		if !slices.Contains(t.listed, m.Name) {
			unlisted = append(unlisted, m.Name)
		}
	}
	switch {
	case len(names) == 0:
		return what + ", but it serves no model"
	case len(unlisted) > 0:
		return fmt.Sprintf("%s, models: %s; but its /v1/models does not list %s, only %s",
			what, strings.Join(names, ", "), strings.Join(unlisted, ", "), strings.Join(t.listed, ", "))
	}
	return what + ", models: " + strings.Join(names, ", ")
}
