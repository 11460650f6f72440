// The lock of a store's file, on systems without Unix's.

//go:build !unix

package embedded

import (
	"errors"
	"io"
)

func lockFile(string) (io.Closer, error) {
	return nil, errors.New("a cache in a file needs the file locks of Unix; leave the path empty to keep it in memory")
}
