// Package storetest tests what every cache.Store must do.
//
//	func TestStore(t *testing.T) { storetest.Run(t, open) }
//
// A store may make entries findable only after a while, so the tests wait for that.
package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"kvasir/cache"
)

// Run runs all tests, each on a store of its own: empty, with room for some thousand entries.
// open must arrange that it is closed.
func Run(t *testing.T, open func(t *testing.T) cache.Store) {
	t.Helper()
	for _, row := range []struct {
		name string
		test func(f *fixture)
	}{
		{"finds the equal text of the scope", (*fixture).equalText},
		{"returns what was put", (*fixture).wholeEntry},
		{"orders the nearest", (*fixture).order},
		{"keeps to the floor", (*fixture).floor},
		{"appends at most k", (*fixture).atMostK},
		{"finds an entry without a vector by its text alone", (*fixture).noVector},
		{"never crosses a scope", (*fixture).scopes},
		{"replaces the entry with the same text", (*fixture).replace},
		{"returns nothing that has expired", (*fixture).expiry},
		{"deletes what a filter names", (*fixture).filters},
		{"deletes all", (*fixture).deleteAll},
		{"takes odd texts", (*fixture).oddTexts},
		{"takes large answers", (*fixture).largeAnswers},
		{"is used by many at once", (*fixture).concurrent},
		{"counts", (*fixture).counts},
		{"ends", (*fixture).ends},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.test(&fixture{t, open(t)})
		})
	}
}

// patience is how long a store may take until a new entry is found.
const patience = 30 * time.Second

// A fixture is one store under test.
type fixture struct {
	*testing.T
	store cache.Store
}

// eventually waits until the condition holds.
func (f *fixture) eventually(what string, holds func() bool) {
	f.Helper()
	wait := time.Millisecond
	for end := time.Now().Add(patience); !holds(); wait = min(2*wait, 100*time.Millisecond) {
		if time.Now().After(end) {
			f.Fatalf("after %v still not: %s", patience, what)
		}
		<-time.After(wait)
	}
}

// entry returns an entry that expires in an hour.
func entry(scope byte, text, answer string) *cache.Entry {
	now := time.Now()
	return &cache.Entry{
		ID: cache.NewID(), Scope: cache.Scope{scope}, Tenant: "tenant", Model: "model",
		Text: text, Answer: []byte(answer), Created: now, Expires: now.Add(time.Hour),
	}
}

// put puts an entry, and retries while the store's queue is full.
func (f *fixture) put(e *cache.Entry, vector *[cache.Dim]float32) {
	f.Helper()
	var err error
	f.eventually("the store takes an entry", func() bool {
		err = f.store.Put(e, vector)
		return !errors.Is(err, cache.ErrFull)
	})
	if err != nil {
		f.Fatalf("cannot put %.40q: %v", e.Text, err)
	}
}

func (f *fixture) equal(scope cache.Scope, text string) *cache.Entry {
	f.Helper()
	e, err := f.store.Equal(scope, []byte(text), time.Time{})
	if err != nil {
		f.Fatalf("cannot look up %.40q: %v", text, err)
	}
	return e
}

func (f *fixture) nearest(scope cache.Scope, vector *[cache.Dim]float32, k int, floor float64) []cache.Candidate {
	f.Helper()
	found, err := f.store.Nearest(nil, scope, vector, k, floor, time.Time{})
	if err != nil {
		f.Fatalf("cannot look up the nearest: %v", err)
	}
	return found
}

// found waits until an entry is found by its text.
func (f *fixture) found(e *cache.Entry) {
	f.Helper()
	f.eventually(fmt.Sprintf("%.40q is found", e.Text), func() bool {
		got := f.equal(e.Scope, e.Text)
		return got != nil && got.ID == e.ID
	})
}

// gone waits until an entry is no longer found.
func (f *fixture) gone(e *cache.Entry) {
	f.Helper()
	f.eventually(fmt.Sprintf("%.40q is gone", e.Text), func() bool {
		got := f.equal(e.Scope, e.Text)
		return got == nil || got.ID != e.ID
	})
}

// at returns the vector of length 1 whose cosine with axis 0 is similarity; the rest of it lies
// along the given axis.
func at(similarity float64, axis int) *[cache.Dim]float32 {
	v := new([cache.Dim]float32)
	v[0] = float32(similarity)
	v[axis] = float32(math.Sqrt(1 - similarity*similarity))
	return v
}

func random(rng *rand.Rand) *[cache.Dim]float32 {
	v, norm := new([cache.Dim]float32), 0.0
	for i := range v {
		v[i] = float32(rng.NormFloat64())
		norm += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(norm))
	}
	return v
}

func (f *fixture) equalText() {
	kept := entry(1, "What is a capital?", "a city")
	f.put(kept, at(1, 1))
	f.found(kept)
	for _, other := range []string{"", "What is a capital", "what is a capital?", "What is a capital? ", "What is a capital?\x00"} {
		if e := f.equal(kept.Scope, other); e != nil {
			f.Errorf("%q finds %q", other, e.Text)
		}
	}
	if e := f.equal(cache.Scope{2}, kept.Text); e != nil {
		f.Errorf("another scope finds %q", e.Text)
	}
}

func (f *fixture) wholeEntry() {
	kept := entry(1, "What is \"a capital\"?\n", "a\x00city\xff\n")
	kept.Tenant, kept.Model = "a 'tenant' == \"x\"", "org/model:latest"
	f.put(kept, at(1, 1))
	f.found(kept)
	f.eventually("the nearest is found", func() bool { return len(f.nearest(kept.Scope, at(1, 1), 1, 0.5)) == 1 })
	for _, got := range []*cache.Entry{f.equal(kept.Scope, kept.Text), f.nearest(kept.Scope, at(1, 1), 1, 0.5)[0].Entry} {
		if got.ID != kept.ID || got.Scope != kept.Scope || got.Tenant != kept.Tenant || got.Model != kept.Model ||
			got.Text != kept.Text || !bytes.Equal(got.Answer, kept.Answer) {
			f.Errorf("got %+v, want %+v", got, kept)
		}
		if d := got.Created.Sub(kept.Created).Abs(); d > 2*time.Second {
			f.Errorf("created %v off", d)
		}
		if d := got.Expires.Sub(kept.Expires).Abs(); d > 2*time.Second {
			f.Errorf("expires %v off", d)
		}
	}
}

// spread puts entries with similarities of 0.99, 0.89, ... to at(1, 1).
func (f *fixture) spread(n int) (texts []string) {
	var last *cache.Entry
	for i := range n {
		last = entry(1, fmt.Sprint("question ", i), "answer")
		texts = append(texts, last.Text)
		f.put(last, at(0.99-float64(i)/10, 2+i))
	}
	f.found(last)
	f.eventually("all are near", func() bool { return len(f.nearest(cache.Scope{1}, at(1, 1), n, -1)) == n })
	return texts
}

func (f *fixture) order() {
	texts := f.spread(8)
	for i, got := range f.nearest(cache.Scope{1}, at(1, 1), 8, -1) {
		if want := 0.99 - float64(i)/10; got.Text != texts[i] || math.Abs(got.Similarity-want) > 1e-3 {
			f.Errorf("place %d: %q of similarity %.4f, want %q of %.4f", i, got.Text, got.Similarity, texts[i], want)
		}
	}
}

func (f *fixture) floor() {
	f.spread(8)
	for floor, want := range map[float64]int{0.995: 0, 0.98: 1, 0.55: 5, 0.2: 8} {
		found := f.nearest(cache.Scope{1}, at(1, 1), 8, floor)
		if len(found) != want {
			f.Errorf("%d are at least %v, want %d", len(found), floor, want)
		}
	}
}

func (f *fixture) atMostK() {
	texts := f.spread(8)
	first := cache.Candidate{Entry: entry(9, "not of the store", ""), Similarity: 0.1}
	found, err := f.store.Nearest([]cache.Candidate{first}, cache.Scope{1}, at(1, 1), 3, 0, time.Time{})
	if err != nil || len(found) != 4 || found[0] != first || found[1].Text != texts[0] || found[3].Text != texts[2] {
		f.Errorf("got %v, %v", found, err)
	}
	if found := f.nearest(cache.Scope{1}, at(1, 1), 0, 0); len(found) != 0 {
		f.Errorf("none were asked for, got %v", found)
	}
}

func (f *fixture) noVector() {
	bare, other := entry(1, "without", "a"), entry(1, "with", "b")
	f.put(bare, nil)
	f.put(other, at(0.9, 1))
	f.found(bare)
	f.found(other)
	f.eventually("one is near", func() bool { return len(f.nearest(cache.Scope{1}, at(1, 1), 8, 0.5)) == 1 })
	if found := f.nearest(cache.Scope{1}, new([cache.Dim]float32), 8, -1); len(found) > 2 {
		f.Errorf("a vector without a length finds %v", found)
	}
	for _, c := range f.nearest(cache.Scope{1}, at(1, 1), 8, -1) {
		if c.ID == bare.ID {
			f.Errorf("it is found by a vector that it does not have, similarity %v", c.Similarity)
		}
	}
}

// scopes puts the same question with the same vector into scopes that differ in one bit, or only
// at their beginning or end.
func (f *fixture) scopes() {
	const n = 2000
	rng := rand.New(rand.NewPCG(1, 2))
	base := cache.Scope{}
	for i := range base {
		base[i] = byte(rng.Uint32())
	}
	seen := map[cache.Scope]*cache.Entry{}
	var last *cache.Entry
	for i := range n {
		scope := base
		if i < 128 {
			scope[i/8] ^= 1 << (i % 8)
		} else {
			for range 1 + rng.IntN(3) {
				scope[rng.IntN(16)] ^= 1 << rng.IntN(8)
			}
		}
		if seen[scope] != nil {
			continue
		}
		e := entry(0, "What is my balance?", fmt.Sprint("of account ", i))
		e.Scope, e.Tenant = scope, fmt.Sprint("tenant ", i)
		seen[scope], last = e, e
		f.put(e, at(1, 1))
	}
	f.found(last)
	for scope, want := range seen {
		f.found(want)
		f.eventually("the scope's entry is near", func() bool { return len(f.nearest(scope, at(1, 1), 8, -1)) > 0 })
		found := f.nearest(scope, at(1, 1), 8, -1)
		if len(found) != 1 || found[0].ID != want.ID || string(found[0].Answer) != string(want.Answer) {
			f.Fatalf("scope %v finds %d entries, want its own alone", scope, len(found))
		}
	}
	if e := f.equal(base, "What is my balance?"); e != nil && seen[base] == nil {
		f.Errorf("a scope without entries finds one of %v", e.Scope)
	}
	if found := f.nearest(base, at(1, 1), 8, -1); len(found) != 0 && seen[base] == nil {
		f.Errorf("a scope without entries finds %v", found)
	}
}

func (f *fixture) replace() {
	before, after := entry(1, "What time is it?", "noon"), entry(1, "What time is it?", "later")
	f.put(before, at(0.9, 1))
	f.found(before)
	f.put(after, at(0.8, 1))
	f.found(after)
	f.eventually("the new one alone is near", func() bool {
		found := f.nearest(cache.Scope{1}, at(1, 2), 8, 0.1)
		return len(found) == 1 && found[0].ID == after.ID && math.Abs(found[0].Similarity-0.8) < 1e-3
	})
}

func (f *fixture) expiry() {
	short, long := entry(1, "short", "a"), entry(1, "long", "b")
	short.Expires = time.Now().Add(2 * time.Second)
	f.put(short, at(0.9, 1))
	f.put(long, at(0.8, 2))
	f.found(long)
	f.eventually("the time is over", func() bool { return time.Now().After(short.Expires) })
	if e := f.equal(cache.Scope{1}, "short"); e != nil {
		f.Errorf("it has expired, but answers")
	}
	f.eventually("the one that lives is near", func() bool { return len(f.nearest(cache.Scope{1}, at(1, 1), 8, 0.1)) > 0 })
	if found := f.nearest(cache.Scope{1}, at(1, 1), 8, 0.1); len(found) != 1 || found[0].ID != long.ID {
		f.Errorf("near are %v", found)
	}
	dead := entry(1, "dead already", "c")
	dead.Expires = time.Now().Add(-time.Second)
	_ = f.store.Put(dead, at(0.95, 3)) // may fail
	if e := f.equal(cache.Scope{1}, "dead already"); e != nil {
		f.Errorf("it never lived, but answers")
	}
}

func (f *fixture) filters() {
	type key struct {
		scope         byte
		tenant, model string
	}
	all := map[key]*cache.Entry{}
	fill := func() {
		for scope := range byte(2) {
			for _, tenant := range []string{"", "a", "b\"'", "a\\"} {
				for _, model := range []string{"m", "m/1"} {
					e := entry(scope, fmt.Sprint(tenant, " ", model), "answer")
					e.Tenant, e.Model = tenant, model
					f.put(e, at(0.9, 1))
					all[key{scope, tenant, model}] = e
				}
			}
		}
		for _, e := range all {
			f.found(e)
		}
	}
	scope, tenant, odd, none, model, id := cache.Scope{1}, "a", "b\"'", "nobody", "m/1", cache.ID(0)
	for _, row := range []struct {
		what   string
		filter cache.Filter
		want   int
	}{
		{"an id", cache.Filter{ID: &id}, 1},
		{"a scope", cache.Filter{Scope: &scope}, 8},
		{"a tenant", cache.Filter{Tenant: &tenant}, 4},
		{"a tenant with quotation marks", cache.Filter{Tenant: &odd}, 4},
		{"nobody", cache.Filter{Tenant: &none}, 0},
		{"a model", cache.Filter{Model: &model}, 8},
		{"a tenant and a model", cache.Filter{Tenant: &tenant, Model: &model}, 2},
		{"a scope and a tenant", cache.Filter{Scope: &scope, Tenant: &tenant}, 2},
		{"all of them", cache.Filter{ID: &id, Scope: &scope, Tenant: &tenant, Model: &model}, 1},
		{"an id of another tenant", cache.Filter{ID: &id, Tenant: &odd}, 0},
	} {
		fill()
		id = all[key{1, "a", "m/1"}].ID
		n, err := f.store.Delete(row.filter)
		if err != nil || n != row.want {
			f.Errorf("%s: deleted %d, %v, want %d", row.what, n, err, row.want)
		}
		for _, e := range all {
			if row.filter.Names(e) {
				f.gone(e)
			} else if got := f.equal(e.Scope, e.Text); got == nil {
				f.Errorf("%s: %v of %q is gone too", row.what, e.Text, e.Tenant)
			}
		}
	}
}

func (f *fixture) deleteAll() {
	for i := range 20 {
		e := entry(byte(i), "question", "answer")
		f.put(e, at(0.9, 1))
		f.found(e)
	}
	if n, err := f.store.Delete(cache.Filter{}); n != 20 || err != nil {
		f.Errorf("deleted %d, %v, want all 20", n, err)
	}
	for i := range 20 {
		f.eventually("it is gone", func() bool { return f.equal(cache.Scope{byte(i)}, "question") == nil })
		f.eventually("it is not near", func() bool { return len(f.nearest(cache.Scope{byte(i)}, at(1, 1), 1, -1)) == 0 })
	}
	again := entry(1, "question", "answer")
	f.put(again, at(0.9, 1))
	f.found(again)
}

func (f *fixture) oddTexts() {
	for i, text := range []string{
		"", "\x00", "a\x00b", "\xff\xfe", "a\xc3", "naive", "na\u00efve", "nai\u0308ve", "\u202eabc", "\U0001F600",
		" ", "\n", "'; DROP", `"`, `\`, `%d {}`, strings.Repeat("long ", 20_000), strings.Repeat("long ", 20_000) + ".",
	} {
		e := entry(1, text, fmt.Sprint("answer ", i))
		err := f.store.Put(e, at(0.9, 1+i))
		if errors.Is(err, cache.ErrTooLarge) && len(text) > 1<<16 {
			continue
		}
		if err != nil {
			f.Errorf("%.20q: %v", text, err)
			continue
		}
		f.found(e)
		if got := f.equal(e.Scope, text); got.Text != text || string(got.Answer) != string(e.Answer) {
			f.Errorf("%.20q: got %.20q, %q", text, got.Text, got.Answer)
		}
	}
}

func (f *fixture) largeAnswers() {
	for _, size := range []int{0, 1, 60_000, 70_000, 1 << 20} {
		e := entry(1, fmt.Sprint("answer of ", size), "")
		e.Answer = bytes.Repeat([]byte{'x', 0, 0xff, '\n'}, size/4+1)[:size]
		err := f.store.Put(e, at(0.9, 1))
		if errors.Is(err, cache.ErrTooLarge) && size > 1<<16 {
			if got := f.equal(e.Scope, e.Text); got != nil {
				f.Errorf("%d bytes: refused, and yet kept", size)
			}
			continue
		}
		if err != nil {
			f.Errorf("%d bytes: %v", size, err)
			continue
		}
		f.found(e)
		if got := f.equal(e.Scope, e.Text); !bytes.Equal(got.Answer, e.Answer) {
			f.Errorf("%d bytes come back as %d others", size, len(got.Answer))
		}
	}
}

// concurrent calls all methods at once, and checks that no caller gets an entry of another scope.
func (f *fixture) concurrent() {
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(worker), 1))
			for i := range 40 {
				e := entry(byte(worker%4), fmt.Sprint("question ", i), fmt.Sprint("scope ", worker%4))
				v := random(rng)
				if err := f.store.Put(e, v); err != nil && !errors.Is(err, cache.ErrFull) {
					f.Error(err)
				}
				got, err := f.store.Equal(e.Scope, []byte(e.Text), time.Time{})
				if err != nil || got != nil && (got.Scope != e.Scope || string(got.Answer) != string(e.Answer)) {
					f.Error(got, err)
				}
				found, err := f.store.Nearest(nil, e.Scope, v, 4, -1, time.Time{})
				for _, c := range found {
					if c.Scope != e.Scope || string(c.Answer) != string(e.Answer) {
						f.Errorf("%v in %v", c.Scope, e.Scope)
					}
				}
				if err != nil {
					f.Error(err)
				}
				if i%8 == 7 {
					if _, err := f.store.Delete(cache.Filter{ID: &e.ID}); err != nil {
						f.Error(err)
					}
				}
				_ = f.store.Stats()
			}
		})
	}
	all.Wait()
}

func (f *fixture) counts() {
	for i := range 3 {
		e := entry(1, fmt.Sprint("question ", i), "answer")
		f.put(e, at(0.9, 1+i))
		f.found(e)
	}
	f.eventually("3 are stored", func() bool { return f.store.Stats().Stored == 3 })
	if n := f.store.Stats().Entries; n != 3 && n != -1 {
		f.Errorf("%d entries, want 3", n)
	}
	if n, err := f.store.Delete(cache.Filter{}); n != 3 || err != nil {
		f.Errorf("deleted %d, %v", n, err)
	}
	f.eventually("3 are deleted", func() bool { return f.store.Stats().Deleted == 3 })
	if p := f.store.Stats().Problem; p != "" {
		f.Errorf("a problem: %s", p)
	}
}

func (f *fixture) ends() {
	e := entry(1, "question", "answer")
	f.put(e, at(0.9, 1))
	for range 2 {
		if err := f.store.Close(); err != nil {
			f.Errorf("cannot close: %v", err)
		}
	}
	if err := f.store.Put(entry(1, "too late", "answer"), at(0.9, 1)); err == nil {
		f.Error("a closed store takes an entry")
	}
	if got, err := f.store.Equal(e.Scope, []byte(e.Text), time.Time{}); err == nil {
		f.Errorf("a closed store answers %v", got)
	}
	if got, err := f.store.Nearest(nil, e.Scope, at(1, 1), 1, 0, time.Time{}); err == nil {
		f.Errorf("a closed store answers %v", got)
	}
	if n, err := f.store.Delete(cache.Filter{}); err == nil {
		f.Errorf("a closed store deletes %d", n)
	}
}
