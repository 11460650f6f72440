// The watcher: it notices clients that go away while nobody reads from them.

package edge

import "sync"

// A Watcher knows every open client connection. When a client closes its connection,
// or its sending half, what is bound to that is closed at once. fasthttp has no such
// signal: without it a worker goes on generating for nobody.
type Watcher struct {
	poll poller // the system's way to be told; see watch_linux.go

	mu    sync.Mutex
	conns map[uint64]*Conn
	last  uint64

	done chan struct{}
}

// NewWatcher begins to watch, until Close.
func NewWatcher() (*Watcher, error) {
	w := &Watcher{conns: make(map[uint64]*Conn), done: make(chan struct{})}
	if err := w.poll.open(); err != nil {
		return nil, err
	}
	go w.run()
	return w, nil
}

// run hands every report of the system to the connection it is about.
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

// add begins to watch c. A token is never used twice, so that a late report
// about a closed connection cannot reach one that got its descriptor.
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

// remove forgets c. The system forgets the descriptor when it is closed.
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

// StopAll closes what is bound to any connection, because the process ends: who
// answers a client can still say so to it.
func (w *Watcher) StopAll() { w.each((*Conn).stop) }

// AbortAll ends every connection with a reset.
func (w *Watcher) AbortAll() { w.each((*Conn).reset) }

// Close ends the watching and waits for its end.
func (w *Watcher) Close() {
	w.poll.close()
	<-w.done
	w.poll.free()
}
