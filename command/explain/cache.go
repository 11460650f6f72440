// What explain finds in the cache: the verdict that a request would get.

package explain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"kvasir/cache"
	"kvasir/cache/embedded"
	"kvasir/classify"
	"kvasir/command/wiring"
	"kvasir/config"
)

// A cacheFound is the nearest entry and whether it would answer.
type cacheFound struct {
	Hit        bool    `json:"hit"`
	Exact      bool    `json:"exact"`
	Entry      string  `json:"entry,omitempty"`
	Question   string  `json:"question,omitempty"`
	Similarity float64 `json:"similarity"`
	Score      float64 `json:"score"`
	Why        string  `json:"why,omitempty"`
	AgeSeconds float64 `json:"age_s,omitempty"`
}

// storeWithin bounds waiting for a Milvus.
const storeWithin = 10 * time.Second

// maxLookedFile is how large a cache file may be to be copied for a look, in bytes.
const maxLookedFile = 1 << 30

// look asks the store that the configuration names: Milvus, or a copy of the
// file, since a running Kvasir has the file itself open. Entries that are only in
// the memory of a running Kvasir cannot be seen.
func (a *cacheAsked) look(g *config.Generation, ask *cacheQuestion) {
	if a.Lookup == "none" {
		return
	}
	store, done, err := lookStore(g)
	if err != nil {
		a.None = err.Error()
		return
	}
	defer done()
	c, err := wiring.Cache(&g.Config.Cache, store)
	if err != nil {
		a.None = err.Error()
		return
	}
	q := &cache.Query{Scope: ask.scope, Text: ask.text, Threshold: a.Threshold, MaxAge: -1}
	if a.Lookup == "semantic" {
		q.Embed = func(dst *[cache.Dim]float32) bool { return ask.classifier.Embed(dst, cache.Unshouted(q.Text)) }
	}
	r := c.Lookup(q)
	if r.Err != nil {
		a.None = r.Err.Error()
		return
	}
	a.Found = &cacheFound{Hit: r.Hit, Exact: r.Exact, Similarity: round(r.Similarity), Score: round(r.Score), Why: r.Why}
	if r.Entry != nil {
		a.Found.Entry, a.Found.Question, a.Found.AgeSeconds = r.Entry.ID.String(), r.Entry.Text, r.Age.Round(time.Second).Seconds()
	}
}

// A cacheQuestion is what is looked up.
type cacheQuestion struct {
	scope      cache.Scope
	text       []byte
	classifier *classify.Classifier
}

// lookStore opens what there is to look into; done closes it.
func lookStore(g *config.Generation) (store cache.Store, done func(), err error) {
	c := &g.Config.Cache
	if c.Store == "milvus" {
		s, err := wiring.OpenStore(zerolog.Nop(), g)
		if err != nil {
			return nil, nil, err
		}
		ctx, cancel := context.WithTimeout(context.Background(), storeWithin)
		defer cancel()
		if err := wiring.Connected(ctx, s); err != nil {
			_ = s.Close()
			return nil, nil, err
		}
		return s, func() { _ = s.Close() }, nil
	}
	if c.Path == "" {
		return nil, nil, errors.New("its entries are in the memory of the process that serves: see GET /cache there")
	}
	version, err := wiring.EmbeddingVersion(g.Config)
	if err != nil {
		return nil, nil, err
	}
	folder, err := os.MkdirTemp("", "kvasir-explain-")
	if err != nil {
		return nil, nil, err
	}
	clean := func() { _ = os.RemoveAll(folder) }
	path := filepath.Join(folder, "cache")
	if err := copyFile(path, string(c.Path)); err != nil {
		clean()
		return nil, nil, err
	}
	s, err := embedded.Open(embedded.Options{Path: path, Embedding: version, MaxEntries: c.MaxEntries, MaxBytes: int64(c.MaxBytes)})
	if err != nil {
		clean()
		return nil, nil, err
	}
	return s, func() { _ = s.Close(); clean() }, nil
}

// copyFile copies a cache file, which may be written to meanwhile: an incomplete
// record at its end is cut off when the copy is opened.
func copyFile(to, from string) error {
	in, err := os.Open(from)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no file %q yet", from)
	case err != nil:
		return fmt.Errorf("cannot read the cache: %w", err)
	}
	defer in.Close()
	if info, err := in.Stat(); err == nil && info.Size() > maxLookedFile {
		return fmt.Errorf("the file is larger than %s", config.Size(maxLookedFile))
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cannot copy the cache: %w", err)
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("cannot copy the cache: %w", err)
	}
	return nil
}
