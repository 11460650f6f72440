package filewatch

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	do(t, os.WriteFile(file, []byte("12345"), 0o600))
	do(t, syscall.Mkfifo(pipe, 0o600))
	if data, err := Read(file, 3); err != nil || string(data) != "123" {
		t.Errorf("%q, %v", data, err)
	}
	for _, path := range []string{pipe, dir} {
		if _, err := Read(path, 3); err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := Read(filepath.Join(dir, "none"), 3); !os.IsNotExist(err) {
		t.Errorf("the error is %v", err)
	}
}

// TestLooks: a change of a directory is told of, also where it was removed and made anew.
func TestLooks(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	dir := filepath.Join(t.TempDir(), "d")
	do(t, os.Mkdir(dir, 0o700))
	w := Start(Notes())
	defer w.Close()
	w.Note([]string{dir})
	told := func(what string) {
		t.Helper()
		select {
		case <-w.C:
		case <-time.After(30 * time.Second):
			t.Fatalf("%s was not told of", what)
		}
	}
	do(t, os.WriteFile(filepath.Join(dir, "f"), nil, 0o600))
	told("a new file")
	do(t, os.RemoveAll(dir))
	told("the directory that is gone")
	do(t, os.Mkdir(dir, 0o700))
	w.Note([]string{dir})
	if n := w.Noted(); len(n) != 1 || n[0] != dir {
		t.Errorf("%v are noted", n)
	}
}

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
