// Store watch: logs when the store of the cache is degraded, and when it is well again.

package serve

import (
	"time"

	"github.com/rs/zerolog"

	"kvasir/cache"
)

// storeLookEvery is how often a store is looked at. A store recovers within
// seconds or not at all.
const storeLookEvery = time.Second

// A storeWatch looks at a store's Problem. It logs when there begins to be one
// and when it is over, but not each new wording: that counts waiting entries.
type storeWatch struct {
	log   zerolog.Logger
	stats func() cache.Stats
	stop  chan struct{}
	ended chan struct{}
}

// watchStore starts to watch a store. Without a store it returns nil, which can be closed.
func watchStore(log zerolog.Logger, store cache.Store) *storeWatch {
	if store == nil {
		return nil
	}
	w := &storeWatch{log: log, stats: store.Stats, stop: make(chan struct{}), ended: make(chan struct{})}
	go w.run()
	return w
}

func (w *storeWatch) run() {
	defer close(w.ended)
	look := time.NewTicker(storeLookEvery)
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
func (w *storeWatch) close() {
	if w != nil {
		close(w.stop)
		<-w.ended
	}
}
