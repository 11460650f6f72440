// Store: says in the log when the cache's store is less than it should be, and when it is well again.

package serve

import (
	"time"

	"github.com/rs/zerolog"

	"kvasir/cache"
)

// troubleEvery is how often a troubleWatch looks: a store is mended within
// seconds or not at all.
const troubleEvery = time.Second

// A troubleWatch looks at a store's Problem. It logs the change from none to one
// and back, not each of its words: they count what waits.
type troubleWatch struct {
	log   zerolog.Logger
	stats func() cache.Stats
	stop  chan struct{}
	ended chan struct{}
}

// watchTrouble starts a watch of a store, nil where there is none.
func watchTrouble(log zerolog.Logger, store cache.Store) *troubleWatch {
	if store == nil {
		return nil
	}
	w := &troubleWatch{log: log, stats: store.Stats, stop: make(chan struct{}), ended: make(chan struct{})}
	go w.run()
	return w
}

func (w *troubleWatch) run() {
	defer close(w.ended)
	look := time.NewTicker(troubleEvery)
	defer look.Stop()
	for troubled := false; ; {
		select {
		case <-w.stop:
			return
		case <-look.C:
		}
		switch problem := w.stats().Problem; {
		case problem != "" && !troubled:
			troubled = true
			w.log.Warn().Str("problem", problem).Msg("the cache is degraded; requests go on")
		case problem == "" && troubled:
			troubled = false
			w.log.Info().Msg("the cache is well again")
		}
	}
}

// close ends the watch.
func (w *troubleWatch) close() {
	if w != nil {
		close(w.stop)
		<-w.ended
	}
}
