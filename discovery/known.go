// What one source knows: when a look changes it, and when it does not.

package discovery

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kvasir/upstream"
)

// maxWorkers bounds the workers of one source. More are taken for a mistake, which
// changes nothing.
const maxWorkers = 4096

// A Worker is one that a source has found.
type Worker struct {
	upstream.Settings
	From string // where it stands: the source, or one file of it
}

// A report is what one look gave. With an error and no worker it says nothing of
// workers; with an error and workers, these are good and others are missing for it.
type report struct {
	workers []Worker
	err     error
	bad     error           // what is wrong with single items of a list that is true: it is told, and puts nothing in doubt
	leaving map[string]bool // by From: workers that were told to end, and are not among workers
}

// doubted is what was known before, where a look failed; nil: it did not.
func (r report) doubted(err error) report {
	if err != nil {
		r.err, r.bad = err, nil
	}
	return r
}

// knowledge is what one source knows. It does not read the clock.
type knowledge struct {
	workers []Worker
	problem string    // of the last look; "": none
	since   time.Time // of the problem
	emptyAt time.Time // since when there are said to be none, while workers says otherwise; zero: they are not
}

// take takes in what a look gave, and says whether there are other workers now.
//
//  1. An error alone changes no worker.
//  2. No worker at all, without an error, is believed when looks still say so at the end of the grace. The time alone
//     decides nothing: the look that would have found otherwise may be the one that is under way.
//  3. A worker that was told to end goes at once: that is no list that came to be empty by mistake.
//  4. Too many workers are an error.
func (k *knowledge) take(r report, grace time.Duration, now time.Time) (changed bool) {
	if len(r.workers) > maxWorkers {
		r = report{err: fmt.Errorf("it has %d workers, more than %d", len(r.workers), maxWorkers)}
	}
	problem := ""
	if err := errors.Join(r.err, r.bad); err != nil {
		problem = short(err.Error())
	}
	if problem != "" && k.problem == "" {
		k.since = now
	}
	k.problem = problem
	if len(r.workers) == 0 && len(r.leaving) > 0 {
		stay := slices.DeleteFunc(slices.Clone(k.workers), func(w Worker) bool { return r.leaving[w.From] })
		changed = len(stay) < len(k.workers)
		k.workers = stay
	}
	switch {
	case r.err != nil && len(r.workers) == 0:
		k.emptyAt = time.Time{} // what was said before is in doubt
		return changed
	case len(r.workers) == 0 && len(k.workers) > 0:
		if k.emptyAt.IsZero() {
			k.emptyAt = now
		}
		if k.left(grace, now) > 0 {
			return changed
		}
	}
	k.emptyAt = time.Time{}
	if slices.EqualFunc(k.workers, r.workers, alike) {
		return changed
	}
	k.workers = r.workers
	return true
}

// left is how much there is of the grace of an empty list; 0: none has begun, or it is over.
func (k *knowledge) left(grace time.Duration, now time.Time) time.Duration {
	if k.emptyAt.IsZero() {
		return 0
	}
	return max(0, k.emptyAt.Add(grace).Sub(now))
}

// alike says whether nothing about a worker has changed.
func alike(a, b Worker) bool { return a.From == b.From && equal(&a.Settings, &b.Settings) }

// equal says whether two workers are told the same, also what may change while they run.
func equal(a, b *upstream.Settings) bool {
	return a.Same(b) && a.MaxRequests == b.MaxRequests && slices.Equal(a.GPUs, b.GPUs) && a.Source == b.Source
}

// shortLines bounds the lines of a problem that are told.
const shortLines = 5

// longestLine bounds one line, in bytes: what a stranger wrote may stand in it.
const longestLine = 500

// short is the first lines of a text: a file may have a hundred problems.
func short(text string) string {
	lines := strings.Split(text, "\n")
	more := len(lines) - shortLines
	lines = lines[:min(len(lines), shortLines)]
	for i, line := range lines {
		if len(line) > longestLine {
			lines[i] = strings.ToValidUTF8(line[:longestLine], "") + "..."
		}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}
