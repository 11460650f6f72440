//go:build real

// The archives of `make release-snapshot`, unpacked as a user would (make test-real REAL=release).

package e2e

import (
	"debug/elf"
	"debug/macho"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestRealRelease wants four archives that are whole, whose checksums are right, with binaries for the machines that
// their names say; that for this machine runs, and is the one of make build, byte for byte.
func TestRealRelease(t *testing.T) {
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "checksums.txt")
	check.Dir = "../bin/release"
	if out, err := check.CombinedOutput(); err != nil || strings.Count(string(out), ": OK\n") != 8 {
		t.Errorf("checksums: %v\n%s", err, out)
	}
	for _, target := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"} {
		t.Run(target, func(t *testing.T) {
			files, err := filepath.Glob("../bin/release/kvasir_*_" + target + ".tar.gz")
			if err != nil || len(files) != 1 {
				t.Fatalf("the archives are %v, %v", files, err)
			}
			folder := t.TempDir()
			command(t, "tar", "--extract", "--strip-components=1", "--file", files[0], "--directory", folder)
			for _, name := range []string{
				"LICENSE", "NOTICE", "README.md", "docs/README.md", "docs/pictures/kvasir.svg", "deploy/helm/kvasir/Chart.yaml",
				"config.yaml", "licences.tar.gz", "man/man1/kvasir.1", "man/man1/kvasir-serve.1",
				"completions/kvasir.bash", "completions/_kvasir", "completions/kvasir.fish",
			} {
				if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Size() == 0 {
					t.Errorf("%s: %v", name, err)
				}
			}
			for _, dir := range []string{"docs", "deploy/helm/kvasir", "deploy/grafana", "deploy/prometheus"} {
				if got, want := filesBelow(t, folder, dir), strings.Fields(command(t, "git", "-C", "..", "ls-files", dir)); !slices.Equal(got, want) {
					t.Errorf("%s has\n%q\nand git has\n%q", dir, got, want)
				}
			}
			kvasir := filepath.Join(folder, "kvasir")
			if got := machineOf(t, kvasir); got != target {
				t.Errorf("the binary is for %s", got)
			}
			componentsOf(t, strings.TrimSuffix(files[0], ".tar.gz")+".cdx.json")
			if target != runtime.GOOS+"_"+runtime.GOARCH {
				return
			}
			if out := command(t, kvasir, "version"); out != command(t, binary(t), "version") {
				t.Errorf("it is not the binary of make build:\n%s", out)
			}
			command(t, kvasir, "check", "--config", filepath.Join(folder, "config.yaml"))
			command(t, "cmp", kvasir, binary(t))
		})
	}
}

// filesBelow are the files of a folder in an unpacked archive, in the order of git ls-files.
func filesBelow(t *testing.T, root, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			path, err = filepath.Rel(root, path)
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	return files
}

// machineOf says for which machine a binary was built.
func machineOf(t *testing.T, file string) string {
	t.Helper()
	if f, err := elf.Open(file); err == nil {
		defer f.Close()
		return "linux_" + map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}[f.Machine]
	}
	f, err := macho.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return "darwin_" + map[macho.Cpu]string{macho.CpuAmd64: "amd64", macho.CpuArm64: "arm64"}[f.Cpu]
}

// componentsOf wants the list of a binary's modules to name each that go.mod requires itself and that every binary has.
func componentsOf(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		BOMFormat  string
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, c := range list.Components {
		versions[c.Name] = c.Version
	}
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"github.com/valyala/fasthttp", "github.com/spf13/cobra", "github.com/rs/zerolog"} {
		if versions[name] == "" || !strings.Contains(string(mod), "\t"+name+" "+versions[name]+"\n") {
			t.Errorf("%s has %s at %q", filepath.Base(file), name, versions[name])
		}
	}
	if list.BOMFormat != "CycloneDX" || len(versions) < 50 {
		t.Errorf("%s: %q with %d components", filepath.Base(file), list.BOMFormat, len(versions))
	}
}
