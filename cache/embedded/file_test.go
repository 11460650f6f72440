// The file: which entries come back after damage of every kind.

package embedded

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kvasir/cache"
)

// reopen opens a store that must open.
func reopen(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closed(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// has reports whether the store answers question i, and fails the test on a wrong answer.
func has(t *testing.T, s *Store, i int) bool {
	t.Helper()
	e, err := s.Equal(cache.Scope{1}, fmt.Append(nil, "question ", i), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if e != nil && string(e.Answer) != fmt.Sprint("answer ", i) {
		t.Fatalf("question %d has %q", i, e.Answer)
	}
	return e != nil
}

// question returns entry i, and its vector.
func question(i int) (*cache.Entry, *[cache.Dim]float32) {
	e := newEntry(cache.Scope{1}, fmt.Sprint("question ", i), 0)
	e.Answer = fmt.Append(nil, "answer ", i)
	v := randomEmbedding(rand.New(rand.NewPCG(7, uint64(i))), nil, 0)
	return e, &v
}

func putQuestions(t *testing.T, s *Store, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if err := s.Put(question(i)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEverythingComesBack(t *testing.T) {
	o := Options{Path: filepath.Join(t.TempDir(), "cache"), Embedding: "one"}
	s := reopen(t, o)
	putQuestions(t, s, 0, 300)
	bare := newEntry(cache.Scope{2}, "", 5)
	bare.Tenant, bare.Model = "", "a model"
	if err := s.Put(bare, nil); err != nil {
		t.Fatal(err)
	}
	gone, _ := s.Equal(cache.Scope{1}, []byte("question 17"), time.Time{})
	if n, err := s.Delete(cache.Filter{ID: &gone.ID}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	putQuestions(t, s, 5, 6) // replaces another
	before := s.Stats()
	closed(t, s)

	s = open(t, o)
	if got, want := s.Opened(), (Opened{Entries: 300}); got != want {
		t.Errorf("opened %+v, want %+v", got, want)
	}
	if after := s.Stats(); (after.Bytes-before.Bytes)/1000 != 0 || after.Entries != before.Entries {
		t.Errorf("%+v, before %+v", after, before)
	}
	for i := range 300 {
		if has(t, s, i) != (i != 17) {
			t.Errorf("question %d: %v", i, i == 17)
		}
		e, v := question(i)
		found, err := s.Nearest(nil, e.Scope, v, 1, 0.9, time.Time{})
		if err != nil || (len(found) == 1) != (i != 17) || i != 17 && (found[0].Text != e.Text || found[0].Similarity < 0.9999) {
			t.Errorf("question %d: nearest %v, %v", i, found, err)
		}
	}
	got, err := s.Equal(cache.Scope{2}, nil, time.Time{})
	if err != nil || got == nil || got.ID != bare.ID || got.Tenant != "" || got.Model != "a model" || !bytes.Equal(got.Answer, bare.Answer) {
		t.Errorf("got %+v, %v", got, err)
	}
	if d := got.Created.Sub(bare.Created).Abs(); d > 100*time.Millisecond {
		t.Errorf("created %v off", d)
	}
	if d := got.Expires.Sub(bare.Expires).Abs(); d > 100*time.Millisecond {
		t.Errorf("expires %v off", d)
	}
	if info, err := os.Stat(o.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is for others to read: %v, %v", info.Mode(), err)
	}
}

// file returns the bytes of a file with n questions that was not closed cleanly, and where its
// records begin.
func file(t *testing.T, n int) (data []byte, starts []int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cache")
	s := reopen(t, Options{Path: path})
	for i := range n {
		starts = append(starts, int(s.journal.size.Load()))
		putQuestions(t, s, i, i+1)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	return data, starts
}

// with opens a store on a file of these bytes and runs check on it.
func with(t *testing.T, path string, data []byte, check func(s *Store)) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s := reopen(t, Options{Path: path})
	check(s)
	if err := s.Put(question(1000)); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	s = reopen(t, Options{Path: path})
	if !has(t, s, 1000) {
		t.Fatal("what is put after is lost")
	}
	closed(t, s)
}

func TestFileCutAtEveryByte(t *testing.T) {
	const n = 4
	data, starts := file(t, n)
	path := filepath.Join(t.TempDir(), "cache")
	for size := starts[2]; size < len(data); size++ {
		if from := max(starts[2], starts[3]*min(1, size/starts[3])); size > from+200 && size%29 != 0 {
			continue // within a vector, where all bytes are alike
		}
		with(t, path, data[:size], func(s *Store) {
			whole := 2
			if size >= starts[3] {
				whole = 3
			}
			for i := range n {
				if has(t, s, i) != (i < whole) {
					t.Fatalf("cut at %d: question %d: %v", size, i, i >= whole)
				}
			}
			o := s.Opened()
			if o.Corrupt != 0 || o.Cut != int64(size-starts[whole]) {
				t.Fatalf("cut at %d: %+v", size, o)
			}
		})
	}
}

func TestEveryByteFlipped(t *testing.T) {
	const n = 3
	data, starts := file(t, n)
	path := filepath.Join(t.TempDir(), "cache")
	for at := 0; at < starts[2]; at++ {
		if at > starts[1]+200 && at%37 != 0 { // in a run of bytes of one kind, such as a vector
			continue
		}
		if at > starts[0]+200 && at < starts[1] && at%37 != 0 {
			continue
		}
		damaged := bytes.Clone(data)
		damaged[at] ^= 1 << (at % 8)
		with(t, path, damaged, func(s *Store) {
			lost := 0
			for i := range n {
				if !has(t, s, i) {
					lost++
					if at < starts[i] || i < n-1 && at >= starts[i+1] {
						t.Fatalf("byte %d: question %d is lost", at, i)
					}
				}
			}
			want := 1
			if at < starts[0] { // in the header
				want = 0
			}
			if lost != want || s.Opened().Corrupt != want {
				t.Fatalf("byte %d: %d lost, %+v", at, lost, s.Opened())
			}
		})
	}
}

// An answer that looks like a record is not read as one when the record around it is corrupt.
func TestNoRecordWithinAnAnswer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	s := reopen(t, Options{Path: path})
	forged, _ := question(1)
	other := newHeader("")
	it := newItem(forged, false)
	it.deadline = 1 << 60
	e, v := question(0)
	e.Answer = other.put(nil, it, stamp{})
	if err := s.Put(e, v); err != nil {
		t.Fatal(err)
	}
	from := s.journal.size.Load()
	closed(t, s)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[from-vectorBytes] ^= 1
	with(t, path, data, func(s *Store) {
		if o := s.Opened(); o.Entries != 0 || o.Corrupt != 1 {
			t.Errorf("opened %+v", o)
		}
	})
}

func TestCorruptRecordsAreLeftOutByAndBy(t *testing.T) {
	data, starts := file(t, 3)
	data[starts[1]+100] ^= 1
	path := filepath.Join(t.TempDir(), "cache")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s := reopen(t, Options{Path: path})
	eventually(t, func() bool { return s.journal.size.Load() < int64(len(data)) })
	closed(t, s)
	s = open(t, Options{Path: path})
	if o := s.Opened(); o.Corrupt != 0 || o.Entries != 2 {
		t.Errorf("opened %+v", o)
	}
}

// eventually waits until the keeper has made the condition true.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); {
		if time.Now().After(end) {
			t.Fatal("it does not happen")
		}
		<-time.After(5 * time.Millisecond)
	}
}

func TestEntriesOfAnotherEmbeddingAreDropped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	s := reopen(t, Options{Path: path, Embedding: "one"})
	putQuestions(t, s, 0, 10)
	closed(t, s)
	s = reopen(t, Options{Path: path, Embedding: "two"})
	if o := s.Opened(); o.Foreign != 10 || o.Entries != 0 || has(t, s, 1) {
		t.Errorf("opened %+v", o)
	}
	closed(t, s)
	s = open(t, Options{Path: path, Embedding: "one"})
	if o := s.Opened(); o != (Opened{}) {
		t.Errorf("opened %+v", o)
	}
}

// A link works as the file itself does: for the lock, and after a rewrite.
func TestLinksAreFollowed(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	closed(t, open(t, Options{Path: file}))
	if err := os.Symlink(file, link); err != nil {
		t.Skip(err) // a system without links
	}
	s := open(t, Options{Path: link})
	if other, err := Open(Options{Path: file}); err == nil {
		closed(t, other)
		t.Error("two have the file open, one by a link")
	}
	if err := s.rewrite(); err != nil {
		t.Error(err)
	}
	if target, err := os.Readlink(link); err != nil || target != file {
		t.Errorf("after a rewrite the link is %q, %v", target, err)
	}
}

func TestWhatCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(other, []byte(strings.Repeat("not a cache\n", 50)), 0o644); err != nil {
		t.Fatal(err)
	}
	busy := filepath.Join(dir, "busy")
	open(t, Options{Path: busy})
	for _, row := range []struct{ path, want string }{
		{filepath.Join(dir, "missing", "cache"), `cannot open cache file %q: the directory "` + filepath.Join(dir, "missing") + `" does not exist`},
		{dir, "cannot open cache file %q: it is not a regular file"},
		{other, "cannot read cache file %q: it is not a cache file"},
		{busy, "cannot open cache file %q: another process has it open; give each its own path"},
	} {
		s, err := Open(Options{Path: row.path})
		if err == nil {
			closed(t, s)
			t.Errorf("%q opens", row.path)
		} else if want := fmt.Sprintf(row.want, row.path); err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if data, err := os.ReadFile(other); err != nil || len(data) != 600 {
		t.Errorf("what is no cache file was changed: %d bytes, %v", len(data), err)
	}
	if err := os.WriteFile(other, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	open(t, Options{Path: other}) // an empty file is accepted
}

// The wall clock is set while nobody has the file open.
func TestClockIsSet(t *testing.T) {
	const life = time.Hour
	for _, row := range []struct {
		name  string
		by    time.Duration
		alive bool
	}{
		{"it goes on", 10 * time.Minute, true},
		{"it goes on for longer than the life", 2 * time.Hour, false},
		{"it is set back", -48 * time.Hour, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "cache")
			s := reopen(t, Options{Path: path})
			putQuestions(t, s, 0, 1)
			dead, v := question(1)
			dead.Created, dead.Expires = dead.Created.Add(-life), dead.Created.Add(30*time.Millisecond)
			if err := s.Put(dead, v); err != nil {
				t.Fatal(err)
			}
			eventually(t, func() bool { return !has(t, s, 1) })
			closed(t, s)
			o := Options{Path: path, wall: func() time.Time { return time.Now().Add(row.by) }}
			s = open(t, o)
			if has(t, s, 1) {
				t.Error("it was dead and came back")
			}
			if has(t, s, 0) != row.alive {
				t.Errorf("alive %v, want %v", !row.alive, row.alive)
			}
			if !row.alive {
				return
			}
			e, _ := s.Equal(cache.Scope{1}, []byte("question 0"), time.Time{})
			want := max(0, row.by)
			if age := time.Since(e.Created); age < want || age > want+time.Minute {
				t.Errorf("age %v, want %v", age, want)
			}
		})
	}
}

func TestFileIsRewrittenWhenMostOfItIsDead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	s := reopen(t, Options{Path: path, MaxEntries: 100})
	putQuestions(t, s, 0, 3000) // 4 MB; only 100 entries are alive
	// The rewrite may happen during the puts. Of the records after it, up to minDead bytes may be
	// dead.
	eventually(t, func() bool { return s.journal.size.Load() < minDead+1<<19 })
	putQuestions(t, s, 3000, 3010)
	alive := map[int]bool{}
	for i := range 3010 {
		alive[i] = has(t, s, i)
	}
	closed(t, s)
	s = open(t, Options{Path: path})
	for i := range 3010 {
		if has(t, s, i) != alive[i] {
			t.Errorf("question %d: %v", i, alive[i])
		}
	}
	if s.Opened().Entries != 100 {
		t.Errorf("opened %+v", s.Opened())
	}
}

// Puts and deletes during a rewrite are in the new file.
func TestChangesDuringRewrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	s := reopen(t, Options{Path: path})
	putQuestions(t, s, 0, 500)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 500; i < 1500; i++ {
			putQuestions(t, s, i, i+1)
			e, _ := s.Equal(cache.Scope{1}, fmt.Append(nil, "question ", i-300), time.Time{})
			if _, err := s.Delete(cache.Filter{ID: &e.ID}); err != nil {
				t.Error(err)
			}
		}
	}()
	for n := 0; ; n++ {
		select {
		case <-done:
			closed(t, s)
			if n == 0 {
				t.Error("nothing was rewritten")
			}
			s = open(t, Options{Path: path})
			for i := range 1500 {
				if has(t, s, i) != (i < 200 || i >= 1200) {
					t.Errorf("question %d", i)
				}
			}
			return
		default:
			if err := s.rewrite(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestDiskIsFullForAWhile(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full")
	}
	defer func() { _ = full.Close() }()
	// A file that was rewritten meanwhile, beside the full one, holds everything: it must not be
	// replaced by the old one.
	exchange := func(s *Store, from, with *os.File) (before *os.File) {
		s.journal.disk.Lock()
		defer s.journal.disk.Unlock()
		if before = s.journal.file; from == nil || before == from {
			s.journal.file = with
		}
		return before
	}
	for _, row := range []struct {
		name  string
		waits int // entries of 1 MB waiting for the disk
	}{{"few wait", 3}, {"too many wait", 70}} {
		t.Run(row.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "cache")
			s := reopen(t, Options{Path: path})
			putQuestions(t, s, 0, 2)
			disk := exchange(s, nil, full)
			putQuestions(t, s, 2, 4)
			if st := s.Stats(); st.Failed == 0 || !strings.Contains(st.Problem, "no space left") {
				t.Errorf("%+v", st)
			}
			for range row.waits {
				if err := s.Put(newEntry(cache.Scope{2}, fmt.Sprint(rand.Uint64()), 1<<20), nil); err != nil {
					t.Fatal(err)
				}
			}
			e, _ := s.Equal(cache.Scope{1}, []byte("question 0"), time.Time{})
			n, err := s.Delete(cache.Filter{ID: &e.ID})
			if still := exchange(s, full, full) == full; n != 1 || still && err == nil {
				t.Errorf("deleted %d, %v: the file has it still", n, err)
			}
			if has(t, s, 0) || !has(t, s, 3) {
				t.Error("memory does not go on")
			}
			exchange(s, full, disk)
			eventually(t, func() bool { return s.Stats().Problem == "" })
			putQuestions(t, s, 4, 5)
			closed(t, s)
			s = open(t, Options{Path: path})
			for i := range 5 {
				if has(t, s, i) != (i != 0) {
					t.Errorf("question %d: %v", i, i == 0)
				}
			}
			if o := s.Opened(); o.Entries != 4+row.waits || o.Corrupt != 0 {
				t.Errorf("opened %+v", o)
			}
		})
	}
}

func TestDiskDoesNotAnswerForAWhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	s := reopen(t, Options{Path: path})
	putQuestions(t, s, 0, 1)
	s.journal.disk.Lock() // as a write that hangs
	began := time.Now()
	putQuestions(t, s, 1, 3)
	if took := time.Since(began); took < patience || took > 2*patience {
		t.Errorf("two puts took %v: the first should wait, the second not", took)
	}
	if !has(t, s, 0) || !has(t, s, 2) {
		t.Error("memory does not go on")
	}
	if st := s.Stats(); !strings.Contains(st.Problem, "does not answer") || st.Failed != 2 {
		t.Errorf("%+v", st)
	}
	s.journal.disk.Unlock()
	eventually(t, func() bool { return s.Stats().Problem == "" })
	closed(t, s)
	s = open(t, Options{Path: path})
	if s.Opened().Entries != 3 {
		t.Errorf("opened %+v", s.Opened())
	}
}
