// The store with a Milvus that hangs, breaks, sends wrong rows, or refuses.

package milvus

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"kvasir/cache"
)

// The goroutines of calls to a hanging server end when the budget ends: TestMain fails if any are
// left.
func TestHangingServer(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	d := &double{
		query: func(ctx context.Context, _ *milvuspb.QueryRequest) (*milvuspb.QueryResults, error) {
			return nil, hang(ctx)
		},
		search: func(ctx context.Context) (*milvuspb.SearchResults, error) { return nil, hang(ctx) },
	}
	s := open(t, Options{Address: d.serve(t), Timeout: 500 * time.Millisecond})
	eventually(t, func() bool { return s.session.Load() != nil })
	var vector [cache.Dim]float32
	for i := range breakAfter {
		began := time.Now()
		var err error
		if i%2 == 0 {
			_, err = s.Equal(cache.Scope{}, []byte("text"), time.Time{})
		} else {
			_, err = s.Nearest(nil, cache.Scope{}, &vector, 8, 0, began.Add(200*time.Millisecond)) // late enough that it has not passed when the server is asked
		}
		if took := time.Since(began); !errors.Is(err, cache.ErrTimeout) || took > 5*time.Second {
			t.Errorf("lookup %d: %v after %v", i, err, took)
		}
	}
	if _, err := s.Equal(cache.Scope{}, []byte("text"), time.Time{}); !errors.Is(err, cache.ErrUnavailable) {
		t.Errorf("after %d failures: %v", breakAfter, err)
	}
	if got := s.Stats(); got.Breaker != stateOpen || got.Failed != breakAfter+1 || !strings.Contains(got.Problem, "5 lookups in a row") {
		t.Errorf("%+v", got)
	}
}

// A budget that was used up before the call is not the server's fault.
func TestNoTimeLeft(t *testing.T) {
	t.Parallel()
	s := connected(t, new(double))
	for range 2 * breakAfter {
		if _, err := s.Equal(cache.Scope{}, nil, time.Now().Add(-time.Second)); !errors.Is(err, cache.ErrTimeout) {
			t.Error(err)
		}
	}
	if got := s.Stats().Breaker; got != stateClosed {
		t.Errorf("the breaker is %s", got)
	}
}

// Wrong rows of a server never reach an answer.
func TestRowsAreNotTrusted(t *testing.T) {
	t.Parallel()
	codec, err := newCodec()
	if err != nil {
		t.Fatal(err)
	}
	good, err := codec.row(entryOf("text", strings.Repeat("answer ", 100)), nil)
	if err != nil {
		t.Fatal(err)
	}
	var reply atomic.Pointer[row]
	d := &double{query: func(_ context.Context, r *milvuspb.QueryRequest) (*milvuspb.QueryResults, error) {
		if !slices.Equal(r.OutputFields, readable) {
			return found(r.OutputFields), nil // the sweep
		}
		return found(r.OutputFields, reply.Load()), nil
	}}
	s := connected(t, d)
	for name, change := range map[string]func(*row){
		"another scope":  func(r *row) { r.scope = cache.Scope{2}.String() },
		"another text":   func(r *row) { r.text = "=another" },
		"no text":        func(r *row) { r.text = "" },
		"no such form":   func(r *row) { r.answer = "?" },
		"torn answer":    func(r *row) { r.answer = r.answer[:len(r.answer)/2] },
		"not base64":     func(r *row) { r.answer = "z!!!" },
		"no scope":       func(r *row) { r.scope = "x" },
		"no id":          func(r *row) { r.entry = "" },
		"key of another": func(r *row) { r.key = keyOf(cache.Scope{1}, []byte("another")) },
		"expired":        func(r *row) { r.expires = time.Now().UnixMilli() - 1 },
		"years ago":      func(r *row) { r.expires = -1 << 62 },
		"another text's key": func(r *row) {
			r.text, r.key = "=another", keyOf(cache.Scope{1}, []byte("another"))
		},
	} {
		bad := *good
		change(&bad)
		reply.Store(&bad)
		if got, err := s.Equal(cache.Scope{1}, []byte("text"), time.Time{}); got != nil || err != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	reply.Store(good)
	if got, err := s.Equal(cache.Scope{1}, []byte("text"), time.Time{}); got == nil || err != nil {
		t.Errorf("the good row: %v, %v", got, err)
	}
	if got := s.Stats().Corrupt; got != 10 { // all but the expired ones
		t.Errorf("counted %d corrupt rows", got)
	}
}

// The SDK trusts the lengths in a reply, and panics.
func TestBrokenReply(t *testing.T) {
	t.Parallel()
	d := &double{search: func(context.Context) (*milvuspb.SearchResults, error) {
		return &milvuspb.SearchResults{Status: &commonpb.Status{}, Results: &schemapb.SearchResultData{NumQueries: 3, Topks: []int64{5}}}, nil
	}}
	s := connected(t, d)
	var vector [cache.Dim]float32
	if near, err := s.Nearest(nil, cache.Scope{}, &vector, 8, 0, time.Time{}); len(near) != 0 || err == nil || !strings.Contains(err.Error(), "cannot read the reply") {
		t.Errorf("%v, %v", near, err)
	}
}

// Rows outside the scope or below the floor are dropped from the result of a search.
func TestNearestIsChecked(t *testing.T) {
	t.Parallel()
	codec, err := newCodec()
	if err != nil {
		t.Fatal(err)
	}
	var rows []*row
	for _, scope := range []cache.Scope{{1}, {2}, {1}} {
		e := entryOf("text", "answer")
		e.Scope = scope
		r, err := codec.row(e, nil)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	d := &double{search: func(context.Context) (*milvuspb.SearchResults, error) {
		keys := []string{rows[0].key, rows[1].key, rows[2].key}
		return &milvuspb.SearchResults{Status: &commonpb.Status{}, Results: &schemapb.SearchResultData{
			NumQueries: 1, Topks: []int64{3}, Scores: []float32{1.0000001, 0.9, 0.5}, FieldsData: found(readable, rows...).FieldsData,
			Ids: &schemapb.IDs{IdField: &schemapb.IDs_StrId{StrId: &schemapb.StringArray{Data: keys}}},
		}}, nil
	}}
	s := connected(t, d)
	near, err := s.Nearest(nil, cache.Scope{1}, new([cache.Dim]float32), 8, 0.6, time.Time{})
	if err != nil || len(near) != 1 || near[0].Similarity != 1 || near[0].Scope != (cache.Scope{1}) {
		t.Errorf("%v, %v", near, err)
	}
	if got := s.Stats().Corrupt; got != 1 {
		t.Errorf("counted %d corrupt rows", got)
	}
}

// A batch that the server refuses repeatedly does not stop the following ones.
func TestRefusedWrites(t *testing.T) {
	t.Parallel()
	d := &double{upsert: func(r *milvuspb.UpsertRequest) *commonpb.Status {
		for _, f := range r.FieldsData {
			if column, err := entity.FieldDataColumn(f, 0, -1); err == nil && f.FieldName == fieldText {
				if text, err := column.GetAsString(0); err == nil && text == "=bad" {
					return &commonpb.Status{Code: 1100, Reason: "invalid parameter"}
				}
			}
		}
		return &commonpb.Status{}
	}}
	s := connected(t, d)
	if err := s.Put(entryOf("bad", "answer"), nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return strings.Contains(s.Stats().Problem, "wait to be written") })
	eventually(t, func() bool { return s.Stats().Dropped == 1 })
	if err := s.Put(entryOf("good", "answer"), nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { got := s.Stats(); return got.Stored == 1 && got.Problem == "" })
}

// A server that refuses a write for now gets it later.
func TestPutOffWrites(t *testing.T) {
	t.Parallel()
	left := writeTries // guarded by the double's mutex
	d := &double{upsert: func(*milvuspb.UpsertRequest) *commonpb.Status {
		if left--; left >= 0 {
			return &commonpb.Status{Code: 8, Retriable: true, Reason: "rate limit exceeded"}
		}
		return &commonpb.Status{}
	}}
	s := connected(t, d)
	if err := s.Put(entryOf("text", "answer"), nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return s.Stats().Stored == 1 })
	if got := s.Stats(); got.Dropped != 0 || got.Problem != "" {
		t.Errorf("%+v", got)
	}
}

func TestCloseWritesWhatWaits(t *testing.T) {
	t.Parallel()
	d := new(double)
	s := connected(t, d)
	const n = 300
	for i := range n {
		if err := s.Put(entryOf(strings.Repeat("x", i), "answer"), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, u := range d.upserts {
		rows += int(u.NumRows)
	}
	if rows != n || s.Stats().Stored != n {
		t.Errorf("%d rows were written, %d counted, want %d", rows, s.Stats().Stored, n)
	}
	if err := s.Put(entryOf("late", "answer"), nil); !errors.Is(err, cache.ErrUnavailable) {
		t.Errorf("a put after the end: %v", err)
	}
	if _, err := s.Equal(cache.Scope{}, nil, time.Time{}); !errors.Is(err, cache.ErrUnavailable) {
		t.Errorf("a lookup after the end: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
}

// Close drops the entries that it cannot write, and says so.
func TestCloseWithoutServer(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Address: nobody})
	if err := s.Put(entryOf("text", "answer"), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); !errors.Is(err, cache.ErrUnavailable) || !strings.Contains(err.Error(), "1 entries") {
		t.Error(err)
	}
	if got := s.Stats().Dropped; got != 1 {
		t.Errorf("counted %d dropped", got)
	}
}

// TestIdentity: it is that of the collection, however it is reached, and not known without Milvus.
func TestIdentity(t *testing.T) {
	d := &double{id: 7}
	identity := func(s *Store) string {
		t.Helper()
		id, known := s.Identity()
		if !known {
			t.Fatal("it is not known")
		}
		return id
	}
	one := identity(connected(t, d))
	if two := identity(connected(t, d)); two != one { // at another address
		t.Errorf("%q and %q are one", one, two)
	}
	if other := identity(connected(t, &double{id: 8})); other == one {
		t.Errorf("%q of two collections", other)
	}
	if id, known := open(t, Options{Address: "127.0.0.1:1"}).Identity(); known {
		t.Errorf("%q without Milvus", id)
	}
}
