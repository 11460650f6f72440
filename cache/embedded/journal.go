// The journal: the file under a store.

package embedded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"kvasir/cache"
)

// A journal appends records to a file. A writer calls put or drop under the store's lock, which
// only copies the record, and then calls wait without the lock. One goroutine writes all records
// that have gathered meanwhile.
//
// When the file cannot be written, the records wait in memory while there is room. When there is
// none left, or when it is unknown which part of the file is safe, the journal is behind: then
// only a rewrite of the whole file makes it match the store again.
type journal struct {
	path   string
	header header
	lock   io.Closer     // keeps other processes away
	wake   chan struct{} // signals that something is pending
	stop   chan struct{}
	done   chan struct{}

	size  atomic.Int64 // of the file
	dirty atomic.Bool  // written but not synced

	disk  sync.Mutex // held while the file is written or replaced; locked before mu
	file  *os.File   // replaced by the keeper only
	spare []byte     // the buffer that pending gets next

	mu      sync.Mutex // guards the fields below; held only briefly
	pending []byte
	batch   *batch // the batch whose records are in pending
	tail    []byte // records since a rewrite began
	tailing bool   // a rewrite is under way, and tail is complete
	behind  bool
	problem error // why the file does not match the store
}

// A batch is the set of records that one write makes safe.
type batch struct {
	done chan struct{}
	err  error
}

const (
	maxPending = 64 << 20        // bytes of records waiting for the disk
	maxTail    = 256 << 20       // bytes of records that arrive during a rewrite
	maxSpare   = 4 << 20         // bytes of a buffer kept for reuse
	patience   = 2 * time.Second // how long Put waits for a write
)

func newJournal(path string, h header, lock io.Closer, file *os.File, size int64) *journal {
	j := &journal{
		path: path, header: h, lock: lock, file: file,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	j.size.Store(size)
	return j
}

// put and drop add a record and return the batch to wait for. A nil journal has no file, and
// nothing to wait for.
func (j *journal) put(it *item, at stamp) *batch {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	from := len(j.pending)
	j.pending = j.header.put(j.pending, it, at)
	return j.added(from)
}

func (j *journal) drop(id cache.ID, at stamp) *batch {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	from := len(j.pending)
	j.pending = j.header.drop(j.pending, id, at)
	return j.added(from)
}

var errFull = errors.New("the disk is too slow: too much waits for it")

// added schedules the record that begins at from for writing. The caller holds mu.
func (j *journal) added(from int) *batch {
	if j.tailing {
		j.tail = append(j.tail, j.pending[from:]...)
		j.tailing = len(j.tail) <= maxTail // else the rewrite must be given up
	}
	switch {
	case j.behind:
		j.pending = j.pending[:from]
	case len(j.pending) > maxPending:
		j.fallBehind(errFull)
	case j.problem == nil && j.batch == nil:
		j.batch = &batch{done: make(chan struct{})}
	}
	select {
	case j.wake <- struct{}{}:
	default:
	}
	return j.batch
}

// fallBehind discards the pending records: only a rewrite helps now. The caller holds mu.
func (j *journal) fallBehind(err error) {
	if !j.behind {
		j.problem = fmt.Errorf("cannot write cache file %q: %w; entries are kept in memory only", j.path, err)
	}
	j.behind = true
	j.pending = j.pending[:0]
	j.release(j.problem)
}

// release ends the wait of all that wait for the batch. The caller holds mu.
func (j *journal) release(err error) {
	if j.batch != nil {
		j.batch.err = err
		close(j.batch.done)
		j.batch = nil
	}
}

// wait returns when the batch is written, or the error for which it is not.
func (j *journal) wait(b *batch) error {
	if j == nil {
		return nil
	}
	if b == nil {
		return j.trouble()
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-b.done:
		return b.err
	case <-timer.C:
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.problem == nil {
		j.problem = fmt.Errorf("cannot write cache file %q: the disk does not answer; entries are kept in memory only", j.path)
	}
	j.release(j.problem) // so that no other Put waits as long
	return j.problem
}

// trouble returns why the file does not match the store; nil: it does.
func (j *journal) trouble() error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.problem
}

// write writes pending records until the journal is stopped.
func (j *journal) write() {
	defer close(j.done)
	for {
		select {
		case <-j.wake:
			if j.trouble() == nil { // else the keeper retries
				j.flush()
			}
		case <-j.stop:
			return
		}
	}
}

// flush writes the pending records, once.
func (j *journal) flush() {
	j.disk.Lock()
	defer j.disk.Unlock()
	j.mu.Lock()
	data, b := j.pending, j.batch
	j.pending, j.batch = j.spare[:0], nil
	j.mu.Unlock()

	_, err := j.file.WriteAt(data, j.size.Load()) // overwrites the rest of a failed write
	if err == nil {
		j.size.Add(int64(len(data)))
		j.dirty.Store(true)
	}

	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil {
		if !j.behind {
			j.problem = nil
		}
		j.spare = nil
		if cap(data) <= maxSpare {
			j.spare = data[:0]
		}
	} else {
		err = fmt.Errorf("cannot write cache file %q: %w; entries are kept in memory only", j.path, unwrapped(err))
		j.problem = err
		if len(data)+len(j.pending) <= maxPending && !j.behind {
			j.pending = append(data, j.pending...)
		} else {
			j.behind, j.pending = true, j.pending[:0]
		}
		j.spare = nil
		j.release(err)
	}
	if b != nil {
		b.err = err
		close(b.done)
	}
}

// unwrapped drops the path from a file error, or both paths from a rename error: the caller has
// named them already.
func unwrapped(err error) error {
	var p *os.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		return p.Err
	case errors.As(err, &l):
		return l.Err
	}
	return err
}

// sync makes the written records survive a crash of the machine.
func (j *journal) sync() {
	if !j.dirty.Swap(false) {
		return
	}
	if err := j.file.Sync(); err != nil {
		// The records written since the last sync may be lost, and a second sync would not report
		// it.
		j.mu.Lock()
		defer j.mu.Unlock()
		j.fallBehind(unwrapped(err))
	}
}

// state reports whether only a rewrite helps, and whether records wait to be written.
func (j *journal) state() (behind, waiting bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.behind, len(j.pending) > 0
}

// close writes the remaining records and a time mark, and unlocks the file.
func (j *journal) close(at stamp) error {
	close(j.stop)
	<-j.done
	j.mu.Lock()
	j.pending = j.header.moment(j.pending, at)
	j.mu.Unlock()
	j.flush()
	j.sync()
	err := j.trouble()
	if e := j.file.Close(); e != nil && err == nil {
		err = fmt.Errorf("cannot close cache file %q: %w", j.path, unwrapped(e))
	}
	_ = j.lock.Close()
	return err
}
