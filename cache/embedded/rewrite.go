// Rewriting the file: to drop dead records, to repair damage, to create the first file.

package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// A rewriting is a new file that grows beside the old one until it replaces it. After a crash the
// old file is unchanged, and the next Open removes the new one.
type rewriting struct {
	path string
	file *os.File
	size int64
	buf  []byte
}

// beside names the file that a rewrite makes.
func beside(path string) string { return path + ".new" }

func newRewriting(path string, h *header) (*rewriting, error) {
	f, err := os.OpenFile(beside(path), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot create cache file %q: %w", path, unwrapped(err))
	}
	return &rewriting{path: path, file: f, buf: h.append(nil)}, nil
}

// flush writes the buffer.
func (w *rewriting) flush() error {
	_, err := w.file.WriteAt(w.buf, w.size)
	if err != nil {
		return fmt.Errorf("cannot write cache file %q: %w", w.path, unwrapped(err))
	}
	w.size += int64(len(w.buf))
	w.buf = w.buf[:0]
	return nil
}

// finish replaces the old file with the new one.
func (w *rewriting) finish() error {
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.file.Sync(); err != nil {
		return fmt.Errorf("cannot write cache file %q: %w", w.path, unwrapped(err))
	}
	if err := os.Rename(beside(w.path), w.path); err != nil {
		return fmt.Errorf("cannot replace cache file %q: %w", w.path, unwrapped(err))
	}
	syncDirectory(filepath.Dir(w.path))
	return nil
}

// abandon removes the new file.
func (w *rewriting) abandon() {
	_ = w.file.Close()
	_ = os.Remove(beside(w.path))
}

// syncDirectory makes a rename survive a crash of the machine. If it fails, the old file may come
// back, as after a crash a moment earlier.
func syncDirectory(path string) {
	if d, err := os.Open(path); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}

// rewrite writes all live entries, and the records that arrive meanwhile, to a new file, and
// replaces the journal's file with it. Only puts at its very end wait for it.
func (s *Store) rewrite() error {
	j := s.journal
	s.mu.Lock()
	items := make([]*item, 0, s.queue.len)
	for it := s.queue.oldest; it != nil; it = it.newer {
		items = append(items, it)
	}
	at := s.clock.stamp()
	j.mu.Lock()
	j.tailing, j.tail = true, nil
	j.mu.Unlock()
	s.mu.Unlock()

	err := j.exchange(items, at)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tailing, j.tail = false, nil
	return err
}

const rewriteBuffer = 1 << 20

// exchange writes the items and the tail to a new file, and replaces the old one.
func (j *journal) exchange(items []*item, at stamp) (err error) {
	w, err := newRewriting(j.path, &j.header)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			w.abandon()
		}
	}()
	w.buf = j.header.moment(w.buf, at)
	for _, it := range items {
		if it.deadline <= at.at {
			continue
		}
		w.buf = j.header.put(w.buf, it, at)
		if len(w.buf) >= rewriteBuffer {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.file.Sync(); err != nil { // so that the sync under the lock has little to do
		return fmt.Errorf("cannot write cache file %q: %w", j.path, unwrapped(err))
	}
	return j.takeOver(w)
}

var errTail = errors.New("more came than could be written meanwhile")

// takeOver ends a rewrite. Nothing else is written meanwhile.
func (j *journal) takeOver(w *rewriting) error {
	j.disk.Lock()
	defer j.disk.Unlock()
	j.mu.Lock()
	if !j.tailing {
		j.mu.Unlock()
		return errTail
	}
	tail, pending, b := j.tail, j.pending, j.batch
	j.tail, j.tailing, j.pending, j.batch = nil, false, nil, nil
	j.mu.Unlock()

	w.buf = append(w.buf, tail...)
	err := w.finish()
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.pending = append(pending, j.pending...)
		if b != nil && j.batch == nil {
			j.batch = b
		} else if b != nil { // other goroutines already wait for the next write
			b.err = err
			close(b.done)
		}
		return err
	}
	_ = j.file.Close()
	j.file = w.file
	j.size.Store(w.size)
	j.dirty.Store(false)
	j.behind, j.problem = false, nil
	if b != nil {
		close(b.done)
	}
	return nil
}
