// What a socket says that nobody listens on, on systems without Unix's.

//go:build !unix

package listener

import "syscall"

const refused = syscall.Errno(10061) // WSAECONNREFUSED
