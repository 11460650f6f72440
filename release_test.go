// Tests of .goreleaser.yaml and scripts/release: that archives and `make install` have what docs/install.md says, and are
// built as `make build` builds. The archives themselves are looked at in e2e/real_release_test.go.

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

type releaseFile struct {
	Builds []struct {
		Env, Goos, Goarch, Flags, Ldflags []string
	}
	Archives []struct {
		Files []struct{ Src string }
	}
}

// TestReleaseBuild: the binaries of the archives are those of make build, for every machine that is promised.
func TestReleaseBuild(t *testing.T) {
	t.Parallel()
	var f releaseFile
	do(t, yaml.Unmarshal([]byte(read(t, ".goreleaser.yaml")), &f))
	if len(f.Builds) != 1 || len(f.Archives) != 1 {
		t.Fatalf("%d builds and %d archives", len(f.Builds), len(f.Archives))
	}
	b := f.Builds[0]
	if !slices.Equal(b.Goos, []string{"linux", "darwin"}) || !slices.Equal(b.Goarch, []string{"amd64", "arm64"}) {
		t.Errorf("built for %v, %v", b.Goos, b.Goarch)
	}
	made := regexp.MustCompile(`(?m)^\t(\S+) go build (.*) -ldflags "(.*)" -o bin/kvasir \.$`).FindStringSubmatch(read(t, "Makefile"))
	if made == nil {
		t.Fatal("make build is not understood")
	}
	ldflags := strings.NewReplacer("{{ .Env.VERSION }}", "$(VERSION)", "{{ .Env.DATE }}", "$(DATE)").Replace(strings.Join(b.Ldflags, " "))
	if strings.Join(b.Env, " ") != made[1] || strings.Join(b.Flags, " ") != made[2] || ldflags != made[3] {
		t.Errorf("released with\n%s %s %s\nmake build has\n%s %s %s", b.Env, b.Flags, ldflags, made[1], made[2], made[3])
	}
	for _, file := range f.Archives[0].Files {
		if _, err := os.Stat(file.Src); err != nil && !strings.HasPrefix(file.Src, "bin/extras/") {
			t.Error(err)
		}
	}
}

// TestReleasePages: what README and the pages of an archive link to is in the archive, too, but for the source. README links
// to nothing that is not.
func TestReleasePages(t *testing.T) {
	t.Parallel()
	var f releaseFile
	do(t, yaml.Unmarshal([]byte(read(t, ".goreleaser.yaml")), &f))
	packed := map[string]bool{}
	for _, file := range f.Archives[0].Files {
		if strings.HasPrefix(file.Src, "bin/extras/") {
			continue
		}
		do(t, filepath.WalkDir(file.Src, func(path string, _ os.DirEntry, err error) error {
			packed[path] = true // folders as well
			return err
		}))
	}
	links := 0
	for page := range packed {
		if filepath.Ext(page) != ".md" || page == "CHANGELOG.md" {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(read(t, page), ""), -1) {
			to, _, _ := strings.Cut(m[1], "#")
			if outside.MatchString(m[1]) {
				continue
			}
			links++
			to = filepath.Join(filepath.Dir(page), to)
			root, _, _ := strings.Cut(to, "/")
			if source := page != "README.md" && (root == "scripts" || root == "classify"); !packed[to] && !source {
				t.Errorf("%s links to %s, which is in no archive", page, to)
			}
		}
	}
	if links < 100 {
		t.Errorf("only %d links were found", links)
	}
}

// TestReleaseFile has GoReleaser read its file, where make release-snapshot has built it.
func TestReleaseFile(t *testing.T) {
	t.Parallel()
	const goreleaser = ".cache/release/goreleaser"
	if _, err := os.Stat(goreleaser); err != nil {
		t.Skip("no GoReleaser here (make release-snapshot builds it)")
	}
	if out, err := exec.Command(goreleaser, "check", "--quiet").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestInstall installs a program that stands for kvasir, twice, as an upgrade does.
func TestInstall(t *testing.T) {
	t.Parallel()
	tree, dest := t.TempDir(), t.TempDir()
	for _, script := range []string{"install.sh", "extras.sh"} {
		put(t, filepath.Join(tree, "scripts/release", script), read(t, filepath.Join("scripts/release", script)))
	}
	put(t, filepath.Join(tree, "bin/kvasir"), "#!/bin/sh\nif [ \"$1\" = help ]; then echo page > \"$3/kvasir.1\"; fi\n")
	for range 2 {
		install := exec.Command(filepath.Join(tree, "scripts/release/install.sh"))
		install.Env = append(os.Environ(), "DESTDIR="+dest, "PREFIX=/opt/kvasir")
		if out, err := install.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	var found []string
	do(t, filepath.WalkDir(dest, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			info, err := d.Info()
			if err != nil {
				return err
			}
			found = append(found, strings.TrimPrefix(path, dest)+" "+info.Mode().String())
		}
		return err
	}))
	want := []string{
		"/opt/kvasir/bin/kvasir -rwxr-xr-x",
		"/opt/kvasir/share/bash-completion/completions/kvasir -rw-r--r--",
		"/opt/kvasir/share/fish/vendor_completions.d/kvasir.fish -rw-r--r--",
		"/opt/kvasir/share/man/man1/kvasir.1 -rw-r--r--",
		"/opt/kvasir/share/zsh/site-functions/_kvasir -rw-r--r--",
	}
	if !slices.Equal(found, want) {
		t.Errorf("installed are\n%s\nwant\n%s", strings.Join(found, "\n"), strings.Join(want, "\n"))
	}
}

// TestInstallBuildsNothing: it is what root runs, who may have no Go, and would leave files of his in the tree.
func TestInstallBuildsNothing(t *testing.T) {
	t.Parallel()
	plan, err := exec.Command("make", "--dry-run", "install").Output()
	if err != nil || strings.Contains(string(plan), "go build") || !strings.Contains(string(plan), "install.sh") {
		t.Errorf("make install does\n%s%v", plan, err)
	}
	tree := t.TempDir()
	put(t, filepath.Join(tree, "scripts/release/install.sh"), read(t, "scripts/release/install.sh"))
	install := exec.Command(filepath.Join(tree, "scripts/release/install.sh"))
	install.Env = append(os.Environ(), "DESTDIR="+tree)
	if out, err := install.CombinedOutput(); err == nil || !strings.Contains(string(out), "make build") {
		t.Errorf("without bin/kvasir it says %q, %v", out, err)
	}
}

// put writes a program.
func put(t *testing.T, file, text string) {
	t.Helper()
	do(t, os.MkdirAll(filepath.Dir(file), 0o755))
	do(t, os.WriteFile(file, []byte(text), 0o755))
}
