// What a socket says that nobody listens on, on Unix.

//go:build unix

package listener

import "golang.org/x/sys/unix"

const refused = unix.ECONNREFUSED
