// Package milvus keeps a cache's entries in Milvus, so that several replicas share them. It never
// makes a request wait longer than its budget, and never fails one: without a server, or with a
// wrong one, every lookup returns cache.ErrUnavailable at once, and Stats.Problem says why as
// plain text.
//
//	store, err := milvus.Open(milvus.Options{Address: "localhost:19530", Collection: "kvasir_cache", Version: model.Version})
//	...
//	defer store.Close()
//
// Invariants:
//  1. A collection is named after the form of its rows and the embedding's version. A collection
//     of another shape is neither written nor dropped.
//  2. The primary key is the SHA-256 of scope and text: replicas replace each other's entries,
//     and two texts are never confused.
//  3. No text of a client or a configuration is part of an expression: only hexadecimal digits
//     and numbers are.
//  4. One goroutine keeps the connection, and one writes. Close stops both and waits for them.
package milvus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kvasir/cache"
)

// Options say which Milvus to use, and how long to wait for it.
type Options struct {
	Address    string        // host:port or host:port/database; https:// in front asks for TLS
	Collection string        // first part of the collection's name; "": kvasir_cache
	Token      string        // user:password or an API key; "": none
	Timeout    time.Duration // of one lookup; 0: 20 ms
	TLS        *tls.Config   // nil: plain, unless the address begins with https://
	Version    string        // version of the embedding: entries of another version are never read
}

const (
	defaultCollection = "kvasir_cache"
	defaultTimeout    = 20 * time.Millisecond
	getTime           = 5 * time.Second // of one lookup by ID
	drainTime         = 5 * time.Second // how long Close waits for queued writes
)

// Counters of Stats; the others are unknown here.
type counters struct {
	stored, expired, deleted, dropped, failed, corrupt atomic.Uint64
	entries                                            atomic.Int64
}

// A Store is a cache.Store in Milvus.
type Store struct {
	o     Options
	name  string // of the collection
	codec *codec

	session   atomic.Pointer[session] // nil: not connected
	trouble   atomic.Pointer[string]  // why not, as plain text
	unwritten atomic.Pointer[string]  // why the last batch was not written; "": it was
	breaker   breaker
	queue     *queue
	writing   chan struct{} // holds one token; its holder may write or take from the queue
	lost      chan struct{} // the session's collection is gone or not loaded
	opened    chan struct{} // the breaker has opened

	ctx     context.Context // ends the two goroutines
	cancel  context.CancelFunc
	written chan struct{} // closed when the writer has ended
	kept    chan struct{} // closed when the keeper has ended
	close   sync.Once
	closed  error // result of Close

	n counters
}

var (
	_ cache.Store      = (*Store)(nil)
	_ cache.Getter     = (*Store)(nil)
	_ cache.Identified = (*Store)(nil)
)

// IsCollection reports whether Milvus accepts name as the beginning of a collection name.
func IsCollection(name string) bool { return collectionName.MatchString(name) }

var collectionName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,199}$`)

// Open returns a store at once, whether or not a server is there. The store connects in the
// background and retries until it succeeds. An error means that the options are invalid.
func Open(o Options) (*Store, error) {
	if o.Collection == "" {
		o.Collection = defaultCollection
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if !IsCollection(o.Collection) {
		return nil, fmt.Errorf("cannot use collection %q: a name begins with a letter or _, and has at most 200 letters, digits and _", o.Collection)
	}
	if err := CheckAddress(o.Address); err != nil {
		return nil, fmt.Errorf("cannot use address %q: %w", o.Address, err)
	}
	codec, err := newCodec()
	if err != nil {
		return nil, fmt.Errorf("cannot make a compressor: %w", err)
	}
	s := &Store{
		o: o, name: nameOf(o.Collection, o.Version), codec: codec, queue: newQueue(),
		writing: make(chan struct{}, 1), lost: make(chan struct{}, 1), opened: make(chan struct{}, 1),
		written: make(chan struct{}), kept: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.n.entries.Store(-1)
	s.writing <- struct{}{}
	s.writeTrouble("")
	s.setTrouble("not connected yet to Milvus at " + o.Address)
	go s.keep()
	go s.write()
	return s, nil
}

// Collection returns the name of the collection, which includes the embedding's version.
func (s *Store) Collection() string { return s.name }

// Identity implements cache.Identified: the collection's name, with the number that Milvus gave it when it was made, so
// that two collections of one name at two servers, or of two databases, differ. The address is no part of it: replicas
// may reach one server by several.
func (s *Store) Identity() (id string, known bool) {
	on := s.session.Load()
	if on == nil {
		return "", false
	}
	return on.identity, true
}

// CheckAddress refuses an address that cannot be dialled; whether the host exists shows later.
func CheckAddress(address string) error {
	rest := strings.TrimPrefix(strings.TrimPrefix(address, "https://"), "http://")
	host, _, _ := strings.Cut(rest, "/")
	name, port, found := cutLast(host, ":")
	if name == "" || !found || port == "" || strings.ContainsAny(host, " \t\r\n@?#") {
		return errors.New("it has the form host:port or host:port/database, as in localhost:19530")
	}
	return nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// Equal implements cache.Store: a query by primary key.
func (s *Store) Equal(scope cache.Scope, text []byte, until time.Time) (*cache.Entry, error) {
	key := keyOf(scope, text)
	var found *cache.Entry
	err := s.ask(until, func(ctx context.Context, on *session) error {
		rows, err := on.get(ctx, key)
		now := time.Now()
		for _, r := range rows {
			e, err := s.codec.entry(r, text, now)
			switch {
			case err != nil || r.key != key || e.Scope != scope || e.Text != string(text):
				s.n.corrupt.Add(1)
			case e.Expires.After(now):
				found = e
			}
		}
		return err
	})
	return found, err
}

// Nearest implements cache.Store: a search among the entries of the scope.
func (s *Store) Nearest(dst []cache.Candidate, scope cache.Scope, vector *[cache.Dim]float32, k int, floor float64, until time.Time) ([]cache.Candidate, error) {
	if k <= 0 {
		return dst, nil
	}
	err := s.ask(until, func(ctx context.Context, on *session) error {
		now := time.Now()
		rows, scores, err := on.search(ctx, scope, vector, k, now)
		for i, r := range rows {
			similarity := min(float64(scores[i]), 1)
			if !(similarity >= floor) { // a NaN too
				continue
			}
			e, err := s.codec.entry(r, nil, now)
			switch {
			case err != nil || e.Scope != scope || r.text == string(formAbsent):
				s.n.corrupt.Add(1)
			case e.Expires.After(now):
				dst = append(dst, cache.Candidate{Entry: e, Similarity: similarity})
			}
		}
		return err
	})
	return dst, err
}

// Get implements cache.Getter: it serves people, and waits for a slow server. The text of an
// entry is empty if it was too long to be stored.
func (s *Store) Get(id cache.ID) (*cache.Entry, error) {
	on := s.session.Load()
	if on == nil {
		return nil, s.failed(cache.ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(s.ctx, getTime)
	defer cancel()
	rows, err := on.find(ctx, equals(fieldEntry, id.String()))
	if err != nil {
		return nil, s.failed(asStoreError(err))
	}
	now := time.Now()
	for _, r := range rows {
		if e, err := s.codec.entry(r, nil, now); err == nil && e.ID == id && e.Expires.After(now) {
			return e, nil
		}
	}
	return nil, nil
}

// ask runs one lookup within its budget, if there is a session and the breaker allows it.
func (s *Store) ask(until time.Time, lookup func(context.Context, *session) error) error {
	now := time.Now()
	on := s.session.Load()
	if on == nil {
		return s.failed(cache.ErrUnavailable)
	}
	deadline := now.Add(s.o.Timeout)
	if !until.IsZero() && until.Before(deadline) {
		deadline = until
	}
	if !deadline.After(now) {
		return s.failed(cache.ErrTimeout)
	}
	turn, ok := s.breaker.allow(now)
	if !ok {
		return s.failed(cache.ErrUnavailable)
	}
	ctx, cancel := context.WithDeadline(s.ctx, deadline)
	defer cancel()
	err := lookup(ctx, on)
	if err == nil {
		s.breaker.succeed(turn)
		return nil
	}
	if s.breaker.fail(turn, time.Now(), s.words(err)) {
		signal(s.opened)
	}
	if isLost(err) {
		signal(s.lost)
	}
	return s.failed(asStoreError(err))
}

func (s *Store) failed(err error) error {
	s.n.failed.Add(1)
	return err
}

// signal leaves one message in a channel that has room for one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Put implements cache.Store: it queues the entry for the writer.
func (s *Store) Put(e *cache.Entry, vector *[cache.Dim]float32) error {
	r, err := s.codec.row(e, vector)
	if err == nil {
		err = s.queue.push(r)
	}
	if err != nil {
		s.n.dropped.Add(1)
	}
	return err
}

// Stats implements cache.Store. Entries is the server's last count.
func (s *Store) Stats() cache.Stats {
	now := time.Now()
	return cache.Stats{
		Entries: s.n.entries.Load(),
		Stored:  s.n.stored.Load(), Expired: s.n.expired.Load(), Deleted: s.n.deleted.Load(),
		Dropped: s.n.dropped.Load(), Failed: s.n.failed.Load(), Corrupt: s.n.corrupt.Load(),
		Breaker: s.breaker.state(now),
		Problem: s.problem(now),
	}
}

// Close writes the queued entries, for a few seconds at most, and closes the store. The error
// says how many entries could not be written.
func (s *Store) Close() error {
	s.close.Do(func() {
		s.queue.close()
		late := time.NewTimer(drainTime)
		defer late.Stop()
		select {
		case <-s.written:
		case <-late.C:
		}
		s.cancel()
		<-s.written
		<-s.kept
		if rest := s.queue.clear(); rest > 0 {
			s.n.dropped.Add(uint64(rest))
			s.closed = fmt.Errorf("cannot write %d entries to Milvus at %q before the end: %w", rest, s.o.Address, cache.ErrUnavailable)
		}
	})
	return s.closed
}
