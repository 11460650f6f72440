// The library: the tokenizers and templates of all models, each read once.

package prompt

import (
	"fmt"
	"path/filepath"
	"sync"
)

// Options bounds what a library holds.
type Options struct {
	HubCache   string // Hugging Face's cache; "": $HF_HUB_CACHE, $HF_HOME/hub or ~/.cache/huggingface/hub
	CacheBytes int    // of conversations that were seen, over all models; 0: 64 MiB
}

// Library holds the tokenizers and templates of models. Its methods may be called by many goroutines.
type Library struct {
	hub   string
	cache *prefixCache

	mu     sync.Mutex
	models map[string]*Model   // guarded by mu
	read   map[string]*reading // by directory; guarded by mu
}

// reading is what became of a directory.
type reading struct {
	stamp stamp
	files *files
	err   error
}

// NewLibrary returns an empty library.
func NewLibrary(o Options) *Library {
	if o.HubCache == "" {
		o.HubCache = hubCache()
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 64 << 20
	}
	return &Library{hub: o.HubCache, cache: newPrefixCache(o.CacheBytes), models: map[string]*Model{}, read: map[string]*reading{}}
}

// Model finds the source of the tokens of a model. setting is
//
//	auto    the directory or the entry of Hugging Face's cache that hints.Root names, else the worker's
//	        own route; "" is auto
//	worker  the worker's own route
//	none    ErrNone
//	a path  a directory with tokenizer.json, and chat_template.jinja or tokenizer_config.json
//
// Where a directory cannot be used the worker's route comes next, and Model.Trouble says why; without
// one it is an error. The same files are read once, and again when they have changed: call it again
// with new hints, or from time to time, but not for each request.
func (l *Library) Model(name, setting string, hints Hints) (*Model, error) {
	dir, source := l.place(setting, &hints, name)
	var f *files
	var trouble error
	if dir != "" {
		f, trouble = l.files(dir)
	}
	if f == nil && (hints.Ask == nil || setting == "none") {
		if trouble != nil {
			return nil, trouble
		}
		return nil, fmt.Errorf("model %q: %w", name, ErrNone)
	}
	if f == nil {
		source = "the worker's own route"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.models[name]; m != nil && m.files == f && m.engine == hints.Engine && (m.ask == nil) == (hints.Ask == nil) && m.source == source && alike(m.trouble, trouble) {
		return m, nil
	}
	m := &Model{name: name, source: source, files: f, trouble: trouble, ask: hints.Ask, engine: hints.Engine, cache: l.cache}
	l.models[name] = m
	l.forget()
	return m, nil
}

// alike says whether both are nothing, or the same trouble: files may be put right in one thing, and wrong in another.
func alike(a, b error) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Error() == b.Error()
}

// Drop forgets a model that is no longer configured.
func (l *Library) Drop(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.models, name)
	l.forget()
}

// place is the directory to read, if any.
func (l *Library) place(setting string, hints *Hints, name string) (dir, source string) {
	switch setting {
	case "none", "worker":
		return "", ""
	case "", "auto":
	default:
		return filepath.Clean(setting), "directory " + setting
	}
	root := hints.Root
	if root == "" {
		root = name
	}
	if filepath.IsAbs(root) {
		if holds(root) {
			return filepath.Clean(root), "directory " + root
		}
		return "", ""
	}
	if dir := hubDir(l.hub, root); dir != "" && holds(dir) {
		return dir, "Hugging Face cache, " + root
	}
	return "", ""
}

// files reads a directory, or knows what became of it.
func (l *Library) files(dir string) (*files, error) {
	s := stampOf(dir)
	l.mu.Lock()
	known := l.read[dir]
	l.mu.Unlock()
	if known != nil && known.stamp == s {
		return known.files, known.err
	}
	f, err := readFiles(dir, s)
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.read[dir]; known != nil && known.stamp == s { // another was faster
		return known.files, known.err
	}
	l.read[dir] = &reading{s, f, err}
	return f, err
}

// maxFailed bounds the directories that are remembered because they could not be read.
const maxFailed = 1000

// forget drops files that no model uses. mu is held.
func (l *Library) forget() {
	used := map[*files]bool{}
	for _, m := range l.models {
		used[m.files] = true
	}
	for dir, r := range l.read {
		if r.files != nil && !used[r.files] || r.files == nil && len(l.read) > maxFailed {
			delete(l.read, dir)
		}
	}
}
