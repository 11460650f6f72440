// Tests of the program in memory.

//go:build linux

package gpu

import (
	"errors"
	"strings"
	"testing"
)

// TestSealed: the program that runs is the one that was decompressed.
func TestSealed(t *testing.T) {
	f, err := memfd(strings.NewReader("program"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 10)
	if n, _ := f.ReadAt(b, 0); string(b[:n]) != "program" {
		t.Errorf("it holds %q", b[:n])
	}
	if _, err := f.WriteAt([]byte("x"), 0); err == nil {
		t.Error("it can be written")
	}
	if err := f.Truncate(0); err == nil {
		t.Error("it can be cut")
	}
}

func TestEnvironment(t *testing.T) {
	got := environment([]string{"OPENAI_API_KEY=secret", "LD_LIBRARY_PATH=/a", "KVASIR_X=1", "NVIDIA_VISIBLE_DEVICES=all", "PATHS=/b", "PATH=/c"})
	if want := "LD_LIBRARY_PATH=/a NVIDIA_VISIBLE_DEVICES=all PATH=/c"; strings.Join(got, " ") != want {
		t.Errorf("the helper gets %q, want %q", got, want)
	}
}

func TestTail(t *testing.T) {
	var b tail
	for _, tt := range []struct{ write, want string }{
		{"", ""}, {"one\ntwo\n\n", "two"}, {"th\x1bree", "th?ree"},
		{strings.Repeat("x", 5000), strings.Repeat("x", 300)}, {"\nlast\n", "last"},
	} {
		if n, err := b.Write([]byte(tt.write)); n != len(tt.write) || err != nil {
			t.Errorf("wrote %d, %v", n, err)
		}
		if got := b.lastLine(); got != tt.want {
			t.Errorf("after %.20q the last line is %q, want %q", tt.write, got, tt.want)
		}
		if len(b.b) > maxTail {
			t.Errorf("it keeps %d bytes", len(b.b))
		}
	}
}

// TestStartsThatFail: starts that may succeed next time are distinguished from those that never
// will.
func TestStartsThatFail(t *testing.T) {
	if err := refused(errors.New("resource temporarily unavailable")); err != nil {
		t.Errorf("it is given up: %v", err)
	}
}
