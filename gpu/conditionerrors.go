// Errors: a GPU's errors, and how long they count.

package gpu

import (
	"fmt"
	"slices"
	"time"

	"kvasir/gpu/snapshot"
)

// criticalXids are the Xids after which a GPU cannot be trusted (NVIDIA, "Xid Errors"): ECC and
// row remapping, NVLink, fallen off the bus, GSP, contained and uncontained errors. 13, 31, 43,
// 45 and 68 are caused by an application.
var criticalXids = []uint64{48, 63, 64, 74, 79, 92, 94, 95, 119, 120, 140}

// trouble is the memory of a GPU's errors.
type trouble struct {
	counted bool           // ecc holds a count
	ecc     uint64         // last count of uncorrected ECC errors
	xids    []snapshot.Xid // Xids in the last snapshot
	until   time.Time      // the last error counts until then
	text    string         // describes the last error
	asked   bool           // the driver has requested a recovery action since
	told    cause          // cause that the effect's text describes
}

// seeErrors evaluates errors. Uncorrected ECC errors since the first snapshot, and critical Xids,
// count for 5 minutes. They count for less if a recovery action that the driver requested is
// done, or if the driver was reloaded, which resets the count of ECC errors. A requested recovery
// action, and a lost GPU, count as long as they last.
func (d *judged) seeErrors(now time.Time, g *GPU) bool {
	t := &d.errors
	asks := ""
	if g.State == OK {
		t.seeECC(now, g)
		t.seeXids(now, g)
		if g.Recovery != nil {
			asks = *g.Recovery
			t.seeRecovery(asks)
		}
	}
	cause := t.cause(now, g, asks)
	f := &d.effects[byErrors]
	if cause == nothing && g.State != OK && f.slow > 1 && now.Sub(d.at) < holdError {
		return false // a recovery action that is no longer visible is not necessarily done
	}
	slow := 1.0
	if cause != nothing {
		slow = someSlow
	}
	changed := f.shows(now, slow)
	if cause != nothing && (changed || cause != t.told) {
		changed, t.told = true, cause
		f.text = fmt.Sprintf("GPU %d: %s", d.index, t.tell(cause, g, asks))
	}
	return changed
}

// A cause is the error that is reported, among all that count.
type cause uint8

const (
	nothing cause = iota
	happened
	recovery
	lost
)

func (t *trouble) cause(now time.Time, g *GPU, asks string) cause {
	switch {
	case g.State == Lost:
		return lost
	case asks != "" && asks != "none":
		return recovery
	case now.Before(t.until):
		return happened
	}
	return nothing
}

func (t *trouble) tell(c cause, g *GPU, asks string) string {
	switch {
	case c == lost && g.Why != "":
		return "lost: " + g.Why
	case c == lost:
		return "lost"
	case c == recovery:
		return "the driver asks for " + asks
	}
	return t.text
}

func (t *trouble) seeECC(now time.Time, g *GPU) {
	if g.ECCErrors == nil {
		return
	}
	n := *g.ECCErrors
	switch {
	case t.counted && n > t.ecc:
		t.count(now, now, fmt.Sprintf("%d new uncorrected ECC errors", n-t.ecc))
	case t.counted && n < t.ecc:
		t.until = time.Time{}
	}
	t.counted, t.ecc = true, n
}

// seeXids counts each Xid once, although the helper repeats them. The helper sends their times,
// so that a Judge that begins later knows how old they are. It sends all of them, because 45 or
// 154 may follow right after a critical one.
func (t *trouble) seeXids(now time.Time, g *GPU) {
	if slices.Equal(g.Xids, t.xids) {
		return
	}
	for _, x := range g.Xids {
		if slices.Contains(criticalXids, x.Number) && !slices.Contains(t.xids, x) {
			t.count(now, time.UnixMilli(x.At), fmt.Sprintf("Xid %d", x.Number))
		}
	}
	t.xids = g.Xids
}

// count starts the time for which an error counts. If one counts already, the text of that one
// stays.
func (t *trouble) count(now, began time.Time, text string) {
	if began.After(now) {
		began = now // a clock was set back
	}
	if !now.Before(t.until) {
		t.text, t.asked = text, false
	}
	if until := began.Add(holdError); until.After(t.until) {
		t.until = until
	}
}

func (t *trouble) seeRecovery(action string) {
	switch {
	case action != "none" && action != "":
		t.asked = true
	case t.asked:
		t.asked, t.until = false, time.Time{}
	}
}
