// The watcher notices clients that leave while nobody reads from their connections.

package edge

import "sync"

// A Watcher knows every open client connection. When a client closes its connection, or its
// sending half, the closer bound to that connection is closed at once. fasthttp has no such
// signal: without it a worker goes on generating for nobody.
type Watcher struct {
	poll poller // the system's notification; see watch_linux.go

	mu    sync.Mutex
	conns map[uint64]*Conn
	last  uint64

	done chan struct{}
}

// NewWatcher starts a watcher that runs until Close.
func NewWatcher() (*Watcher, error) {
	w := &Watcher{conns: make(map[uint64]*Conn), done: make(chan struct{})}
	if err := w.poll.open(); err != nil {
		return nil, err
	}
	go w.run()
	return w, nil
}

// run passes every report of the system to its connection.
func (w *Watcher) run() {
	defer close(w.done)
	w.poll.wait(func(token uint64) {
		w.mu.Lock()
		c := w.conns[token]
		w.mu.Unlock()
		if c != nil {
			c.lost()
		}
	})
}

// add starts to watch c. A token is never used twice, so that a late report about a closed
// connection cannot reach a new one that got the same descriptor.
func (w *Watcher) add(c *Conn) error {
	w.mu.Lock()
	w.last++
	c.token = w.last
	w.conns[c.token] = c
	w.mu.Unlock()
	if err := w.poll.add(c.raw, c.token); err != nil {
		w.remove(c)
		return err
	}
	return nil
}

// remove forgets c. The system forgets the descriptor when that is closed.
func (w *Watcher) remove(c *Conn) {
	w.mu.Lock()
	delete(w.conns, c.token)
	w.mu.Unlock()
}

// each calls f for every open connection.
func (w *Watcher) each(f func(*Conn)) {
	w.mu.Lock()
	all := make([]*Conn, 0, len(w.conns))
	for _, c := range w.conns {
		all = append(all, c)
	}
	w.mu.Unlock()
	for _, c := range all {
		f(c)
	}
}

// StopAll closes the bound closer of every connection, because the process is ending. The code
// that answers a client can still tell it so.
func (w *Watcher) StopAll() { w.each((*Conn).stop) }

// AbortAll ends every connection with a reset.
func (w *Watcher) AbortAll() { w.each((*Conn).reset) }

// Close stops the watcher and waits until it has stopped.
func (w *Watcher) Close() {
	w.poll.close()
	<-w.done
	w.poll.free()
}
