// Inside: the embedded helper program, if there is one.

package gpu

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"runtime"
	"strconv"

	"kvasir/gpu/snapshot"
)

// The folder always has its README, so that a build without a C compiler works too.
//
//go:embed inside
var inside embed.FS

// maxProgram bounds the size of the helper in bytes; it has about 3 MB.
const maxProgram = 256 << 20

// embedded returns the compressed helper for this machine; nil: none is embedded.
func embedded() []byte {
	b, err := inside.ReadFile("inside/helper-" + runtime.GOOS + "-" + runtime.GOARCH + ".gz")
	if err != nil {
		return nil
	}
	return b
}

// Inside reports whether a helper for this machine is embedded, and the protocol version that it
// speaks; it is built from the same tree.
func Inside() (protocol string, ok bool) {
	return strconv.Itoa(snapshot.Protocol), embedded() != nil
}

// program returns the helper to start, decompressed as it is read.
func program(given []byte) (io.Reader, error) {
	if given != nil {
		return bytes.NewReader(given), nil
	}
	z, err := gzip.NewReader(bytes.NewReader(embedded()))
	if err != nil {
		return nil, fmt.Errorf("cannot unpack the embedded helper: %w", err)
	}
	return io.LimitReader(z, maxProgram), nil
}
