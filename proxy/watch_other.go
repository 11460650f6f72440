//go:build !linux

// The watcher where there is no epoll: lost clients are noticed at the next write.

package proxy

import "net"

// noticesLost says that a lost client is noticed at once on this system; where
// it is not, start says so in the log.
const noticesLost = false

type poller struct{ end chan struct{} }

func (p *poller) open() error                { p.end = make(chan struct{}); return nil }
func (p *poller) add(net.Conn, uint64) error { return nil }
func (p *poller) wait(func(uint64))          { <-p.end }
func (p *poller) close()                     { close(p.end) }
func (p *poller) free()                      {}
