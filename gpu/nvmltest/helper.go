// Helper: the telemetry helper, built for a test.

package nvmltest

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// Helper returns the program of gpu/helper for this machine, built once per test binary.
func Helper(tb testing.TB) []byte {
	tb.Helper()
	needCompiler(tb)
	program, err := helper()
	if err != nil {
		tb.Fatal(err)
	}
	return program
}

var helper = sync.OnceValues(func() ([]byte, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	return output(func(file string) *exec.Cmd {
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -extldflags=-Wl,-z,lazy", "-o", file, "./gpu/helper")
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1", "CGO_CFLAGS=-O2 -Wno-deprecated-declarations")
		return cmd
	})
})

// needCompiler skips the test if there is no C compiler.
func needCompiler(tb testing.TB) {
	tb.Helper()
	if _, err := exec.LookPath(compiler()); err == nil {
		return
	}
	if os.Getenv("KVASIR_REAL") == "required" {
		tb.Fatalf("the real part C compiler is missing: no %s", compiler())
	}
	tb.Skipf("SKIP real part: C compiler: no %s here", compiler())
}

// compiler returns the C compiler that cgo would use.
var compiler = sync.OnceValue(func() string {
	said, err := exec.Command("go", "env", "CC").Output()
	if name := strings.TrimSpace(string(said)); err == nil && name != "" {
		return name
	}
	return "cc"
})
