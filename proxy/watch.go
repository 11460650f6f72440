// The watcher: notices clients that go away while nobody reads from them.

package proxy

import (
	"sync"
)

// A watcher knows every open client connection and calls lost on one whose
// client has closed it or its sending half. fasthttp has no such signal:
// without it a worker goes on generating for nobody.
type watcher struct {
	poll poller // the system's way to be told; see watch_linux.go

	mu    sync.Mutex
	conns map[uint64]*clientConn
	last  uint64

	done chan struct{}
}

func newWatcher() (*watcher, error) {
	w := &watcher{conns: make(map[uint64]*clientConn), done: make(chan struct{})}
	if err := w.poll.open(); err != nil {
		return nil, err
	}
	go w.run()
	return w, nil
}

// run hands every report of the system to the connection it is about.
func (w *watcher) run() {
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
func (w *watcher) add(c *clientConn) error {
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
func (w *watcher) remove(c *clientConn) {
	w.mu.Lock()
	delete(w.conns, c.token)
	w.mu.Unlock()
}

// each calls f for every open connection.
func (w *watcher) each(f func(*clientConn)) {
	w.mu.Lock()
	all := make([]*clientConn, 0, len(w.conns))
	for _, c := range w.conns {
		all = append(all, c)
	}
	w.mu.Unlock()
	for _, c := range all {
		f(c)
	}
}

// close ends the watching and waits for it.
func (w *watcher) close() {
	w.poll.close()
	<-w.done
	w.poll.free()
}
