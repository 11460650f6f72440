// Budget: the token bucket, as a retry budget and for limits of API keys.

package kvroute

import (
	"math"
	"sync"
	"time"
)

// A Bucket holds up to burst tokens and gains rate of them a second. It may be
// used at the same time by many. A clock that goes backwards gains nothing.
type Bucket struct {
	rate, burst float64
	sharing     *Sharing // nil: nobody else takes of it

	mu       sync.Mutex // guards below
	level    float64    // below zero: in debt
	at       time.Time  // when level was true; zero: not used yet
	reserved int        // reservations that are not settled

	untold   float64 // taken here since untoldAt, which others may not have heard of
	untoldAt time.Time
}

// NewBucket returns a full bucket of burst tokens that gains perSecond.
func NewBucket(perSecond, burst float64) *Bucket {
	return &Bucket{rate: perSecond, burst: burst, level: burst}
}

// PerMinute returns a full bucket for a limit of n a minute: a client that was
// quiet may use the minute's worth at once.
func PerMinute(n int) *Bucket { return NewBucket(float64(n)/60, float64(n)) }

// Sharing is how a bucket is one with those of other processes, each of which has a copy.
type Sharing struct {
	Others func() int           // how many processes have one besides this one
	Took   func(amount float64) // tells them what was taken here; negative: given back
}

// Heard is how long what was taken is on its way to the others, at most, as a rule.
const heard = 50 * time.Millisecond

// Share makes the bucket one of several, before it is used. What is taken is told the others, who
// call TakenElsewhere. Within the time that takes no process takes more than its share, or one
// single amount, so that all together take no more than there is, as long as the others hear in
// time: else each would take a whole burst that comes to all of them at once.
func (b *Bucket) Share(s *Sharing) { b.sharing = s }

// TakenElsewhere notes what another process has taken; negative: given back. What others say takes
// the bucket no further into debt than by a burst, so that a number that is wrong passes by.
func (b *Bucket) TakenElsewhere(now time.Time, n float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(now)
	b.level = min(max(b.level-n, min(b.level, -b.burst)), b.burst)
}

// beyondShare says whether to take n now is more than this process's share of what is there.
func (b *Bucket) beyondShare(now time.Time, n float64) bool {
	if b.sharing == nil {
		return false
	}
	if now.Sub(b.untoldAt) > heard {
		b.untold, b.untoldAt = 0, now
	}
	all := float64(b.sharing.Others() + 1)
	return all > 1 && b.untold > 0 && b.untold+n > (b.level+b.untold)/all
}

// took notes what was taken here.
func (b *Bucket) took(n float64) {
	if b.sharing != nil && n != 0 {
		b.untold = max(b.untold+n, 0)
		b.sharing.Took(n)
	}
}

// Take takes n tokens if they are there, all or none.
func (b *Bucket) Take(now time.Time, n float64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refill(now); b.level < n || b.beyondShare(now, n) {
		return false
	}
	b.level -= n
	b.took(n)
	return true
}

// Spend takes n tokens whether they are there or not, for what is counted after
// the fact; the debt has to be earned back before Take succeeds. A negative n
// gives back, up to burst.
func (b *Bucket) Spend(now time.Time, n float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(now)
	b.level = min(b.level-n, b.burst)
	b.took(n)
}

// Reserve takes n tokens for something whose cost is known only after it, all or
// none; Settle ends it. What is under way at the same time can so use no more
// than there was, as far as the estimates hold. An estimate larger than what is
// there is taken all the same where nothing else is reserved and a token is
// there: alone it goes into debt by what it uses, and waits for no level that
// the bucket may never reach.
func (b *Bucket) Reserve(now time.Time, n float64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refill(now); b.level < 1 || b.level < n && b.reserved > 0 || b.beyondShare(now, n) {
		return false
	}
	b.level -= n
	b.reserved++
	b.took(n)
	return true
}

// Settle ends a reservation of n tokens of which used were used: more than n
// are spent, fewer give the rest back.
func (b *Bucket) Settle(now time.Time, n, used float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(now)
	b.level = min(b.level+n-used, b.burst)
	b.reserved--
	b.took(used - n)
}

// Level returns how many tokens are there; below zero: owed.
func (b *Bucket) Level(now time.Time) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(now)
	return b.level
}

// Until returns how long it takes until n tokens are there if nobody takes any:
// for Retry-After, and with n = burst for the reset of a limit. It is
// math.MaxInt64 if that is never.
func (b *Bucket) Until(now time.Time, n float64) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(now)
	if b.level >= n {
		return 0
	}
	wait := math.Ceil((n - b.level) / b.rate * float64(time.Second))
	if n > b.burst || wait >= math.MaxInt64 { // without any rate it is +Inf
		return math.MaxInt64
	}
	return time.Duration(wait)
}

func (b *Bucket) refill(now time.Time) {
	if b.at.IsZero() {
		b.at = now
		return
	}
	if gone := now.Sub(b.at); gone > 0 {
		b.level = min(b.level+gone.Seconds()*b.rate, b.burst)
		b.at = now
	}
}

// A Budget bounds retries to a share of the requests, so that a failing pool is
// not hit harder for failing (Envoy's and Linkerd's retry budget).
type Budget struct {
	perRequest float64
	bucket     Bucket
}

// NewBudget returns a budget that earns perRequest retries with each request and
// perSecond with each second, and holds at most burst. It starts with one
// second's worth. Kvasir's own numbers are 0.2, 3 and 20.
func NewBudget(perRequest, perSecond, burst float64) *Budget {
	return &Budget{
		perRequest: perRequest,
		bucket:     Bucket{rate: perSecond, burst: burst, level: min(perSecond, burst)},
	}
}

// Deposit earns for one request. Retries are no requests.
func (b *Budget) Deposit(now time.Time) { b.bucket.Spend(now, -b.perRequest) }

// Withdraw asks for one retry.
func (b *Budget) Withdraw(now time.Time) bool { return b.bucket.Take(now, 1) }
