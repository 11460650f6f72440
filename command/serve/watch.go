// Watch: notices when one of the configuration's files has new content.

package serve

import (
	"crypto/sha256"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"kvasir/config"
)

const (
	watchQuiet = 100 * time.Millisecond // editors write in several steps
	watchPoll  = 5 * time.Second        // where the system tells nothing: network file systems, links into other trees
)

// A watcher compares files with what was last read of them, and calls changed
// when one differs. Notifications of the system about their directories only
// make it look at once; what counts is the content. So it does not matter how a file
// changes: written in place, renamed over, or behind a link that is swapped,
// as Kubernetes does. A file that is gone is no change: it may be on its way.
//
// koanf's own watch of a file ends for good when the file is missing for a
// moment, and sees one file, not certificates.
type watcher struct {
	changed func()
	notes   *fsnotify.Watcher // nil: only polls

	mu    sync.Mutex // guards the fields below
	read  config.Contents
	dirs  map[string]bool // noted by the system
	stop  chan struct{}
	ended chan struct{}
}

// newWatcher starts a watcher. Without notes it looks every watchPoll.
func newWatcher(notes *fsnotify.Watcher, changed func()) *watcher {
	w := &watcher{changed: changed, notes: notes, dirs: map[string]bool{}, stop: make(chan struct{}), ended: make(chan struct{})}
	go w.run()
	return w
}

// set says which files to watch and what was read of them.
func (w *watcher) set(read config.Contents) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read = maps.Clone(read)
	for file := range w.read {
		// A pipe can be read once, and reading it again would wait forever.
		if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
			delete(w.read, file)
		}
	}
	if w.notes == nil {
		return
	}
	want := map[string]bool{}
	for file := range w.read {
		if abs, err := filepath.Abs(file); err == nil {
			want[filepath.Dir(abs)] = true
			if target, err := filepath.EvalSymlinks(abs); err == nil {
				want[filepath.Dir(target)] = true
			}
		}
	}
	for dir := range want {
		// An error leaves this directory to the poll.
		if !w.dirs[dir] && w.notes.Add(dir) == nil {
			w.dirs[dir] = true
		}
	}
	for dir := range w.dirs {
		if !want[dir] {
			_ = w.notes.Remove(dir)
			delete(w.dirs, dir)
		}
	}
}

func (w *watcher) run() {
	defer close(w.ended)
	poll := time.NewTicker(watchPoll)
	defer poll.Stop()
	quiet := time.NewTimer(watchQuiet)
	quiet.Stop()
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
			quiet.Reset(watchQuiet)
			continue
		case <-errs: // lost notes; look
		case <-quiet.C:
		case <-poll.C:
		}
		if w.differs() {
			w.changed()
		}
	}
}

// differs says whether a file has other content than what was read of it.
// Its new content counts as read then, so that it is told once.
func (w *watcher) differs() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	differs := false
	for file, before := range w.read {
		data, err := config.ReadBounded(file)
		if err != nil {
			continue
		}
		if now := sha256.Sum256(data); now != before {
			w.read[file], differs = now, true
		}
	}
	return differs
}

// close stops the watcher and waits for a call of changed that is under way.
func (w *watcher) close() {
	close(w.stop)
	<-w.ended
	if w.notes != nil {
		_ = w.notes.Close()
	}
}
