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

	mu       sync.Mutex // guards below
	level    float64    // below zero: in debt
	at       time.Time  // when level was true; zero: not used yet
	reserved int        // reservations that are not settled
}

// NewBucket returns a full bucket of burst tokens that gains perSecond.
func NewBucket(perSecond, burst float64) *Bucket {
	return &Bucket{rate: perSecond, burst: burst, level: burst}
}

// PerMinute returns a full bucket for a limit of n a minute: a client that was
// quiet may use the minute's worth at once.
func PerMinute(n int) *Bucket { return NewBucket(float64(n)/60, float64(n)) }

// Take takes n tokens if they are there, all or none.
func (b *Bucket) Take(now time.Time, n float64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refill(now); b.level < n {
		return false
	}
	b.level -= n
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
	if b.refill(now); b.level < 1 || b.level < n && b.reserved > 0 {
		return false
	}
	b.level -= n
	b.reserved++
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
