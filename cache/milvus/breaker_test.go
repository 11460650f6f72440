package milvus

import (
	"testing"
	"testing/synctest"
	"time"
)

// call makes one call that ends at once.
func (b *breaker) call(t *testing.T, good bool) (made bool) {
	t.Helper()
	turn, ok := b.allow(time.Now())
	if ok && good {
		b.succeed(turn)
	} else if ok {
		b.fail(turn, time.Now(), "why")
	}
	return ok
}

func wantState(t *testing.T, b *breaker, want string) {
	t.Helper()
	if got := b.state(time.Now()); got != want {
		t.Errorf("the breaker is %s, want %s", got, want)
	}
}

func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b breaker
		for range 3 { // failures with a success between them
			for range breakAfter - 1 {
				b.call(t, false)
			}
			b.call(t, true)
		}
		wantState(t, &b, stateClosed)
		for range breakAfter {
			wantState(t, &b, stateClosed)
			b.call(t, false)
		}
		wantState(t, &b, stateOpen)
		if why, n := b.last(); why != "why" || n != breakAfter {
			t.Errorf("the last failure is %q, %d in a row", why, n)
		}
		for range 100 {
			if b.call(t, true) {
				t.Fatal("an open breaker lets a call through")
			}
		}

		time.Sleep(breakFor - time.Nanosecond)
		wantState(t, &b, stateOpen)
		time.Sleep(time.Nanosecond)
		wantState(t, &b, stateHalfOpen)
		turn, ok := b.allow(time.Now())
		if !ok || b.call(t, true) {
			t.Fatal("a half open breaker lets one call through")
		}
		if !b.fail(turn, time.Now(), "again") {
			t.Error("a failed try does not open the breaker")
		}
		wantState(t, &b, stateOpen)

		time.Sleep(breakFor)
		if !b.call(t, true) {
			t.Fatal("a half open breaker lets no call through")
		}
		wantState(t, &b, stateClosed)
		if why, n := b.last(); why != "" || n != 0 {
			t.Errorf("the last failure is %q, %d in a row", why, n)
		}
		b.call(t, false)
		wantState(t, &b, stateClosed)
	})
}

// Calls that began before the breaker opened and end afterwards change nothing.
func TestBreakerLateEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b breaker
		var turns [2 * breakAfter]uint64
		for i := range turns {
			turns[i], _ = b.allow(time.Now())
		}
		opened := 0
		for _, turn := range turns[:breakAfter+1] {
			if b.fail(turn, time.Now(), "why") {
				opened++
			}
		}
		if opened != 1 {
			t.Errorf("opened %d times", opened)
		}
		time.Sleep(breakFor / 2)
		b.fail(turns[breakAfter+1], time.Now(), "late")
		b.succeed(turns[breakAfter+2])
		wantState(t, &b, stateOpen)
		time.Sleep(breakFor / 2)
		wantState(t, &b, stateHalfOpen)
		if _, ok := b.allow(time.Now()); !ok {
			t.Fatal("no try")
		}
		b.succeed(turns[breakAfter+3])
		b.fail(turns[breakAfter+4], time.Now(), "late")
		if b.call(t, true) {
			t.Error("a second try while the first is on its way")
		}
	})
}
