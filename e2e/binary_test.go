// The binary itself: static, and it knows its version.

package e2e

import (
	"debug/elf"
	"os/exec"
	"strings"
	"testing"
)

func TestBinaryIsStatic(t *testing.T) {
	file, err := elf.Open(binary(t))
	if err != nil {
		t.Skipf("not an ELF system: %v", err)
	}
	defer file.Close()
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP || segment.Type == elf.PT_DYNAMIC {
			t.Errorf("the binary has a %v segment: it is not static", segment.Type)
		}
	}
}

func TestVersion(t *testing.T) {
	out, err := exec.Command(binary(t), "version").Output()
	if err != nil || strings.TrimSpace(string(out)) == "" {
		t.Errorf("kvasir version: %q, %v", out, err)
	}
}

func TestUsageErrors(t *testing.T) {
	for _, args := range [][]string{{"no-such-command"}, {"serve", "--no-such-flag"}, {"serve", "--config", "no-such-file.yaml"}} {
		cmd := exec.Command(binary(t), args...)
		if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 2 {
			t.Errorf("kvasir %s: %v, want exit code 2", strings.Join(args, " "), err)
		}
	}
}
