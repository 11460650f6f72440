// Tests of the search on file systems in memory, and on caches made by ldconfig.

package gpu

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// caches returns the caches that ldconfig makes in its three formats (-c old, compat, new) for a
// folder with two libraries.
func caches(tb testing.TB) map[string][]byte {
	all := map[string][]byte{}
	for _, format := range []string{"old", "compat", "new"} {
		b, err := os.ReadFile(filepath.Join("testdata/ldcache", format))
		if err != nil {
			tb.Fatal(err)
		}
		all[format] = b
	}
	return all
}

func TestLoaderCache(t *testing.T) {
	for format, b := range caches(t) {
		for library, want := range map[string][]string{
			libraryName:   {"/usr/lib/x86_64-linux-gnu/nvidia/libnvidia-ml.so.1"},
			"libother.so": nil, "libother.so.2": {"/usr/lib/x86_64-linux-gnu/nvidia/libother.so.2"},
			"": nil,
		} {
			if got := cached(b, library); !slices.Equal(got, want) {
				t.Errorf("%s: %q is at %q, want %q", format, library, got, want)
			}
		}
		for n := range b { // truncated at every byte
			for _, p := range cached(b[:n], libraryName) {
				if p != "/usr/lib/x86_64-linux-gnu/nvidia/libnvidia-ml.so.1" {
					t.Errorf("%s: the first %d bytes give %q", format, n, p)
				}
			}
		}
	}
	huge := bytes.Replace(caches(t)["new"], []byte("1.1\x02\x00\x00\x00"), []byte("1.1\xff\xff\xff\xff"), 1)
	if got := cached(huge, libraryName); got != nil {
		t.Errorf("a cache of 4 billion entries gives %q", got)
	}
}

func FuzzLoaderCache(f *testing.F) {
	for _, b := range caches(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, p := range cached(b, libraryName) {
			if p == "" || !bytes.Contains(b, []byte(p+"\x00")) {
				t.Errorf("%q is not in the cache", p)
			}
		}
	})
}

func TestFind(t *testing.T) {
	amd64, arm64 := library(elf.EM_X86_64, elf.ELFCLASS64), library(elf.EM_AARCH64, elf.ELFCLASS64)
	i386, short := library(elf.EM_386, elf.ELFCLASS32), amd64[:12]
	const (
		inCache = "usr/lib/x86_64-linux-gnu/nvidia/libnvidia-ml.so.1"
		none    = "^no NVIDIA driver: libnvidia-ml.so.1 is neither in LD_LIBRARY_PATH nor where the loader looks; "
	)
	type files map[string][]byte
	for _, tt := range []struct {
		name    string
		files   files
		cache   string
		path    string
		machine string
		want    string // a path, or a pattern of the error
	}{
		{"nothing", files{"etc/passwd": nil}, "", "", "amd64", none},
		{"cache", files{inCache: amd64}, "new", "", "amd64", "/" + inCache},
		{"cache of a library that is gone", nil, "new", "", "amd64", none},
		{"cache that is not one", files{inCache: amd64, "etc/ld.so.cache": []byte("ld.so-1.7.0\x00\xff\xff\xff\xff")}, "", "", "amd64", none},
		{"path before cache", files{inCache: amd64, "opt/a/libnvidia-ml.so.1": amd64}, "compat", "/nowhere:/opt/a/", "amd64", "/opt/a/libnvidia-ml.so.1"},
		{"path with semicolons and nothing", files{"opt/a/libnvidia-ml.so.1": amd64}, "", ";:;/opt/a", "amd64", "/opt/a/libnvidia-ml.so.1"},
		{"relative path", files{"opt/a/libnvidia-ml.so.1": amd64}, "", "opt/a:.:../opt/a", "amd64", none},
		{"path out of the root", files{"opt/a/libnvidia-ml.so.1": amd64}, "", "/../../opt/a", "amd64", "/opt/a/libnvidia-ml.so.1"},
		{"32-bit one first", files{"opt/a/libnvidia-ml.so.1": i386, "usr/lib64/libnvidia-ml.so.1": amd64}, "", "/opt/a", "amd64", "/usr/lib64/libnvidia-ml.so.1"},
		{"other machine", files{"usr/lib64/libnvidia-ml.so.1": amd64}, "", "", "arm64", none},
		{"cut off", files{"usr/lib64/libnvidia-ml.so.1": short}, "", "", "amd64", none},
		{"text", files{"usr/lib64/libnvidia-ml.so.1": []byte("INPUT ( libnvidia-ml.so.570 ) ")}, "", "", "amd64", none},
		{"a folder", files{"usr/lib64/libnvidia-ml.so.1/x": amd64}, "", "", "amd64", none},
		{"Debian", files{"usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1": amd64, "usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1": arm64}, "", "", "amd64", "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"},
		{"Debian arm64", files{"usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1": amd64, "usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1": arm64}, "", "", "arm64", "/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1"},
		{"WSL", files{"usr/lib/wsl/lib/libnvidia-ml.so.1": amd64}, "", "", "amd64", "/usr/lib/wsl/lib/libnvidia-ml.so.1"},
		{"Kubernetes", files{"usr/local/nvidia/lib64/libnvidia-ml.so.1": amd64}, "", "", "amd64", "/usr/local/nvidia/lib64/libnvidia-ml.so.1"},
		{"NixOS", files{"run/opengl-driver/lib/libnvidia-ml.so.1": amd64}, "", "", "amd64", "/run/opengl-driver/lib/libnvidia-ml.so.1"},
		{"RISC-V", files{"usr/lib64/libnvidia-ml.so.1": amd64}, "", "", "riscv64", "^GPU telemetry works on linux/amd64 and linux/arm64, not on linux/riscv64$"},
	} {
		root := fstest.MapFS{}
		for name, b := range tt.files {
			root[name] = &fstest.MapFile{Data: b}
		}
		if tt.cache != "" {
			root["etc/ld.so.cache"] = &fstest.MapFile{Data: caches(t)[tt.cache]}
		}
		got, err := find("", place{root: root, os: "linux", machine: tt.machine, path: tt.path})
		if err != nil {
			if !regexp.MustCompile(tt.want).MatchString(err.Error()) {
				t.Errorf("%s: error is %v, want %s", tt.name, err, tt.want)
			}
		} else if got != tt.want {
			t.Errorf("%s: it is %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestFindGiven(t *testing.T) {
	file := filepath.Join(t.TempDir(), "any.so")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	p := place{root: fstest.MapFS{}, os: "linux", machine: "amd64"}
	if got, err := find(file, p); got != file || err != nil {
		t.Errorf("it is %q, %v", got, err)
	}
	if _, err := find(file+"x", p); err == nil || err.Error() != `cannot find the driver's library "`+file+`x": no such file or directory` {
		t.Errorf("error is %v", err)
	}
	p.os = "darwin"
	if _, err := find(file, p); err == nil || !strings.HasSuffix(err.Error(), "not on darwin/amd64") {
		t.Errorf("error is %v", err)
	}
}
