// Looks: how sources that read files go on, look after look.

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
	again, rest := time.NewTimer(0), time.NewTimer(0)
	defer again.Stop()
	defer rest.Stop()
	for {
		select {
		case <-src.ctx.Done():
			return
		case <-rest.C:
		}
		select {
		case <-src.ctx.Done():
			return
		case <-w.C:
		case <-again.C:
		case <-src.again:
			l.anew()
		}
		began, e := time.Now(), src.now()
		w.Note(l.around(&e)) // before the look, so that what changes during it is noted
		r, soon := l.look(began)
		if told := src.tell(r); soon == 0 {
			soon = told
		}
		if soon > 0 {
			again.Reset(soon)
		}
		rest.Reset(restAfter(time.Since(began)))
	}
}
