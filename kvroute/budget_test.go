// Tests of the token bucket and the retry budget.

package kvroute

import (
	"math"
	"testing"
	"time"
)

func TestBucket(t *testing.T) {
	b := PerMinute(60) // one a second, 60 held
	start := time.Now()
	at := start
	tests := []struct {
		name  string
		after time.Duration
		do    func() bool
		want  bool
		level float64
		until time.Duration // for one token
	}{
		{"full at first", 0, func() bool { return b.Take(at, 60) }, true, 0, time.Second},
		{"empty", 0, func() bool { return b.Take(at, 1) }, false, 0, time.Second},
		{"not half a token", 500 * time.Millisecond, func() bool { return b.Take(at, 1) }, false, 0.5, 500 * time.Millisecond},
		{"one is back", 500 * time.Millisecond, func() bool { return b.Take(at, 1) }, true, 0, time.Second},
		{"all or none", 3 * time.Second, func() bool { return b.Take(at, 4) }, false, 3, 0},
		{"debt", 0, func() bool { b.Spend(at, 13); return true }, true, -10, 11 * time.Second},
		{"debt is earned back first", 10 * time.Second, func() bool { return b.Take(at, 1) }, false, 0, time.Second},
		{"a clock that goes back gains nothing", -time.Hour, func() bool { return b.Take(at, 1) }, false, 0, time.Second},
		{"nor does its way back", time.Hour, func() bool { return b.Take(at, 1) }, false, 0, time.Second},
		{"never above the burst", time.Hour, func() bool { return b.Take(at, 61) }, false, 60, 0},
		{"nor by giving back", 0, func() bool { b.Spend(at, -5); return true }, true, 60, 0},
	}
	for _, tt := range tests {
		at = at.Add(tt.after)
		if got := tt.do(); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
		if got := b.Level(at); math.Abs(got-tt.level) > 1e-9 {
			t.Errorf("%s: level %v, want %v", tt.name, got, tt.level)
		}
		if got := b.Until(at, 1); (got - tt.until).Abs() > time.Microsecond {
			t.Errorf("%s: until %v, want %v", tt.name, got, tt.until)
		}
	}
	if got := b.Until(at, 61); got != math.MaxInt64 {
		t.Errorf("more than the burst is there in %v, want never", got)
	}
	if got := NewBucket(0, 1); !got.Take(at, 1) || got.Until(at, 1) != math.MaxInt64 {
		t.Error("without a rate a token comes back")
	}
}

// TestUntilIsEnough: whoever waits as long as Until says gets the tokens.
func TestUntilIsEnough(t *testing.T) {
	for _, perMinute := range []int{1, 7, 60, 999, 1000000} {
		b, at := PerMinute(perMinute), time.Now()
		b.Spend(at, float64(perMinute)*1.37)
		at = at.Add(b.Until(at, 1))
		// One nanosecond more than rounding can have lost.
		if !b.Take(at.Add(time.Nanosecond), 1) {
			t.Errorf("%d a minute: not there after Until, but %v", perMinute, b.Level(at))
		}
	}
}

// TestBudget: a pool that fails everything is asked at most 1.2 times as much,
// and the floor of three a second beyond that.
func TestBudget(t *testing.T) {
	b, at := NewBudget(0.2, 3, 20), time.Now()
	const requests, perSecond = 10000, 100
	retries := 0
	for range requests {
		b.Deposit(at)
		for b.Withdraw(at) {
			retries++
		}
		at = at.Add(time.Second / perSecond)
	}
	if want := requests*0.2 + 3*requests/perSecond + 3; math.Abs(float64(retries)-want) > 1 {
		t.Errorf("%d retries, want %v", retries, want)
	}

	// Quiet for a day: 20 are held, no more, and then three a second.
	at = at.Add(24 * time.Hour)
	for _, want := range []int{20, 3} {
		n := 0
		for b.Withdraw(at) {
			n++
		}
		if n != want {
			t.Errorf("%d retries, want %d", n, want)
		}
		at = at.Add(time.Second)
	}
}

func BenchmarkBudget(b *testing.B) {
	budget, now := NewBudget(0.2, 3, 20), time.Now()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			budget.Deposit(now)
		}
	})
}

// TestReserve: what is under way at the same time uses no more than there was,
// and what can never fit waits for nobody else alone.
func TestReserve(t *testing.T) {
	b, at := PerMinute(60), time.Now()
	if !b.Reserve(at, 40) || b.Reserve(at, 40) || !b.Reserve(at, 20) || b.Reserve(at, 1) {
		t.Fatal("60 tokens are 40 and 20, and no more")
	}
	b.Settle(at, 40, 10)
	if got := b.Level(at); got != 30 {
		t.Errorf("%v tokens after giving 30 back, want 30", got)
	}
	if b.Reserve(at, 1000) {
		t.Error("more than there is was reserved beside another")
	}
	b.Settle(at, 20, 25)
	if got := b.Level(at); got != 25 {
		t.Errorf("%v tokens after using 5 more than reserved, want 25", got)
	}
	if !b.Reserve(at, 1000) || b.Reserve(at, 1) {
		t.Error("alone it is taken, and then no other")
	}
	b.Settle(at, 1000, 26)
	if b.Reserve(at, 1) {
		t.Error("reserved in debt")
	}
	if at = at.Add(2 * time.Second); !b.Reserve(at, 1) {
		t.Error("not reserved after the debt was earned back")
	}
}

// Copies of a bucket, each told what the others took, hold together what one would: also where a burst comes to all of
// them before anybody hears of another.
func TestSharedBucket(t *testing.T) {
	const limit, copies = 600, 4
	now := time.Now()
	var all [copies]*Bucket
	var untold [copies]float64
	for i := range all {
		all[i] = PerMinute(limit)
		all[i].Share(&Sharing{Others: func() int { return copies - 1 }, Took: func(n float64) { untold[i] += n }})
	}
	hear := func() {
		for i, n := range untold {
			for k, other := range all {
				if k != i {
					other.TakenElsewhere(now, n)
				}
			}
			untold[i] = 0
		}
	}
	taken := 0
	for range limit {
		for i := range all {
			if all[i].Take(now, 1) {
				taken++
			}
		}
	}
	if taken != limit {
		t.Errorf("a burst of all gets %d, want %d", taken, limit)
	}
	hear()
	for i := range all {
		if all[i].Take(now, 1) || all[i].Level(now) > 0 {
			t.Errorf("copy %d has %v left", i, all[i].Level(now))
		}
	}
	// A minute of more than there is, heard every 5 ms.
	taken = 0
	for range 60 * 200 {
		now = now.Add(5 * time.Millisecond)
		for i := range all {
			for range 2 {
				if all[i].Take(now, 1) {
					taken++
				}
			}
		}
		hear()
	}
	if taken < limit*95/100 || taken > limit {
		t.Errorf("a minute gives %d, want %d", taken, limit)
	}
	// What is set aside for an answer and not used is there again, everywhere.
	now = now.Add(time.Minute)
	if !all[0].Reserve(now, 500) || all[0].Reserve(now, 50) {
		t.Error("one request may have more than a share, two not")
	}
	hear()
	all[0].Settle(now, 500, 100)
	hear()
	for i := range all {
		if level := all[i].Level(now); math.Abs(level-(limit-100)) > 0.001 {
			t.Errorf("copy %d has %v", i, level)
		}
	}
}

// One that knows of no others gives all at once.
func TestSharedBucketAlone(t *testing.T) {
	b := PerMinute(60)
	b.Share(&Sharing{Others: func() int { return 0 }, Took: func(float64) {}})
	now := time.Now()
	for i := range 60 {
		if !b.Take(now, 1) {
			t.Fatalf("%d of 60", i)
		}
	}
}

// What another process says it took shuts nobody out for longer than twice the time that fills the bucket, and
// excuses no debt that was made here.
func TestTakenElsewhereIsBounded(t *testing.T) {
	now := time.Now()
	b := PerMinute(600)
	b.TakenElsewhere(now, 1e17)
	if level := b.Level(now); level != -600 {
		t.Errorf("level %v, want -600", level)
	}
	b.Spend(now, 100)
	b.TakenElsewhere(now, 5)
	if level := b.Level(now); level != -700 {
		t.Errorf("level %v, want -700", level)
	}
}
