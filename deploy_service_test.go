// Tests of deploy/kvasir.service: that systemd takes it, and that it fits the package and the program. What a service
// manager hears is tested in command/serve, the package itself in e2e/real_deb_test.go.

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestServiceUnit has systemd-analyze look at the unit, with this program in the place of the installed one.
func TestServiceUnit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip(err)
	}
	self, err := os.Executable()
	do(t, err)
	unit := filepath.Join(t.TempDir(), "kvasir.service")
	text := read(t, "deploy/kvasir.service")
	do(t, os.WriteFile(unit, []byte(strings.ReplaceAll(text, "/usr/bin/kvasir", self)), 0o600))
	// It says what it does not know, and ends with 0.
	if out, err := exec.Command("systemd-analyze", "verify", unit).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v: %s", err, out)
	}
	// From 0, closed in, to 100; a unit without any of this has 96.
	if out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", unit).CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze security: %v: %s", err, out)
	}
	for _, want := range []string{"\nType=notify\n", "\nLimitNOFILE=1048576\n", "\nExecReload=/bin/kill -HUP $MAINPID\n", "\nUser=kvasir\n", "\nStateDirectory=kvasir\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the unit lacks %q", want)
		}
	}
}

// TestServicePackage: what the unit names is where the package puts it.
func TestServicePackage(t *testing.T) {
	t.Parallel()
	var p struct {
		Contents []struct{ Src, Dst, Type string }
		Scripts  map[string]string
	}
	do(t, yaml.Unmarshal([]byte(read(t, "deploy/deb/nfpm.yaml")), &p))
	unit := read(t, "deploy/kvasir.service")
	for _, path := range []string{"/usr/bin/kvasir", "/etc/kvasir/kvasir.yaml", "/etc/default/kvasir"} {
		found := false
		for _, c := range p.Contents {
			if c.Dst != path {
				continue
			}
			found = true
			if _, err := os.Stat(c.Src); err != nil && c.Src != "bin/kvasir" {
				t.Errorf("%s: %v", path, err)
			}
			if strings.HasPrefix(path, "/etc/") != (c.Type == "config|noreplace") {
				t.Errorf("%s is packed as %q", path, c.Type)
			}
		}
		if !found || !strings.Contains(unit, path) {
			t.Errorf("%s: packed %t, in the unit %t", path, found, strings.Contains(unit, path))
		}
	}
	for _, script := range p.Scripts {
		if out, err := exec.Command("sh", "-n", script).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", script, err, out)
		}
	}
}
