// Find: the path of the driver's library on this host.

package gpu

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"
)

const libraryName = "libnvidia-ml.so.1"

// maxLoaderCache bounds /etc/ld.so.cache, which has some 30 to 300 KB.
const maxLoaderCache = 16 << 20

// A place is the input of a search: the root of the file system, the machine and LD_LIBRARY_PATH.
type place struct {
	root    fs.FS
	os      string // as runtime.GOOS
	machine string // as runtime.GOARCH
	path    string // LD_LIBRARY_PATH
}

// host returns the place of this process.
func host() place {
	return place{root: os.DirFS("/"), os: runtime.GOOS, machine: runtime.GOARCH, path: os.Getenv("LD_LIBRARY_PATH")}
}

// machines are the architectures with an NVIDIA driver: their number in ELF files (e_machine,
// elf.h), and the default folders of glibc's loader.
var machines = map[string]struct {
	elf     uint16
	folders []string
}{
	"amd64": {62, []string{"lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "lib64", "usr/lib64", "lib", "usr/lib"}},
	"arm64": {183, []string{"lib/aarch64-linux-gnu", "usr/lib/aarch64-linux-gnu", "lib64", "usr/lib64", "lib", "usr/lib"}},
}

// elsewhere are folders of drivers that are configured in other ways: WSL, Kubernetes with a
// driver installer, NixOS.
var elsewhere = []string{"usr/lib/wsl/lib", "usr/local/nvidia/lib64", "run/opengl-driver/lib"}

// find returns the path of the driver's library: the given one if it exists, or without one the
// first library for this machine where the loader would look.
func find(given string, p place) (string, error) {
	machine, known := machines[p.machine]
	if p.os != "linux" || !known {
		return "", fmt.Errorf("GPU telemetry works on linux/amd64 and linux/arm64, not on %s/%s", p.os, p.machine)
	}
	if given != "" {
		// Not limited to root: a relative path is relative to the caller's directory.
		if _, err := os.Stat(given); err != nil {
			return "", fmt.Errorf("cannot find the driver's library %q: %w", given, errors.Unwrap(err))
		}
		return given, nil
	}
	for _, name := range candidates(p, machine.folders) {
		if isLibrary(p.root, name, machine.elf) {
			return "/" + name, nil
		}
	}
	return "", errors.New("no NVIDIA driver: " + libraryName + " is neither in LD_LIBRARY_PATH nor where the loader looks; install the driver, or start the container with --gpus all")
}

// candidates returns the paths below root to try, in the loader's order.
func candidates(p place, folders []string) []string {
	var names []string
	for _, folder := range strings.FieldsFunc(p.path, func(r rune) bool { return r == ':' || r == ';' }) {
		if path.IsAbs(folder) { // a relative path depends on where Kvasir was started
			names = append(names, path.Join(folder, libraryName)[1:])
		}
	}
	for _, name := range cached(loaderCache(p.root), libraryName) {
		if path.IsAbs(name) {
			names = append(names, path.Clean(name)[1:])
		}
	}
	for _, folder := range append(folders, elsewhere...) {
		names = append(names, path.Join(folder, libraryName))
	}
	return names
}

// isLibrary reports whether the file is a 64-bit ELF file for this machine: a host with 32-bit
// libraries has two files of the same name.
func isLibrary(root fs.FS, name string, machine uint16) bool {
	f, err := root.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [20]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return false
	}
	return string(head[:6]) == "\x7fELF\x02\x01" && binary.LittleEndian.Uint16(head[18:]) == machine
}

// loaderCache reads /etc/ld.so.cache; nil: it is missing or too large.
func loaderCache(root fs.FS) []byte {
	f, err := root.Open("etc/ld.so.cache")
	if err != nil {
		return nil
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxLoaderCache+1))
	if err != nil || len(b) > maxLoaderCache {
		return nil
	}
	return b
}

// The two formats of ld.so.cache (glibc, sysdeps/generic/dl-cache.h). ldconfig
// writes the new one; until glibc 2.32 it wrote the old one with the new one
// behind it, at the next multiple of eight.
const (
	oldMagic  = "ld.so-1.7.0\x00"
	oldHead   = len(oldMagic) + 4 // magic and number of libraries
	oldEntry  = 12                // flags, key, value; offsets count from the end of the entries
	newMagic  = "glibc-ld.so.cache1.1"
	newHead   = 48 // magic, number, length of the strings, flags, extensions, three unused
	newEntry  = 24 // flags, key, value, OS version, hwcap; offsets count from the header
	newNumber = len(newMagic)
)

// cached returns the paths that a loader cache has for a library, in its order. It skips
// malformed entries.
func cached(b []byte, library string) []string {
	if rest, ok := bytes.CutPrefix(b, []byte(newMagic)); ok && len(rest) >= newHead-len(newMagic) {
		return entries(b, b[newHead:], number(b[newNumber:]), newEntry, library)
	}
	if !bytes.HasPrefix(b, []byte(oldMagic)) || len(b) < oldHead {
		return nil
	}
	n := number(b[len(oldMagic):])
	behind := oldHead + n*oldEntry
	if behind > len(b) {
		return nil
	}
	if aligned := (behind + 7) &^ 7; aligned < len(b) && bytes.HasPrefix(b[aligned:], []byte(newMagic)) {
		return cached(b[aligned:], library)
	}
	return entries(b[behind:], b[oldHead:], n, oldEntry, library)
}

// entries reads n entries of size bytes each whose offsets count from strings.
func entries(strings, table []byte, n, size int, library string) []string {
	if n > len(table)/size {
		return nil
	}
	var paths []string
	for ; n > 0; n, table = n-1, table[size:] {
		if text(strings, number(table[4:])) == library {
			if p := text(strings, number(table[8:])); p != "" {
				paths = append(paths, p)
			}
		}
	}
	return paths
}

// number reads an unsigned 32-bit number; both machines are little-endian.
func number(b []byte) int { return int(binary.LittleEndian.Uint32(b)) }

// text returns the string at an offset, up to its zero byte; "": none.
func text(b []byte, at int) string {
	if at >= len(b) {
		return ""
	}
	b = b[at:min(len(b), at+4096)] // PATH_MAX
	end := bytes.IndexByte(b, 0)
	if end < 0 {
		return ""
	}
	return string(b[:end])
}
