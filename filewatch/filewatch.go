// When to look at files again: after the system tells of a change, and now and then.

// Package filewatch says when files are worth looking at again. Notifications of the
// system are hints that come late, doubled or not at all, so nothing is told of what
// changed: who gets one looks at the content and compares it.
//
//	w := filewatch.Start(filewatch.Notes())
//	w.Note([]string{"/etc/kvasir"})
//	for range w.C { ... look ... } // until w.Close()
package filewatch

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	quiet   = 100 * time.Millisecond // editors write in several steps
	patient = time.Second            // a directory where there is always something to note is looked at all the same

	// Poll is how often files are looked at where the system tells nothing: network file
	// systems, links into other trees.
	Poll = 5 * time.Second
)

// Notes are the notifications of the system, nil where it has none to give.
func Notes() *fsnotify.Watcher {
	notes, err := fsnotify.NewWatcher()
	if err != nil {
		return nil
	}
	return notes
}

// A Watcher sends on C when files should be looked at. C holds one look, however many
// came together, and is closed by Close.
type Watcher struct {
	C <-chan struct{}

	notes *fsnotify.Watcher // nil: only polls
	stop  chan struct{}
	ended chan struct{}
}

// Start starts a watcher, which owns notes from here on. Without notes it polls.
func Start(notes *fsnotify.Watcher) *Watcher {
	c := make(chan struct{}, 1)
	w := &Watcher{C: c, notes: notes, stop: make(chan struct{}), ended: make(chan struct{})}
	go w.run(c)
	return w
}

// Around are the directories in which a change of the file shows: its own, and that of
// what it links to.
func Around(file string) (dirs []string) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil
	}
	dirs = []string{filepath.Dir(abs)}
	if target, err := filepath.EvalSymlinks(abs); err == nil && filepath.Dir(target) != dirs[0] {
		dirs = append(dirs, filepath.Dir(target))
	}
	return dirs
}

// Read reads at most limit bytes of a file. One that is looked at again and again by
// itself must be a regular file: the reading of a pipe may never end.
func Read(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a pipe waits for its writer
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// Note makes these the directories that the system is asked about. One that cannot be,
// or is gone, is left to the poll, and asked about again by the next call.
func (w *Watcher) Note(dirs []string) {
	if w.notes == nil {
		return
	}
	// The system forgets a directory that is removed, so it is asked what it has.
	noted := w.notes.WatchList()
	for _, dir := range dirs {
		if !slices.Contains(noted, dir) {
			_ = w.notes.Add(dir)
		}
	}
	for _, dir := range noted {
		if !slices.Contains(dirs, dir) {
			_ = w.notes.Remove(dir)
		}
	}
}

// Noted are the directories that the system is asked about.
func (w *Watcher) Noted() []string {
	if w.notes == nil {
		return nil
	}
	return w.notes.WatchList()
}

func (w *Watcher) run(c chan<- struct{}) {
	defer close(w.ended)
	defer close(c)
	poll := time.NewTicker(Poll)
	defer poll.Stop()
	settled := time.NewTimer(quiet)
	settled.Stop()
	var since time.Time // of the first note that was not looked at yet; zero: none
	var events <-chan fsnotify.Event
	var errs <-chan error
	if w.notes != nil {
		events, errs = w.notes.Events, w.notes.Errors
	}
	for {
		select {
		case <-w.stop:
			return
		case <-events:
			now := time.Now()
			if since.IsZero() {
				since = now
			}
			settled.Reset(min(quiet, patient-now.Sub(since)))
			continue
		case <-errs: // lost notes; look
		case <-settled.C:
		case <-poll.C:
		}
		since = time.Time{}
		select {
		case c <- struct{}{}:
		default: // a look is due already
		}
	}
}

// Close stops the watcher and waits for it.
func (w *Watcher) Close() {
	close(w.stop)
	<-w.ended
	if w.notes != nil {
		_ = w.notes.Close()
	}
}
