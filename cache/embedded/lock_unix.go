// The lock of a store's file, on Unix.

//go:build unix

package embedded

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile locks a separate lock file, because a rewrite replaces the store's file. The lock ends
// with the process, however that ends; the lock file stays.
func lockFile(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.New("another process has it open; give each its own path")
		}
		return nil, err
	}
	return f, nil
}
