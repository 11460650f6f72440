//go:build !linux

// The watcher where there is no epoll: lost clients are noticed at the next write.

package edge

import "net"

// NoticesLost reports whether this system notices a lost client at once. Where it does not, the
// server says so in the log at its start.
const NoticesLost = false

type poller struct{ end chan struct{} }

func (p *poller) open() error                { p.end = make(chan struct{}); return nil }
func (p *poller) add(net.Conn, uint64) error { return nil }
func (p *poller) wait(func(uint64))          { <-p.end }
func (p *poller) close()                     { close(p.end) }
func (p *poller) free()                      {}
