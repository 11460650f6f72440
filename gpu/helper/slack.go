//go:build linux && cgo

// Slack: the helper's timers may fire a millisecond late. This file also sets its name in ps and
// top.

package main

/*
#include <sys/prctl.h>

// Before Go's runtime has made a thread: each inherits it.
__attribute__((constructor)) static void slack(void) {
	prctl(PR_SET_TIMERSLACK, 1000000UL, 0, 0, 0);
	prctl(PR_SET_NAME, "kvasir-gpu", 0, 0, 0); // else it is the number of the memfd
}
*/
import "C"

// During a round, Go's runtime checks every 20 microseconds whether a call into the library takes
// long, and then wakes another thread to take over. With the slack it checks about once, after
// the round, so that the round stays on one thread: 0.16 % of a core instead of 0.21 to 0.32,
// with the fake driver. A call that hangs is still noticed within a few milliseconds.
