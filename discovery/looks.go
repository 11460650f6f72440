// Looks: how sources go on, look after look: those that read files, and those that watch.

package discovery

import (
	"time"

	"kvasir/filewatch"
)

// looks are the steps of a source that reads files. One goroutine calls them.
type looks struct {
	anew   func()                                              // the entry has changed: what is known may mean something else
	around func(e *Entry) []string                             // the directories where a change shows, for the look that follows
	look   func(now time.Time) (r report, again time.Duration) // again: look again within so long, if it is not 0
}

// watchFiles looks whenever something changes, until the source is stopped.
func watchFiles(src *source, l *looks) {
	w := filewatch.Start(filewatch.Notes())
	defer w.Close()
	lookOn(src, w.C, 0, func(anew bool) time.Duration {
		if anew {
			l.anew()
		}
		now, e := time.Now(), src.now()
		w.Note(l.around(&e)) // before the look, so that what changes during it is noted
		r, soon := l.look(now)
		if told := src.tell(r); soon == 0 {
			soon = told
		}
		return soon
	})
}

// lookOn has a source look when there is news, when its entry has changed (anew), and within first, until the source is
// stopped, with a rest after each look. again is within how long it has to look once more, whatever happens; 0: it
// need not.
func lookOn(src *source, news <-chan struct{}, first time.Duration, look func(anew bool) (again time.Duration)) {
	next, rest := time.NewTimer(first), time.NewTimer(0)
	defer next.Stop()
	defer rest.Stop()
	for {
		select {
		case <-src.ctx.Done():
			return
		case <-rest.C:
		}
		anew := false
		select {
		case <-src.ctx.Done():
			return
		case <-news:
		case <-next.C:
		case <-src.again:
			anew = true
		}
		began := time.Now()
		if again := look(anew); again > 0 {
			next.Reset(again)
		}
		rest.Reset(restAfter(time.Since(began)))
	}
}
