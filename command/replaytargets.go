// Targets and a changing fleet in `kvasir replay`: to confirm what `kvasir plan` says.

package command

import (
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"kvasir/kvroute/replay"
)

// targetFlags are the flags of targets, and of a fleet that changes.
type targetFlags struct {
	ttft, itl, from, start time.Duration
	share                  float64
	scale                  string
	asked                  bool // for targets
}

func (f *targetFlags) add(fs *pflag.FlagSet) {
	f.addTargets(fs)
	fs.DurationVar(&f.from, "target-from", 0, "requests that arrive before this `time` do not count for the targets")
	fs.StringVar(&f.scale, "scale", "", "change the number of workers at these times: `T:N,T:N`, such as 10m:6,25m:4, or with --prefill and --decode 10m:2+4")
	fs.DurationVar(&f.start, "start-time", time.Minute, "with --scale: `time` that a new worker takes to start")
}

func (f *targetFlags) addTargets(fs *pflag.FlagSet) {
	fs.DurationVar(&f.ttft, "target-ttft", 500*time.Millisecond, "target: `time` to the first token")
	fs.DurationVar(&f.itl, "target-itl", 50*time.Millisecond, "target: `time` between two tokens, on average over an answer")
	fs.Float64Var(&f.share, "share", 0.95, "`share` of the requests that must keep both targets")
}

// read checks the flags of targets.
func (f *targetFlags) read(changed func(string) bool) error {
	f.asked = changed("target-ttft") || changed("target-itl") || changed("share")
	if f.ttft <= 0 || f.itl <= 0 || f.from < 0 || f.start < 0 {
		return usageError("--target-ttft and --target-itl must be above 0, --target-from and --start-time not below it")
	}
	if !(f.share > 0 && f.share < 1) { // also NaN
		return usageError(fmt.Sprintf("--share: %v is not above 0 and below 1", f.share))
	}
	return nil
}

// readScale gives the options the fleet's changes.
func (f *targetFlags) readScale(o *replay.Options, changed func(string) bool) error {
	if f.scale == "" {
		if changed("start-time") {
			return usageError("--start-time is of workers that are added: add --scale")
		}
		return nil
	}
	changes, err := readChanges(f.scale)
	if err != nil {
		return usageError("--scale: " + err.Error())
	}
	o.Scaling = &replay.Scaling{First: changes[0].at, Start: f.start, Most: o.Workers + o.Prefill + o.Decode}
	for _, c := range changes {
		o.Scaling.Most = max(o.Scaling.Most, c.to.Total())
		if (c.to.Workers > 0) != (o.Workers > 0) || (c.to.Decode > 0) != (o.Decode > 0) {
			return usageError(fmt.Sprintf("--scale: %v workers: it must keep the roles that there are, N of --workers or P+D of --prefill and --decode", c.to))
		}
	}
	o.Scaling.Want = func(now time.Duration, _ []replay.RequestResult) (replay.Fleet, time.Duration) {
		next := sort.Search(len(changes), func(i int) bool { return changes[i].at > now })
		if next == len(changes) {
			return changes[next-1].to, now
		}
		return changes[next-1].to, changes[next].at
	}
	return nil
}

// A fleetChange is one part of --scale.
type fleetChange struct {
	at time.Duration
	to replay.Fleet
}

// readChanges reads T:N,T:N.
func readChanges(text string) ([]fleetChange, error) {
	var changes []fleetChange
	for part := range strings.SplitSeq(text, ",") {
		when, many, _ := strings.Cut(part, ":")
		at, err := time.ParseDuration(when)
		if err != nil || at < 0 {
			return nil, fmt.Errorf("%q: want a time and a number of workers, such as 10m:6", part)
		}
		var to replay.Fleet
		prefill, decode, apart := strings.Cut(many, "+")
		first, err := strconv.Atoi(prefill)
		if to.Workers = first; apart && err == nil {
			to = replay.Fleet{Prefill: first}
			to.Decode, err = strconv.Atoi(decode)
		}
		if err != nil || min(to.Workers, to.Prefill, to.Decode) < 0 || to.Total() < 1 || to.Total() > replay.MaxWorkers || apart && min(to.Prefill, to.Decode) < 1 {
			return nil, fmt.Errorf("%q: want a number of workers such as 10m:6, or of both roles such as 10m:2+4, at most %d together", part, replay.MaxWorkers)
		}
		if n := len(changes); n > 0 && changes[n-1].at >= at {
			return nil, fmt.Errorf("%q: times must rise", part)
		}
		changes = append(changes, fleetChange{at, to})
	}
	return changes, nil
}

func (f *targetFlags) targets() replay.Targets { return replay.Targets{TTFT: f.ttft, ITL: f.itl} }

// kept says how a replay did; nil: nobody asked.
func (f *targetFlags) kept(t *replay.Trace, r *replay.Result, speed float64) *replay.Kept {
	if !f.asked {
		return nil
	}
	first := sort.Search(len(t.Requests), func(i int) bool {
		return float64(t.Requests[i].Arrival-t.Requests[0].Arrival)/speed >= float64(f.from)
	})
	k := t.Kept(r.Each, first, len(r.Each), f.targets(), f.share)
	return &k
}

// printKept prints how a replay did against targets, if anybody asked.
func printKept(w io.Writer, r *replay.Result) {
	if k := r.Targets; k != nil {
		fmt.Fprintf(w, "targets kept          %.2f %% of %d requests (first token %.2f %%, between tokens %.2f %%)\n",
			100*k.Share, k.Requests, 100*k.KeptTTFT, 100*k.KeptITL)
		fmt.Fprintf(w, "at the share asked for first token %.1f ms, between tokens %.1f ms, each by itself\n", k.TTFT, k.ITL)
	}
}
