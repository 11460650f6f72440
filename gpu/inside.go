// Inside: the helper program that is embedded, if it is.

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

// The folder always has its README, so that a build without a C compiler works.
//
//go:embed inside
var inside embed.FS

// maxProgram bounds the helper; it has some 3 MB.
const maxProgram = 256 << 20

// embedded is the compressed helper for this machine; nil: none is inside.
func embedded() []byte {
	b, err := inside.ReadFile("inside/helper-" + runtime.GOOS + "-" + runtime.GOARCH + ".gz")
	if err != nil {
		return nil
	}
	return b
}

// Inside says whether a helper for this machine is embedded, and the protocol
// that it speaks: it is built from the same tree.
func Inside() (protocol string, ok bool) {
	return strconv.Itoa(snapshot.Protocol), embedded() != nil
}

// program is the helper to start, unpacked as it is read.
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
