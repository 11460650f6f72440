//go:build linux

// Memory: the memory that idle streams hold, and how far readers that stop can make it grow.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// openers is how many streams are opened at once.
const openers = 64

// measureIdle opens the streams through the subject, and through nginx for comparison, and reads
// the resident memory before and after.
func measureIdle(ctx context.Context, b *bench) error {
	limit, err := fileLimit()
	if err != nil {
		return err
	}
	// A proxy needs two descriptors per stream, and some for itself.
	streams := min(b.streams, int(limit-300)/2)
	if streams < b.streams {
		b.say("  only %d streams: the hard limit of open files is %d (ulimit -Hn)", streams, limit)
	}
	t := table{title: fmt.Sprintf("%d idle streams", streams), head: []string{"way", "before", "after", "each"},
		notes: []string{"Resident memory of the process and its children (VmRSS), settled to 1 % over 3 s; both connections of each stream are in it, kernel buffers are not. Every stream was given its end afterwards and had it delivered."}}
	var mine float64
	for _, name := range []string{b.subject(), wayNginx} {
		before, after, err := b.idleThrough(ctx, name, streams)
		if err != nil {
			return fmt.Errorf("through %s: %w", name, err)
		}
		each := float64(after-before) / float64(streams) / 1024
		if name == b.subject() {
			mine = each
		}
		t.rows = append(t.rows, []string{name, mebibytes(before), mebibytes(after), fmt.Sprintf("%.1f KiB", each)})
	}
	b.report.add(t)
	b.report.judge(verdict{fmt.Sprintf("%d idle streams, both sides together", streams), fmt.Sprintf("%.1f KiB each", mine), "<= 25 KiB each", mine <= 25})
	return nil
}

func (b *bench) idleThrough(ctx context.Context, name string, streams int) (before, after int64, err error) {
	dir, err := b.workDir("idle")
	if err != nil {
		return 0, 0, err
	}
	worker, err := startWorker(ctx, dir)
	if err != nil {
		return 0, 0, err
	}
	defer worker.stop()
	ways, err := b.startWays(ctx, dir, worker.address, name)
	if err != nil {
		return 0, 0, err
	}
	defer stopAll(ways)
	if before, err = ways[0].proc.settledRSS(ctx, 3*time.Second, 20*time.Second); err != nil {
		return 0, 0, err
	}
	calls, err := openStreams(ctx, ways[0].address, modelIdle, streams)
	defer resetAll(calls)
	if err != nil {
		return 0, 0, err
	}
	if after, err = ways[0].proc.settledRSS(ctx, 3*time.Second, 40*time.Second); err != nil {
		return 0, 0, err
	}
	return before, after, endStreams(ctx, worker, calls)
}

// openStreams opens n streams and waits for the first token of each. The caller must reset the
// returned calls, also after an error.
func openStreams(ctx context.Context, address, model string, n int) ([]*call, error) {
	var mu sync.Mutex // guards calls and failed
	var calls []*call
	var failed error
	open := func() bool {
		c, err := ask(address, nil, chat(model, true, 16))
		if err == nil {
			if err = c.head(); err == nil {
				_, _, err = c.event()
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if c != nil {
			calls = append(calls, c)
		}
		if err != nil && failed == nil {
			failed = fmt.Errorf("cannot open stream %d: %w", len(calls), err)
		}
		return failed == nil && ctx.Err() == nil
	}
	tickets := make(chan struct{}, n)
	for range n {
		tickets <- struct{}{}
	}
	close(tickets)
	var group sync.WaitGroup
	for range openers {
		group.Go(func() {
			for range tickets {
				if !open() {
					return
				}
			}
		})
	}
	group.Wait()
	return calls, errors.Join(failed, ctx.Err())
}

func resetAll(calls []*call) {
	for _, c := range calls {
		c.reset()
	}
}

// endStreams makes the worker end its streams and requires that each proper end is delivered:
// otherwise some were not idle but dead.
func endStreams(ctx context.Context, worker *way, calls []*call) error {
	held, err := workerStats(worker)
	if err != nil {
		return err
	}
	if held.Held != len(calls) {
		return fmt.Errorf("the worker holds %d of %d streams", held.Held, len(calls))
	}
	if _, _, err := get(worker.address, "/bench/finish"); err != nil {
		return fmt.Errorf("cannot end the streams: %w", err)
	}
	for i, c := range calls {
		if err := ctx.Err(); err != nil {
			return err
		}
		_ = c.tcp.SetReadDeadline(time.Now().Add(20 * time.Second)) // fails only on a closed socket, as the read will
		if _, _, err := c.event(); !errors.Is(err, errStreamEnd) {
			return fmt.Errorf("stream %d did not end as it should: %w", i, err)
		}
	}
	return nil
}

type stats struct {
	Held    int   `json:"held"`
	Written int64 `json:"written"`
}

func workerStats(worker *way) (stats, error) {
	var s stats
	_, text, err := get(worker.address, "/bench/stats")
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return s, fmt.Errorf("cannot ask the worker: %w", err)
	}
	return s, nil
}

const (
	readersFill  = 4 * time.Second  // time for the kernel's buffers to fill
	readersWatch = 15 * time.Second // time during which memory must then stay flat
	flatBytes    = 8 << 20          // growth that still counts as flat
)

// measureReaders has readers stop after the first event of an endless stream.
func measureReaders(ctx context.Context, b *bench) error {
	dir, err := b.workDir("readers")
	if err != nil {
		return err
	}
	worker, err := startWorker(ctx, dir)
	if err != nil {
		return err
	}
	defer worker.stop()
	ways, err := b.startWays(ctx, dir, worker.address, b.subject())
	if err != nil {
		return err
	}
	defer stopAll(ways)
	proc := ways[0].proc
	idle, err := proc.settledRSS(ctx, time.Second, 5*time.Second)
	if err != nil {
		return err
	}
	calls, err := openStreams(ctx, ways[0].address, modelFlood, b.readers)
	defer resetAll(calls)
	if err != nil {
		return err
	}
	if _, err := watchRSS(ctx, proc, readersFill); err != nil {
		return err
	}
	first, err := workerStats(worker)
	if err != nil {
		return err
	}
	seen, err := watchRSS(ctx, proc, readersWatch)
	if err != nil {
		return err
	}
	last, err := workerStats(worker)
	if err != nil {
		return err
	}
	if last.Held != b.readers {
		return fmt.Errorf("only %d of %d streams are still open: memory says nothing", last.Held, b.readers)
	}
	b.reportReaders(idle, seen, first, last)
	return nil
}

// watchRSS reads the memory ten times a second.
func watchRSS(ctx context.Context, proc *process, length time.Duration) ([]int64, error) {
	var seen []int64
	for end := time.Now().Add(length); time.Now().Before(end); {
		n, err := proc.rss()
		if err != nil {
			return nil, err
		}
		seen = append(seen, n)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return seen, nil
}

func (b *bench) reportReaders(idle int64, seen []int64, first, last stats) {
	start, end, most := seen[0], seen[len(seen)-1], quantile(append([]int64(nil), seen...), 1)
	b.report.add(table{title: fmt.Sprintf("%d readers that stopped, endless streams", b.readers),
		head: []string{"before", "start", fmt.Sprintf("end, %v later", readersWatch), "most", "each", "worker could still write meanwhile"},
		rows: [][]string{{mebibytes(idle), mebibytes(start), mebibytes(end), mebibytes(most),
			fmt.Sprintf("%.1f KiB", float64(most-idle)/float64(b.readers)/1024), mebibytes(last.Written - first.Written)}},
		notes: []string{fmt.Sprintf("Start is %v after the readers stopped. All streams were open to the end; the worker had written %s in all, most of which lies in the kernel's buffers.", readersFill, mebibytes(last.Written))}})
	b.report.judge(verdict{fmt.Sprintf("%d readers that stopped, endless streams", b.readers),
		fmt.Sprintf("%s -> %s in %v, most %s", mebibytes(start), mebibytes(end), readersWatch, mebibytes(most)),
		"flat (8 MiB at most)", most-start <= flatBytes})
}
