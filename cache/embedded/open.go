// Opening a file: lock, header, records.

package embedded

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// openFile locks the file, reads it, and makes it the store's journal.
func (s *Store) openFile() (err error) {
	// Through two links to one file, two processes would not see each other's lock, and a rewrite
	// would replace the link.
	if target, err := filepath.EvalSymlinks(s.o.Path); err == nil {
		s.o.Path = target
	}
	path := s.o.Path
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("cannot open cache file %q: it is not a regular file", path)
	}
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return fmt.Errorf("cannot open cache file %q: %w", path, explained(err, path))
	}
	var file *os.File
	defer func() {
		if err != nil {
			_ = lock.Close()
			if file != nil {
				_ = file.Close()
			}
		}
	}()
	_ = os.Remove(beside(path)) // left by a rewrite that a crash ended
	h, size, file, err := s.readFile()
	if err != nil {
		return err
	}
	if file == nil {
		h = newHeader(s.o.Embedding)
		if file, size, err = create(path, &h); err != nil {
			return err
		}
	}
	s.journal = newJournal(path, h, lock, file, size)
	s.keeper.wanted = s.opened.Corrupt > 0 // a rewrite drops the unreadable records
	return nil
}

// explained adds what to do to errors of the system that do not say it.
func explained(err error, path string) error {
	switch err = unwrapped(err); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the directory %q does not exist", filepath.Dir(path))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: this user may not write to %q", err, filepath.Dir(path))
	}
	return err
}

// create makes a file with a header and no records.
func create(path string, h *header) (*os.File, int64, error) {
	w, err := newRewriting(path, h)
	if err == nil {
		if err = w.finish(); err != nil {
			w.abandon()
		}
	}
	if err != nil {
		return nil, 0, err
	}
	return w.file, w.size, nil
}

// readFile reads the file, cuts an incomplete record from its end, and returns it; nil: a new
// file has to replace it.
func (s *Store) readFile() (h header, size int64, file *os.File, err error) {
	path := s.o.Path
	file, err = os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return h, 0, nil, nil
	}
	if err != nil {
		return h, 0, nil, fmt.Errorf("cannot open cache file %q: %w", path, unwrapped(err))
	}
	h, size, keep, err := s.readOpen(file)
	if err != nil {
		err = fmt.Errorf("cannot read cache file %q: %w", path, unwrapped(err))
	}
	if err != nil || !keep {
		_ = file.Close()
		file = nil
	}
	return h, size, file, err
}

// readOpen is readFile for an open file, which it does not close. keep says whether records may
// be appended to it.
func (s *Store) readOpen(file *os.File) (h header, size int64, keep bool, err error) {
	info, err := file.Stat()
	if err != nil || info.Size() == 0 { // an empty file, made by another program
		return h, 0, false, err
	}
	_ = file.Chmod(0o600) // answers are private
	var head [headersLen]byte
	n, err := io.ReadFull(file, head[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return h, 0, false, err
	}
	h, err = readHeader(head[:n])
	if errors.Is(err, errFormat) {
		s.opened.Foreign = -1
		return h, 0, false, nil
	}
	if err != nil || n < headersLen {
		return h, 0, false, errNotOurs
	}
	own := newHeader(s.o.Embedding)
	r := newReader(file, h.marker, headersLen, info.Size())
	if h.embedding != own.embedding {
		return h, 0, false, s.countForeign(r)
	}
	if err := s.load(r); err != nil {
		return h, 0, false, err
	}
	s.opened.Corrupt, s.opened.Cut = r.corrupt, info.Size()-r.good
	if s.opened.Cut > 0 {
		if err := file.Truncate(r.good); err != nil {
			return h, 0, false, err
		}
	}
	return h, r.good, true, nil
}

// countForeign counts the entries of another embedding.
func (s *Store) countForeign(r *reader) error {
	for {
		body, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if body[0] == kindPut {
			s.opened.Foreign++
		}
	}
}

// load fills the store from the records, and sets its clock.
func (s *Store) load(r *reader) error {
	names := map[string]string{}
	var last stamp
	for {
		body, err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		rec, err := readRecord(body, names)
		if err != nil {
			r.corrupt++
			continue
		}
		if rec.at.at >= last.at {
			last = rec.at
		}
		s.apply(&rec)
	}
	s.clock.goOn(last)
	s.settle()
	s.opened.Entries = s.queue.len
	s.stats.Deleted, s.stats.Evicted, s.stats.Expired = 0, 0, 0
	return nil
}

// apply applies one record to the store.
func (s *Store) apply(r *record) {
	switch r.kind {
	case kindPut:
		if old := s.index.find(r.item); old != nil {
			s.forget(old)
		}
		s.keep(r.item)
		s.evict(r.item, r.at)
	case kindDrop:
		if it := s.ids[r.id]; it != nil {
			s.forget(it)
		}
	}
}

// settle removes expired entries, and sets the wall-clock times of the others.
func (s *Store) settle() {
	now := s.clock.now()
	for it := s.queue.oldest; it != nil; {
		next := it.newer
		if it.deadline <= now {
			s.forget(it)
			s.opened.Expired++
		} else {
			it.entry.Created, it.entry.Expires = s.clock.time(it.created), s.clock.time(it.deadline)
		}
		it = next
	}
}
