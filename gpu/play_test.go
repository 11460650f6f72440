// Play: the test binary itself, started as a helper that follows a script.

package gpu

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	switch os.Args[0] {
	case "kvasir-gpu":
		play()
	case "kvasir-parent":
		parent()
	}
	goleak.VerifyTestMain(m)
}

// parent is a process with telemetry, from a given library and, optionally, a given helper. It
// prints a line once every GPU is ok.
func parent() {
	helper := self()
	if len(os.Args) > 2 {
		helper = []byte(read(os.Args[2]))
	}
	m := Start(Options{Library: os.Args[1], Helper: helper})
	for f := m.Fleet(time.Now()); f.State != OK || slices.ContainsFunc(f.GPUs, func(g GPU) bool { return g.State != OK }); f = m.Fleet(time.Now()) {
		time.Sleep(time.Millisecond)
	}
	fmt.Println("ok")
	select {}
}

// self returns this test binary, the helper program of every stage.
var self = sync.OnceValue(func() []byte {
	name, err := os.Executable()
	if err != nil {
		panic(err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return b
})

// A stage is a file in the place of the driver's library: a helper that gets its path plays its
// lines. Each start records its process id in a file beside it.
type stage struct {
	t    *testing.T
	file string
}

func newStage(t *testing.T, lines ...string) *stage {
	s := &stage{t, filepath.Join(t.TempDir(), libraryName)}
	s.plays(lines...)
	return s
}

// plays sets the lines for the next helper, or for one that waits in repeat.
func (s *stage) plays(lines ...string) {
	s.t.Helper()
	next := s.file + ".next"
	if err := os.WriteFile(next, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(next, s.file); err != nil {
		s.t.Fatal(err)
	}
}

// processes returns the ids of the processes started so far, in order.
func (s *stage) processes() []int {
	s.t.Helper()
	b, err := os.ReadFile(s.file + ".started")
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	var pids []int
	for line := range strings.Lines(string(b)) {
		var pid int
		if n, _ := fmt.Sscanf(line, "%d\n", &pid); n == 1 && strings.HasSuffix(line, "\n") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// play executes the lines of the stage one after the other and ends:
//
//	print TEXT    a line
//	part TEXT     a line without its end
//	long N        a line of so many bytes
//	say TEXT      to stderr
//	flood TEXT    the line as fast as it goes
//	shout TEXT    to stderr as fast as it goes
//	child         starts a process that has its output open until the stage has other lines
//	deaf          SIGTERM is not heard from here on
//	repeat        what follows, each interval, until the stage has other lines: those come next
//	exit N
func play() {
	interval, err := time.ParseDuration(os.Args[1])
	if err != nil {
		os.Exit(8)
	}
	library := os.Args[2]
	script := read(library) // a test that waits for the start may then set other lines
	started, err := os.OpenFile(library+".started", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		os.Exit(8)
	}
	fmt.Fprintln(started, os.Getpid())
	started.Close()
	for {
		once, again, repeats := strings.Cut(script, "repeat\n")
		perform(once)
		if !repeats {
			os.Exit(0)
		}
		for script == read(library) {
			perform(again)
			time.Sleep(interval) // like a helper between two polls
		}
		script = read(library)
	}
}

func perform(lines string) {
	for line := range strings.Lines(lines) {
		verb, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		n := 0
		_, _ = fmt.Sscan(text, &n)
		switch verb {
		case "print":
			fmt.Println(text)
		case "part":
			fmt.Print(text)
		case "long":
			fmt.Println(strings.Repeat("x", n))
		case "say":
			fmt.Fprintln(os.Stderr, text)
		case "flood":
			for {
				fmt.Println(text)
			}
		case "shout":
			for {
				fmt.Fprintln(os.Stderr, text)
			}
		case "child":
			cmd := exec.Command("/bin/sh", "-c", `while grep -qs ^child "$1"; do sleep 0.1; done`, "sh", os.Args[2])
			cmd.Stdout = os.Stdout
			if err := cmd.Start(); err != nil {
				panic(err)
			}
		case "deaf":
			signal.Ignore(syscall.SIGTERM)
		case "exit":
			os.Exit(n)
		}
	}
}

func read(file string) string {
	b, err := os.ReadFile(file)
	if err != nil { // the test is over
		os.Exit(8)
	}
	return string(b)
}
