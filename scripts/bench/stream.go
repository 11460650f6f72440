//go:build linux

// Streams: the delay that each way adds to an event; sender, proxy and reader are three
// processes.

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

func measureStream(ctx context.Context, b *bench) error {
	dir, err := b.workDir("stream")
	if err != nil {
		return err
	}
	worker, err := startWorker(ctx, dir)
	if err != nil {
		return err
	}
	defer worker.stop()
	names := []string{wayDirect, wayRelay, wayNginx, b.subject()}
	if b.peer {
		names = append(names, wayRouter)
	}
	ways, err := b.startWays(ctx, dir, worker.address, names...)
	if err != nil {
		return err
	}
	defer stopAll(ways)

	found := map[string][]delays{}
	for pass := -1; pass < b.passes; pass++ { // the first one warms up
		for i := range ways {
			w := ways[(i+max(pass, 0))%len(ways)]
			d, err := streamOnce(ctx, w.address, b.events)
			if err != nil {
				return fmt.Errorf("cannot stream through %s: %w", w.name, err)
			}
			if pass >= 0 {
				found[w.name] = append(found[w.name], d)
			}
		}
	}
	b.reportStream(ways, found)
	return nil
}

// delays are the delays of the events of one stream, first to last.
type delays []time.Duration

// streamOnce reads one stream of n events, all of which must arrive.
func streamOnce(ctx context.Context, address string, n int) (delays, error) {
	c, err := ask(address, nil, chat(modelTicks, true, n))
	if err != nil {
		return nil, err
	}
	defer c.leave()
	stop := context.AfterFunc(ctx, c.reset)
	defer stop()
	if err := c.head(); err != nil {
		return nil, err
	}
	found := make(delays, 0, n)
	for {
		sent, came, err := c.event()
		if errors.Is(err, errStreamEnd) {
			break
		}
		if err != nil {
			return nil, err
		}
		found = append(found, came-sent)
	}
	if len(found) != n {
		return nil, fmt.Errorf("%d of %d events came", len(found), n)
	}
	return found, nil
}

// added compares each pass with the direct stream of the same pass: it takes the difference of
// their q-quantiles, and returns the median of these differences over the passes.
func added(way, direct []delays, q float64) time.Duration {
	each := make([]time.Duration, len(way))
	for i := range way {
		each[i] = quantile(append(delays(nil), way[i]...), q) - quantile(append(delays(nil), direct[i]...), q)
	}
	return median(each)
}

func (b *bench) reportStream(ways []*way, found map[string][]delays) {
	t := table{title: fmt.Sprintf("Streamed events, one each 2 ms, %d streams of %d", b.passes, b.events),
		head: []string{"way", "p50", "p99", "added p50", "added p99"}}
	for _, w := range ways {
		var all delays
		for _, d := range found[w.name] {
			all = append(all, d...)
		}
		row := []string{w.name, micros(quantile(all, 0.5)), micros(quantile(all, 0.99)), "", ""}
		if w.name != wayDirect {
			row[3] = micros(added(found[w.name], found[wayDirect], 0.5))
			row[4] = micros(added(found[w.name], found[wayDirect], 0.99))
		}
		t.rows = append(t.rows, row)
	}
	t.notes = []string{"Added: the median over the passes of the difference to the direct stream of the same pass."}
	b.report.add(t)

	mine, relay := added(found[b.subject()], found[wayDirect], 0.5), added(found[wayRelay], found[wayDirect], 0.5)
	b.report.judge(verdict{"added p50 per streamed event over direct", fmt.Sprintf("%s (bare TCP relay: %s)", micros(mine), micros(relay)),
		"<= 10 us, or <= relay + 5 us", mine <= 10*time.Microsecond || mine <= relay+5*time.Microsecond})
}
