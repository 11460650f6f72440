// Kind file: workers in a file, or in the files of a directory, looked at again whenever they change.

package discovery

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kvasir/filewatch"
)

// Bounds of what is read. maxRead is one byte more than a file of workers may have, so
// that Read notices a larger one; files that are named there, such as authorities, may
// be as large as those of the configuration.
const (
	maxFiles = 256
	maxRead  = 1<<20 + 1
	maxNamed = 4<<20 + 1

	// goneAfter is how long a file must be missing from its directory: one that is
	// replaced is, for a moment.
	goneAfter = time.Second
)

var fileKind = kind{
	name:  "file",
	keys:  []string{"path"},
	label: func(e *Entry) string { return e.Path },
	check: func(e *Entry) (key, wrong string) {
		if e.Path == "" {
			return "path", "is missing; name a file of workers, or a directory of such files, such as workers.d"
		}
		return "", ""
	},
	run: runFiles,
}

// files is what a source of this kind remembers between two looks.
type files struct {
	entry Entry
	known map[string]*workerFile // by path
}

// A workerFile is one file, as it was read and as it was last good.
type workerFile struct {
	sum     [sha256.Size]byte            // of the content that was read last
	named   map[string][sha256.Size]byte // of the files that it names
	workers []Worker                     // as of when it was last good
	err     error                        // what is wrong with it now
	missing time.Time                    // since when it is not in its directory; zero: it is
}

func runFiles(src *source) {
	f := &files{known: map[string]*workerFile{}}
	watchFiles(src, &looks{
		anew: func() {
			for _, file := range f.known {
				file.sum = [sha256.Size]byte{} // what it says may mean something else now
			}
		},
		around: func(e *Entry) []string {
			f.entry = *e
			return f.around()
		},
		look: func(now time.Time) (report, time.Duration) {
			r, missing := f.look(now)
			if missing {
				return r, goneAfter
			}
			return r, 0
		},
	})
}

// around are the directories in which a change shows.
func (f *files) around() []string {
	dirs := filewatch.Around(f.entry.Path)
	if abs, err := filepath.Abs(f.entry.Path); err == nil && isDir(abs) {
		dirs = append(dirs, abs)
		if target, err := filepath.EvalSymlinks(filepath.Join(abs, "..data")); err == nil {
			dirs = append(dirs, target) // of a mounted ConfigMap
		}
	}
	for path, file := range f.known {
		dirs = append(dirs, filewatch.Around(path)...)
		for named := range file.named {
			dirs = append(dirs, filewatch.Around(named)...)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// look reads what has changed. missing says that it should look again in a moment, since
// a file is missing.
func (f *files) look(now time.Time) (r report, missing bool) {
	paths, err := f.list()
	if err != nil {
		return report{err: err}, false
	}
	var wrong []error
	for _, path := range paths {
		if f.known[path] == nil {
			f.known[path] = &workerFile{}
		}
		f.known[path].missing = time.Time{}
	}
	for path, file := range f.known {
		switch {
		case slices.Contains(paths, path):
		case file.missing.IsZero():
			file.missing = now
			missing = true
		case now.Sub(file.missing) < goneAfter:
			missing = true
		default:
			delete(f.known, path)
		}
	}
	for _, path := range sortedKeys(f.known) {
		file := f.known[path]
		if file.missing.IsZero() {
			file.look(path, f.entry.Read)
		}
		if file.err != nil {
			wrong = append(wrong, file.err)
		}
		r.workers = append(r.workers, file.workers...)
	}
	r.err = errors.Join(wrong...)
	return r, missing
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// list are the files there are: the one that is named, or those of the directory that
// end in .yaml, .yml or .json. A name that begins with a dot is an editor's, or
// Kubernetes'.
func (f *files) list() ([]string, error) {
	if !isDir(f.entry.Path) {
		if _, err := os.Stat(f.entry.Path); err != nil {
			return nil, fmt.Errorf("cannot look at %s: %w", f.entry.Path, bare(err))
		}
		return []string{f.entry.Path}, nil
	}
	in, err := os.Open(f.entry.Path)
	if err != nil {
		return nil, fmt.Errorf("cannot look at %s: %w", f.entry.Path, bare(err))
	}
	defer in.Close()
	names, err := in.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("cannot look at %s: %w", f.entry.Path, bare(err))
	}
	var paths []string
	for _, name := range names {
		path := filepath.Join(f.entry.Path, name)
		if ext := filepath.Ext(name); strings.HasPrefix(name, ".") || ext != ".yaml" && ext != ".yml" && ext != ".json" || isDir(path) {
			continue
		}
		paths = append(paths, path)
	}
	if len(paths) > maxFiles {
		return nil, fmt.Errorf("%s has %d files of workers, more than %d", f.entry.Path, len(paths), maxFiles)
	}
	return paths, nil
}

// look reads the file if it, or a file that it names, has other content than before. What
// is wrong with it leaves its workers as they were.
func (w *workerFile) look(path string, read Read) {
	data, err := filewatch.Read(path, maxRead)
	if err != nil {
		w.err, w.sum = fmt.Errorf("cannot read %s: %w", path, bare(err)), [sha256.Size]byte{}
		return
	}
	if sum := sha256.Sum256(data); sum != w.sum || w.namedChanged() {
		w.sum = sum
	} else {
		return
	}
	if len(data) == 0 {
		// Who writes a file in place empties it first.
		w.err = fmt.Errorf("%s is empty; a file that has no workers says []", path)
		return
	}
	found, named, err := read(path, data)
	w.named, w.err = named, err
	if err != nil {
		return
	}
	w.workers = make([]Worker, len(found))
	for i, s := range found {
		w.workers[i] = Worker{Settings: s, From: path}
	}
}

// namedChanged says whether a file that this one names has other content than before.
func (w *workerFile) namedChanged() bool {
	for path, before := range w.named {
		data, _ := filewatch.Read(path, maxNamed) // one that cannot be read was read as nothing
		if sha256.Sum256(data) != before {
			return true
		}
	}
	return false
}

// bare is an error of package os without the operation and the path, which the message says.
func bare(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
