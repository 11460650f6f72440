// Tests of kind file, with sources as a configuration names them and files as it reads them.

package discovery_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"kvasir/command/wiring"
	"kvasir/config"
	"kvasir/discovery"
	"kvasir/logtest"
	"kvasir/upstream"
)

// A running is a set of sources by a configuration.
type running struct {
	t       *testing.T
	set     *discovery.Set
	changes chan struct{} // one element for each call of Changed
	log     logtest.Buffer
}

// entries are those of discovery in a configuration.
func entries(t *testing.T, text string) []discovery.Entry {
	t.Helper()
	g, _, err := (&config.Layers{BuiltIn: []byte("simulate: [{}]\ndiscovery: [" + text + "]")}).Load()
	do(t, err)
	return wiring.Sources(g)
}

func start(t *testing.T, text string) *running {
	t.Helper()
	r := &running{t: t, changes: make(chan struct{}, 1000)}
	r.set = discovery.Start(discovery.Options{Log: zerolog.New(&r.log), Changed: func() { r.changes <- struct{}{} }})
	t.Cleanup(r.set.Close)
	r.set.Follow(entries(t, text))
	r.set.Settle(20 * time.Second)
	return r
}

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	do(t, os.WriteFile(file, []byte(text), 0o600))
}

// list is a file of workers at these ports.
func list(ports ...int) string {
	text := "[]"
	for i, p := range ports {
		if i == 0 {
			text = ""
		}
		text += fmt.Sprintf("- url: http://h:%d\n", p)
	}
	return text
}

// holds is the workers of all sources, in short, and what is wrong with the first one.
func (r *running) holds() (workers, problem string) {
	var all []string
	for _, w := range discovery.Merge(nil, r.set.Found()).Workers {
		all = append(all, strings.TrimPrefix(w.URL, "http://h:"))
	}
	for _, s := range r.set.Status() {
		problem += s.Problem
	}
	return strings.Join(all, " "), problem
}

// until waits for workers, and for a problem with these words; "": none.
func (r *running) until(after, workers, problem string) {
	r.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for {
		got, is := r.holds()
		if got == workers && strings.Contains(is, problem) && (problem != "" || is == "") {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			r.t.Fatalf("%s: %q with problem %q, want %q with %q", after, got, is, workers, problem)
		}
	}
}

func TestFileWaysToReplace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two := filepath.Join(dir, "1.yaml"), filepath.Join(dir, "2.json")
	write(t, one, list(1))
	write(t, two, `[{"url": "http://h:2"}]`)
	write(t, filepath.Join(dir, "notes.txt"), "not workers")
	write(t, filepath.Join(dir, ".3.yaml.swp"), list(3))
	do(t, os.Mkdir(filepath.Join(dir, "old.yaml"), 0o700))
	r := start(t, fmt.Sprintf("{kind: file, path: %q, grace: 0s}", dir))
	r.until("started", "1 2", "")

	write(t, one, list(11))
	r.until("written in place", "11 2", "")
	write(t, one+".new", list(12))
	do(t, os.Rename(one+".new", one))
	r.until("another file renamed over it", "12 2", "")
	do(t, os.Rename(one, one+"~"))
	write(t, one, list(13))
	r.until("moved away and made anew", "13 2", "")
	write(t, one, "")
	r.until("emptied, as before it is written", "13 2", "1.yaml is empty; a file that has no workers says []")
	write(t, one, list(14))
	r.until("and written", "14 2", "")
	write(t, one, list())
	r.until("an empty list", "2", "")
	do(t, os.Remove(two))
	r.until("removed", "", "")
	write(t, filepath.Join(dir, "3.yml"), list(3))
	r.until("a new file", "3", "")
}

// TestFileBad: what is wrong with one file leaves its workers as they were, and the other
// files go on. It is logged once.
func TestFileBad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two := filepath.Join(dir, "1.yaml"), filepath.Join(dir, "2.yaml")
	write(t, one, list(1))
	write(t, two, list(2))
	r := start(t, fmt.Sprintf("{kind: file, path: %q}", dir))
	r.until("started", "1 2", "")
	for i, bad := range []struct{ text, want string }{
		{"- url: http://h:9\n  rol: both\n", `1.yaml:2:3: workers[0].rol: unknown key, did you mean "role"?`},
		{"- {url: h:9}\n", `1.yaml:1:9: workers[0].url: "h:9" has no scheme`},
		{"- [", "1.yaml:1:1: this is not YAML"},
		{"- {url: http://h:9, max_requests: x}\n", "must be a whole number"},
		{"\xff\xfe", "1.yaml:1:1: the file is not UTF-8 here"},
		{strings.Repeat("#", 1<<20+1), "1.yaml:1:1: the file is larger than 1 MiB"},
	} {
		write(t, one, bad.text)
		write(t, two, list(20+i))
		r.until(bad.want, fmt.Sprintf("1 %d", 20+i), bad.want)
	}
	if n := strings.Count(r.log.String(), "did you mean"); n != 2 { // unknown key, and no scheme
		t.Errorf("it is told %d times:\n%s", n, r.log.String())
	}
	write(t, one, list(3))
	r.until("mended", "3 25", "")
	if !strings.Contains(r.log.String(), "is well again") {
		t.Errorf("the log says:\n%s", r.log.String())
	}
}

// TestFileKubernetes swaps the link ..data, as a mounted ConfigMap does.
func TestFileKubernetes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for v := 1; v <= 3; v++ {
		do(t, os.Mkdir(filepath.Join(dir, fmt.Sprintf("..v%d", v)), 0o700))
		write(t, filepath.Join(dir, fmt.Sprintf("..v%d", v), "w.yaml"), list(v))
	}
	do(t, os.Symlink("..v1", filepath.Join(dir, "..data")))
	do(t, os.Symlink("..data/w.yaml", filepath.Join(dir, "w.yaml")))
	r := start(t, fmt.Sprintf("{kind: file, path: %q}", dir))
	r.until("started", "1", "")
	for v := 2; v <= 3; v++ {
		do(t, os.Symlink(fmt.Sprintf("..v%d", v), filepath.Join(dir, "..data_tmp")))
		do(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
		do(t, os.RemoveAll(filepath.Join(dir, fmt.Sprintf("..v%d", v-1))))
		r.until("..data swapped", fmt.Sprint(v), "")
	}
}

// TestFileDirectoryComesAndGoes: a directory that is not there says nothing about workers.
func TestFileDirectoryComesAndGoes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "workers.d")
	r := start(t, fmt.Sprintf("{kind: file, path: %q, grace: 0s}", dir))
	r.until("not there yet", "", "no such file or directory")
	do(t, os.Mkdir(dir, 0o700))
	write(t, filepath.Join(dir, "w.yaml"), list(1))
	r.until("it came", "1", "")
	do(t, os.Rename(dir, dir+".old"))
	r.until("it went", "1", "no such file or directory")
	do(t, os.Mkdir(dir, 0o700))
	write(t, filepath.Join(dir, "w.yaml"), list(2))
	r.until("another one came", "2", "")
}

// TestFileGrace: a list that becomes empty is believed after the grace; a file that is gone
// for longer than a moment has no workers, too.
func TestFileGrace(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "w.yaml")
	write(t, file, list(1))
	r := start(t, fmt.Sprintf("{kind: file, path: %q, grace: 200ms}", file))
	r.until("started", "1", "")
	write(t, file, "[]")
	r.until("the grace is over", "", "")
	if !strings.Contains(r.log.String(), "has none any more") {
		t.Errorf("the log says:\n%s", r.log.String())
	}
	write(t, file, list(2))
	r.until("there are some again", "2", "")
	do(t, os.Remove(file)) // the one file that the entry names: nothing is known then
	r.until("gone", "2", "no such file or directory")
}

// TestFileKeys: a key that a file names is read again when it changes.
func TestFileKeys(t *testing.T) {
	t.Parallel()
	dir, keys := t.TempDir(), t.TempDir()
	key := filepath.Join(keys, "one.key")
	write(t, key, "sk-1")
	write(t, filepath.Join(dir, "w.yaml"), fmt.Sprintf("- {url: http://h:1, key_file: %q}\n", key))
	r := start(t, fmt.Sprintf("{kind: file, path: %q}", dir))
	r.until("started", "1", "")
	<-r.changes
	write(t, key, "sk-2")
	<-r.changes
	if got := r.set.Found()[0].Workers[0].Headers["Authorization"]; got != "Bearer sk-2" {
		t.Errorf("it is sent %q", got)
	}
}

// TestFileBounds: too many files are an error, which changes nothing.
func TestFileBounds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "w.yaml"), list(1))
	r := start(t, fmt.Sprintf("{kind: file, path: %q}", dir))
	r.until("started", "1", "")
	for i := range 257 {
		write(t, filepath.Join(dir, fmt.Sprintf("%d.yaml", i)), "[]")
	}
	r.until("many files", "1", "has 258 files of workers, more than 256")
	ports := make([]int, 4097)
	for i := range ports {
		ports[i] = i + 1
	}
	big := filepath.Join(t.TempDir(), "w.yaml")
	write(t, big, list(ports...))
	start(t, fmt.Sprintf("{kind: file, path: %q}", big)).until("many workers", "", "it has 4097 workers, more than 4096")
}

// TestFollow: at a reload a source whose entry stays goes on with what it knows, also if
// that can no longer be read; one that says other things of its workers begins with
// what was known there.
func TestFollow(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	dir := t.TempDir()
	one, two := filepath.Join(dir, "1.yaml"), filepath.Join(dir, "2.yaml")
	write(t, one, list(1))
	write(t, two, list(2))
	first, second := fmt.Sprintf("{kind: file, path: %q}", one), fmt.Sprintf("{kind: file, path: %q}", two)
	r := start(t, first+", "+second)
	r.until("started", "1 2", "")
	do(t, os.Remove(one))
	r.until("gone", "1 2", "no such file or directory")
	follow := func(text string) {
		r.set.Follow(entries(t, text))
		r.set.Settle(20 * time.Second)
	}
	follow(first)
	r.until("one source less", "1", "no such file or directory")
	follow(second + ", " + first)
	r.until("and again, in another order", "2 1", "no such file or directory")
	follow(strings.Replace(first, "}", ", role: decode}", 1) + ", " + strings.Replace(second, "}", ", role: decode}", 1))
	r.until("with other roles", "1 2", "no such file or directory")
	if got := r.set.Found()[1].Workers[0].Role; got != "decode" {
		t.Errorf("the role is %s", got)
	}
	write(t, one, list(3))
	r.until("it came back", "3 2", "")
	follow("")
	r.until("no source", "", "")
}

// TestChangedIsPaced: workers that come and go all the time cost few changes.
func TestChangedIsPaced(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "w.yaml")
	write(t, file, list(1))
	r := start(t, fmt.Sprintf("{kind: file, path: %q}", file))
	<-r.changes
	began := time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	port := 2
	for ; time.Since(began) < 3*time.Second; port++ {
		<-tick.C
		write(t, file+".new", list(port))
		do(t, os.Rename(file+".new", file))
	}
	r.until("the last one", fmt.Sprint(port-1), "")
	if n, most := len(r.changes), int(time.Since(began)/(500*time.Millisecond))+1; n > most || n == 0 {
		t.Errorf("%d changes in %v", n, time.Since(began))
	}
}

// TestFileBadAtReload: a file that is bad just now keeps its workers also where the entry of
// its directory changes meanwhile.
func TestFileBadAtReload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one := filepath.Join(dir, "1.yaml")
	write(t, one, list(1))
	write(t, filepath.Join(dir, "2.yaml"), list(2))
	r := start(t, fmt.Sprintf("{kind: file, path: %q}", dir))
	r.until("started", "1 2", "")
	write(t, one, "- {url: http://127.0.0.1:1, rol: both}\n")
	r.until("bad", "1 2", "did you mean")
	r.set.Follow(entries(t, fmt.Sprintf("{kind: file, path: %q, grace: 11s}", dir)))
	r.set.Settle(20 * time.Second)
	r.until("reloaded", "1 2", "did you mean")
}

// TestFileReadAnew: a source whose entry is the same reads by the new one all the same: it knows other names for the same
// keys.
func TestFileReadAnew(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "w.yaml")
	write(t, file, list(1))
	r := start(t, fmt.Sprintf("{kind: file, path: %q}", file))
	r.until("started", "1", "")
	e := entries(t, fmt.Sprintf("{kind: file, path: %q}", file))
	read, by := e[0].Read, make(chan struct{}, 100)
	e[0].Read = func(file string, data []byte) ([]upstream.Settings, map[string][32]byte, error) {
		by <- struct{}{}
		return read(file, data)
	}
	r.set.Follow(e)
	write(t, file, list(2))
	r.until("changed", "2", "")
	if len(by) == 0 {
		t.Error("it was read by the entry of before")
	}
}
