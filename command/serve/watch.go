// Watch: notices when one of the configuration's files has new content.

package serve

import (
	"crypto/sha256"
	"maps"
	"os"
	"sync"

	"github.com/fsnotify/fsnotify"

	"kvasir/config"
	"kvasir/filewatch"
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
	looks   *filewatch.Watcher
	ended   chan struct{}

	mu   sync.Mutex // guards read
	read config.Contents
}

// newWatcher starts a watcher. Without notes it looks every filewatch.Poll.
func newWatcher(notes *fsnotify.Watcher, changed func()) *watcher {
	w := &watcher{changed: changed, looks: filewatch.Start(notes), ended: make(chan struct{})}
	go w.run()
	return w
}

// set says which files to watch and what was read of them.
func (w *watcher) set(read config.Contents) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read = maps.Clone(read)
	var dirs []string
	for file := range w.read {
		// A pipe can be read once, and reading it again would wait forever.
		if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
			delete(w.read, file)
			continue
		}
		dirs = append(dirs, filewatch.Around(file)...)
	}
	w.looks.Note(dirs)
}

func (w *watcher) run() {
	defer close(w.ended)
	for range w.looks.C {
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
	w.looks.Close()
	<-w.ended
}
