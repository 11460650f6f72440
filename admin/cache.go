// The semantic cache: its state, one entry, and dropping wrong entries.

package admin

import (
	"cmp"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"

	"kvasir/apidoc"
	"kvasir/cache"
	"kvasir/openai"
	"kvasir/openai/answer"
	"kvasir/proxy/respond"
)

// A cacheStore serves the cache's routes.
type cacheStore struct {
	now func() *cache.Cache // the cache in use; nil: off
	log zerolog.Logger
}

// cacheRoutes adds GET and DELETE of /cache and /cache/{id}.
func cacheRoutes(r *apidoc.Routes, s *cacheStore) {
	r.Add(apidoc.Operation{Method: "GET", Path: "/cache", Does: "How the cache does", Group: "cache", Answers: apidoc.Of[cacheStatsAnswer]()}, s.with(cacheStats))
	r.Add(apidoc.Operation{Method: "DELETE", Path: "/cache", Does: "Drop the entries that meet every condition", Group: "cache", Headers: changes,
		Query:   []apidoc.Parameter{{Name: "tenant", Does: "whose they are"}, {Name: "model", Does: "that answered"}, {Name: "scope", Does: "as GET /cache/{id} shows it"}, {Name: "all", Does: "true: every entry, alone"}},
		Answers: apidoc.Of[droppedAnswer]()}, changing(s.with(s.dropMatching)))
	r.Add(apidoc.Operation{Method: "GET", Path: "/cache/{id}", Does: "One entry: its question, and the beginning of its answer", Group: "cache", Answers: apidoc.Of[cacheEntryAnswer]()}, s.with(cacheEntry))
	r.Add(apidoc.Operation{Method: "DELETE", Path: "/cache/{id}", Does: "Drop one entry", Group: "cache", Headers: changes, Answers: apidoc.Of[droppedAnswer]()}, changing(s.with(s.dropEntry)))
}

// with calls do with the cache and writes its result.
func (s *cacheStore) with(do func(*fasthttp.RequestCtx, *cache.Cache) (any, *openai.Error)) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		c := s.now()
		if c == nil {
			respond.Error(ctx, &openai.Error{Status: 404, Type: "invalid_request_error", Code: "cache_off", Message: "There is no cache: cache.store is off"})
			return
		}
		out, refused := do(ctx, c)
		respond.JSON(ctx, out, refused, "\n")
	}
}

type cacheStatsAnswer struct {
	Entries int64  `json:"entries"` // -1: unknown
	Bytes   int64  `json:"bytes"`
	Stored  uint64 `json:"stored"`
	Evicted uint64 `json:"evicted"`
	Expired uint64 `json:"expired"`
	Deleted uint64 `json:"deleted"`
	Dropped uint64 `json:"dropped"`
	Failed  uint64 `json:"failed"`
	Corrupt uint64 `json:"corrupt"`
	Breaker string `json:"breaker,omitempty"`
	Problem string `json:"problem,omitempty"`
}

func cacheStats(_ *fasthttp.RequestCtx, c *cache.Cache) (any, *openai.Error) {
	return cacheStatsAnswer(c.Stats()), nil
}

type droppedAnswer struct {
	Deleted int `json:"deleted"`
}

// dropMatching drops all entries that meet every condition. Without a condition that would be all
// entries, so then all=true is required.
func (s *cacheStore) dropMatching(ctx *fasthttp.RequestCtx, c *cache.Cache) (any, *openai.Error) {
	filter, refused := filterOf(ctx.QueryArgs())
	if refused != nil {
		return nil, refused
	}
	return s.drop(c, filter)
}

// filterOf reads the conditions. It refuses an unknown one: ignoring it would drop more entries
// than intended.
func filterOf(args *fasthttp.Args) (f cache.Filter, refused *openai.Error) {
	all, conditions := false, 0
	seen := map[string]bool{}
	for k, v := range args.All() {
		name, value := string(k), string(v)
		if seen[name] {
			return f, openai.Invalid(name, "`%s` is given twice", openai.Clip(name))
		}
		seen[name] = true
		conditions++
		switch name {
		case "tenant":
			f.Tenant = &value
		case "model":
			f.Model = &value
		case "scope":
			scope, err := cache.ParseScope(value)
			if err != nil {
				return f, openai.Invalid("scope", "Invalid 'scope': %v", err)
			}
			f.Scope = &scope
		case "all":
			if all = value == "true"; !all {
				return f, openai.Invalid("all", "Invalid 'all': expected true, or leave it out")
			}
		default:
			return f, openai.Invalid(openai.Clip(name), "`%s` is no condition; the conditions are tenant, model and scope", openai.Clip(name))
		}
	}
	switch {
	case conditions == 0:
		return f, openai.Invalid("", "Say which entries are to be dropped: tenant, model or scope, or all=true")
	case conditions == 1 && f.Tenant != nil && *f.Tenant == "":
		return f, openai.Invalid("tenant", "`tenant` is empty: without keys that is every entry. Name one, add model or scope, or say all=true")
	case all && conditions > 1:
		return f, openai.Invalid("all", "`all` goes with no other condition")
	}
	return f, nil
}

func (s *cacheStore) drop(c *cache.Cache, f cache.Filter) (any, *openai.Error) {
	n, err := c.Delete(f)
	if err != nil {
		refused := storeFailed(c, err)
		if n > 0 {
			refused.Message += ". " + strconv.Itoa(n) + " entries were dropped and may come back with the next start: drop them again"
		}
		return nil, refused
	}
	s.log.Info().Int("entries", n).Msg("entries dropped from the cache")
	return droppedAnswer{n}, nil
}

// storeFailed returns the error for a failed store, with the store's own problem if it is known.
func storeFailed(c *cache.Cache, err error) *openai.Error {
	why := cmp.Or(c.Stats().Problem, err.Error())
	return &openai.Error{Status: 503, Type: "server_error", Code: "cache_unavailable", Message: "The cache's store failed: " + why}
}

func (s *cacheStore) dropEntry(ctx *fasthttp.RequestCtx, c *cache.Cache) (any, *openai.Error) {
	id, refused := idOf(ctx)
	if refused != nil {
		return nil, refused
	}
	out, refused := s.drop(c, cache.Filter{ID: &id})
	if refused == nil && out == any(droppedAnswer{}) {
		return nil, noEntry(id)
	}
	return out, refused
}

func idOf(ctx *fasthttp.RequestCtx) (cache.ID, *openai.Error) {
	text, _ := ctx.UserValue("id").(string)
	id, err := cache.ParseID(text)
	if err != nil {
		return 0, openai.Invalid("id", "Invalid id: %v; x-kvasir-cache-entry names it", err)
	}
	return id, nil
}

func noEntry(id cache.ID) *openai.Error {
	return &openai.Error{
		Status: 404, Type: "invalid_request_error", Code: "entry_not_found", Param: "id",
		Message: "There is no entry " + id.String() + ": it never was, has expired, or made room for another",
	}
}

type cacheEntryAnswer struct {
	ID       string `json:"id"`
	Scope    string `json:"scope"`
	Tenant   string `json:"tenant"`
	Model    string `json:"model"`
	Age      int64  `json:"age_s"`
	Expires  int64  `json:"expires_in_s"`
	Question string `json:"question"`
	Preview  string `json:"answer_preview"` // the beginning of the answer
	Bytes    int    `json:"answer_bytes"`
}

// previewLimit is how many bytes of an answer are shown.
const previewLimit = 500

// cacheEntry shows an entry to an operator who inspects a hit: the question, and the beginning of
// the answer.
func cacheEntry(ctx *fasthttp.RequestCtx, c *cache.Cache) (any, *openai.Error) {
	id, refused := idOf(ctx)
	if refused != nil {
		return nil, refused
	}
	e, err := c.Get(id)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil, &openai.Error{Status: 501, Type: "invalid_request_error", Message: "This store does not show single entries; they can be dropped by their id"}
	case err != nil:
		return nil, storeFailed(c, err)
	case e == nil:
		return nil, noEntry(id)
	}
	out := &cacheEntryAnswer{
		ID: e.ID.String(), Scope: e.Scope.String(), Tenant: e.Tenant, Model: e.Model, Question: e.Text, Bytes: len(e.Answer),
		Age: int64(time.Since(e.Created).Seconds()), Expires: int64(time.Until(e.Expires).Seconds()),
	}
	if kept, err := answer.Parse(e.Answer); err == nil {
		out.Preview = strings.ToValidUTF8(string(kept.Text[:min(len(kept.Text), previewLimit)]), "")
	}
	return out, nil
}
