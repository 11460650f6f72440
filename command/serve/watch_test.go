// Tests of the watcher: every way in which files are replaced.

package serve

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"

	"kvasir/config"
	"kvasir/filewatch"
)

// notedWatcher watches files by notes of the system; the channel has one
// element for each call of changed.
func notedWatcher(t *testing.T, files ...string) (*watcher, <-chan struct{}) {
	t.Helper()
	notes, err := fsnotify.NewWatcher()
	if err != nil {
		t.Skipf("no notes of changed files here: %v", err)
	}
	calls := make(chan struct{}, 100)
	w := newWatcher(notes, func() { calls <- struct{}{} })
	t.Cleanup(w.close)
	w.set(readNow(t, files...))
	return w, calls
}

func readNow(t *testing.T, files ...string) config.Contents {
	t.Helper()
	read := config.Contents{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		read[f] = sha256.Sum256(data)
	}
	return read
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wait(t *testing.T, calls <-chan struct{}, after string) {
	t.Helper()
	select {
	case <-calls:
	case <-time.After(20 * time.Second):
		t.Fatalf("nothing was noticed after: %s", after)
	}
}

func TestWatchWaysToReplace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	write(t, file, "1")
	_, calls := notedWatcher(t, file)

	write(t, file, "2")
	wait(t, calls, "written in place")

	write(t, file+".new", "3")
	do(t, os.Rename(file+".new", file))
	wait(t, calls, "another file renamed over it")

	// vim: the old one is moved away, and a new one made.
	do(t, os.Rename(file, file+"~"))
	write(t, file, "4")
	wait(t, calls, "moved away and made anew")

	do(t, os.Remove(file))
	write(t, file, "5")
	wait(t, calls, "removed and made anew")
	write(t, file, "6")
	wait(t, calls, "written once more")
}

// TestWatchKubernetes swaps the link ..data, as a mounted ConfigMap does.
func TestWatchKubernetes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, v := range []string{"1", "2", "3"} {
		do(t, os.Mkdir(filepath.Join(dir, "..v"+v), 0o700))
		write(t, filepath.Join(dir, "..v"+v, "config.yaml"), v)
	}
	do(t, os.Symlink("..v1", filepath.Join(dir, "..data")))
	file := filepath.Join(dir, "config.yaml")
	do(t, os.Symlink("..data/config.yaml", file))
	_, calls := notedWatcher(t, file)
	for _, v := range []string{"2", "3"} {
		do(t, os.Symlink("..v"+v, filepath.Join(dir, "..data_tmp")))
		do(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
		wait(t, calls, "..data swapped to version "+v)
	}
}

// TestWatchNewSet follows to other files, and is quiet about the old ones and
// about content that is known.
func TestWatchNewSet(t *testing.T) {
	t.Parallel()
	one, two := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	write(t, one, "1")
	write(t, two, "1")
	w, calls := notedWatcher(t, one)
	w.set(readNow(t, two))
	write(t, one, "2")
	write(t, two, "1") // touched, but the same
	write(t, two, "2")
	wait(t, calls, "second file written")
	if dirs := w.looks.Noted(); len(dirs) != 1 {
		t.Errorf("directories are %v", dirs)
	}
	write(t, two, "3")
	wait(t, calls, "second file written again")
	if len(calls) != 0 {
		t.Errorf("%d calls too many", len(calls))
	}
}

// TestWatchPoll has no notes: content alone tells, once for each change. A
// file that is gone is no change.
func TestWatchPoll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	write(t, file, "1")
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		w := newWatcher(nil, func() { calls++ })
		defer w.close()
		w.set(readNow(t, file))
		look := func(want int, what string) {
			time.Sleep(filewatch.Poll)
			synctest.Wait()
			if calls != want {
				t.Errorf("%s: %d calls, want %d", what, calls, want)
			}
		}
		look(0, "nothing happened")
		write(t, file, "2")
		look(1, "written")
		look(1, "nothing happened since")
		do(t, os.Remove(file))
		look(1, "removed")
		write(t, file, "2")
		look(1, "back as it was")
		write(t, file, "3")
		look(2, "written again")
	})
}

// TestLargeFilesAreReadAlike: what load has read of a file that is too large is
// what the watcher reads of it, so that it is told once and not at every look.
func TestLargeFilesAreReadAlike(t *testing.T) {
	t.Parallel()
	for _, bytes := range []int{1<<20 + 2, config.MaxRead + 1} {
		file := filepath.Join(t.TempDir(), "large.yaml")
		write(t, file, strings.Repeat("#", bytes))
		_, read, err := (&config.Layers{File: file}).Load()
		if err == nil || !strings.HasSuffix(err.Error(), "large.yaml:1:1: the file is larger than 1 MiB") {
			t.Fatalf("%d bytes: error is %v", bytes, err)
		}
		if w := (&watcher{read: read}); w.differs() {
			t.Errorf("%d bytes: the watcher reads another content", bytes)
		}
	}
}
