// The store survives kill -9 in the middle of writes.

package embedded

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kvasir/cache"
)

// childPath is the environment variable set in the process that will be killed.
const childPath = "KVASIR_TEST_KILLED_STORE"

func TestMain(m *testing.M) {
	if path := os.Getenv(childPath); path != "" {
		writeUntilKilled(path)
	}
	os.Exit(m.Run())
}

// writeUntilKilled puts and deletes from many goroutines, prints a line after each, and rewrites
// the file at the same time.
func writeUntilKilled(path string) {
	s, err := Open(Options{Path: path})
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := 0; ; i++ {
				e := newEntry(cache.Scope{1}, fmt.Sprint(os.Getpid(), " ", worker, " ", i), 100*worker)
				v := randomEmbedding(rand.New(rand.NewPCG(1, uint64(i))), nil, 0)
				if err := s.Put(e, &v); err != nil {
					fmt.Println("failed", err)
				}
				_, _ = fmt.Fprintf(os.Stdout, "put %s %s\n", e.ID, e.Text)
				if i%5 == 4 {
					if n, err := s.Delete(cache.Filter{ID: &e.ID}); n != 1 || err != nil {
						fmt.Println("failed", n, err)
					}
					_, _ = fmt.Fprintf(os.Stdout, "deleted %s %s\n", e.ID, e.Text)
				}
			}
		})
	}
	for {
		if err := s.rewrite(); err != nil {
			fmt.Println("failed", err)
		}
	}
}

func TestKilledAtAnyMoment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	said := map[string]string{} // by text: put or deleted
	kills := 8
	if testing.Short() {
		kills = 2
	}
	for range kills {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childPath+"="+path)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for left := 1 + rand.IntN(1000); lines.Scan(); left-- {
			if left == 0 {
				if err := child.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			what, rest, _ := strings.Cut(lines.Text(), " ")
			_, text, whole := strings.Cut(rest, " ")
			if what == "failed" {
				t.Error(lines.Text())
			} else if whole {
				said[text] = what
			}
		}
		_ = child.Wait() // killed

		s, err := Open(Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		for text, what := range said {
			e, err := s.Equal(cache.Scope{1}, []byte(text), time.Time{})
			if err != nil || what == "put" && e == nil && !deletable(text) || what == "deleted" && e != nil {
				t.Errorf("%q was %s, found: %v, %v", text, what, e != nil, err)
			}
		}
		if o := s.Opened(); o.Corrupt != 0 {
			t.Errorf("opened %+v", o)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(said) < 100*kills {
		t.Errorf("only %d were said to be put", len(said))
	}
}

// deletable reports whether the child deletes the entry after the put: a delete may be done and
// not yet printed.
func deletable(text string) bool {
	var pid, worker, i int
	_, err := fmt.Sscan(text, &pid, &worker, &i)
	return err == nil && i%5 == 4
}
