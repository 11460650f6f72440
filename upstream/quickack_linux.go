// Acknowledging at once: the cure for workers that leave Nagle's algorithm on.

package upstream

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// An ackNow tells the kernel to acknowledge what came without delay. A worker
// whose sockets lack TCP_NODELAY (Dynamo's frontend is one) holds its next small
// event back until the last one is acknowledged, and a kernel that has nothing
// to send delays that by 40 ms. The kernel forgets the wish, so it is said
// before each wait for more.
type ackNow struct {
	rc  syscall.RawConn
	set func(fd uintptr) // kept, so that saying it allocates nothing
}

func (a *ackNow) init(raw net.Conn) {
	tcp, ok := raw.(*net.TCPConn)
	if !ok {
		return
	}
	if rc, err := tcp.SyscallConn(); err == nil {
		a.rc = rc
		a.set = func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1)
		}
	}
}

func (a *ackNow) say() {
	if a.rc != nil {
		_ = a.rc.Control(a.set)
	}
}
