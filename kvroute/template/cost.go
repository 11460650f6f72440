// Cost: what a rendering may do, in steps, bytes and time.

package template

import "time"

// A step is 10 to 20 ns of work. Whatever goes through text or a list counts the steps for all of it
// before it begins, or piece by piece: one operation is never much longer than what it has counted.
//
// copying, scanning and walking are the steps for n bytes of text that are
//   - copied, compared, or searched for one byte
//   - counted in characters, or searched for other text
//   - looked at character by character
func copying(n int) int  { return n >> 6 }
func scanning(n int) int { return n >> 4 }
func walking(n int) int  { return n >> 2 }

// What values take beside their text, in bytes.
const (
	sizeItem = 16 // of a list
	sizeText = 32 // of a text in a list
	sizeList = 48
	sizePair = 64 // of a dict
)

// betweenLooks is how many steps pass between two looks at the clock. A rendering of fewer never looks.
const betweenLooks = 1 << 14

// A budget is what a rendering has left.
type budget struct {
	left  int       // steps
	look  int       // the clock is looked at when left has come down to this
	room  int       // bytes of memory
	until time.Time // zero: nobody has looked yet
}

// unbounded is the budget of what is no rendering.
var unbounded = budget{left: 1 << 62, room: 1 << 62}

func newBudget() budget {
	return budget{left: maxSteps, look: maxSteps - betweenLooks, room: maxMade}
}

// step counts n steps.
func (b *budget) step(n int) {
	if b.left -= n; b.left < b.look {
		b.watch()
	}
}

// watch ends a rendering that has no steps left, or no time.
func (b *budget) watch() {
	if b.left < 0 {
		fail(ErrLimit, "more than %d steps", maxSteps)
	}
	switch now := time.Now(); {
	case b.until.IsZero():
		b.until = now.Add(maxTime)
	case now.After(b.until):
		fail(ErrLimit, "more than %v", maxTime)
	}
	b.look = max(b.left-betweenLooks, 0)
}

// made counts n bytes of memory.
func (b *budget) made(n int) {
	if b.room -= n; b.room < 0 {
		fail(ErrLimit, "more than %d bytes made", maxMade)
	}
}

// built counts a text of n bytes that was, or is about to be, made.
func (b *budget) built(n int) {
	b.step(copying(n))
	b.made(n)
}

// items counts a list of n items.
func (b *budget) items(n int) {
	b.step(n)
	b.made(sizeList + n*sizeItem)
}

// grown counts what was appended to a text since it had *counted bytes.
func (b *budget) grown(text []byte, counted *int) {
	if n := len(text) - *counted; n > 0 {
		b.built(n)
		*counted = len(text)
	}
}
