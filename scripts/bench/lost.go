//go:build linux

// Lost clients: the time from a client's close to the worker's connection being closed.

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// situation is the state of a request when its client leaves.
type situation struct {
	name     string
	model    string
	streamed bool
	events   int // events that the client reads before it leaves
}

var situations = []situation{
	{"streamed, before the worker's first byte", modelSilent, true, 0},
	{"streamed, worker's head sent, no event yet", modelHead, true, 0},
	{"waiting for an answer that is not streamed", modelSilent, false, 0},
	{"idle between two events", modelIdle, true, 1},
	{"mid-stream, one event each 2 ms", modelFlow, true, 3},
}

// The proxy may still be busy with the last event; a client that leaves at once would measure
// that. So each client waits a little, each for a different time.
const (
	pauseLeast = 2 * time.Millisecond
	pauseMost  = 6 * time.Millisecond
)

const giveUp = time.Second

// After this many misses in a row a way is no longer measured, because it never closes.
const misses = 3

// lostRig is the worker in this process, which reports when its side is closed.
type lostRig struct {
	worker   *worker
	patience time.Duration // how long a worker's connection may outlive the client
	begun    chan int64
	closed   chan closing
}

// closing is the worker's report that the connection of its n-th endless request was closed.
type closing struct {
	n  int64
	at time.Duration
}

func newLostRig() (*lostRig, error) {
	w, err := listenWorker("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &lostRig{worker: w, patience: giveUp, begun: make(chan int64, 1024), closed: make(chan closing, 1024)}
	w.begun = func(n int64) { r.begun <- n }
	w.closed = func(n int64, at time.Duration) { r.closed <- closing{n, at} }
	go w.serve()
	return r, nil
}

func (r *lostRig) address() string { return r.worker.listener.Addr().String() }

func (r *lostRig) close() { r.worker.listener.Close() }

func measureLost(ctx context.Context, b *bench) error {
	dir, err := b.workDir("lost")
	if err != nil {
		return err
	}
	rig, err := newLostRig()
	if err != nil {
		return err
	}
	defer rig.close()
	names := []string{b.subject(), wayDirect, wayNginx}
	if b.peer {
		names = append(names, wayRouter)
	}
	ways, err := b.startWays(ctx, dir, rig.address(), names...)
	if err != nil {
		return err
	}
	defer stopAll(ways)
	const wanted = "p99 <= 5 ms"
	ends := []string{"FIN", "RST"}
	secure, err := b.startSecure(ctx, rig.address())
	if err != nil {
		b.report.missing("client lost under TLS", wanted, err)
	} else {
		defer secure.stop()
		ends = append(ends, "TLS")
	}

	t := table{title: "Client lost -> worker's connection closed",
		head:  []string{"situation", "close", b.subject() + " p50", "p99", "max"},
		notes: []string{fmt.Sprintf("%d samples each of %s and of the direct way (no proxy at all: what the machine itself adds), a tenth of that of the others. TLS closes with close_notify and FIN. \"never\": not within %v, %d times in a row.", b.samples, b.subject(), giveUp, misses)}}
	for _, w := range ways[1:] {
		t.head = append(t.head, w.name+" p99")
	}
	var worst time.Duration
	reached := true
	for _, s := range situations {
		for _, how := range ends {
			row, mine, err := b.lostRow(ctx, rig, ways, secure, s, how)
			if err != nil {
				return err
			}
			t.rows = append(t.rows, row)
			if mine == nil {
				reached = false
				continue
			}
			worst = max(worst, quantile(mine, 0.99))
		}
	}
	b.report.add(t)
	measured := "worst p99 " + millis(worst)
	if !reached {
		measured += "; in some situations never"
	}
	b.report.judge(verdict{"client lost -> worker's connection closed, every situation, " + strings.Join(ends, ", "), measured, wanted, reached && worst <= 5*time.Millisecond})
	return nil
}

// startSecure starts the subject a second time, with TLS to clients.
func (b *bench) startSecure(ctx context.Context, worker string) (*way, error) {
	dir, err := b.workDir("lost-tls")
	if err != nil {
		return nil, err
	}
	pair, trust, err := selfSigned(dir)
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	w := &way{name: b.subject(), address: address, secure: trust}
	if w.proc, w.admin, err = b.startSubject(dir, address, worker, pair); err != nil {
		return nil, err
	}
	probe := func() error {
		conn, err := tls.Dial("tcp", address, trust)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	if err := w.proc.ready(ctx, 20*time.Second, 20*time.Millisecond, probe); err != nil {
		w.stop()
		return nil, err
	}
	return w, nil
}

// lostRow measures one situation on every way. mine is nil if the subject never closed.
func (b *bench) lostRow(ctx context.Context, rig *lostRig, ways []*way, secure *way, s situation, how string) (row []string, mine []time.Duration, err error) {
	row = []string{s.name, how}
	subject := ways[0]
	if how == "TLS" {
		subject = secure
	}
	mine, err = rig.samples(ctx, subject, s, how, b.samples)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", subject.name, err)
	}
	if mine == nil {
		row = append(row, "never", "never", "never")
	} else {
		row = append(row, millis(quantile(mine, 0.5)), millis(quantile(mine, 0.99)), millis(quantile(mine, 1)))
	}
	for _, w := range ways[1:] {
		if how == "TLS" {
			row = append(row, "")
			continue
		}
		samples := b.samples // without a proxy: the delay of the machine itself
		if w.name != wayDirect {
			samples = max(b.samples/10, 10)
		}
		theirs, err := rig.samples(ctx, w, s, how, samples)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", w.name, err)
		}
		if theirs == nil {
			row = append(row, "never")
		} else {
			row = append(row, millis(quantile(theirs, 0.99)))
		}
	}
	b.say("  %v", row)
	return row, mine, nil
}

// samples loses n clients one after another; the result is nil if the way never closed.
func (r *lostRig) samples(ctx context.Context, w *way, s situation, how string, n int) ([]time.Duration, error) {
	var found []time.Duration
	missed := 0
	for range n {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		took, err := r.lose(w, s, how)
		if errors.Is(err, errStillOpen) {
			if missed++; missed == misses {
				return nil, nil
			}
			took, err = r.patience, nil
		} else {
			missed = 0
		}
		if err != nil {
			return nil, err
		}
		found = append(found, took)
	}
	return found, nil
}

var errStillOpen = errors.New("worker's connection still open")

// lose makes one request, leaves, and waits for the worker's report.
func (r *lostRig) lose(w *way, s situation, how string) (time.Duration, error) {
	for len(r.begun) > 0 { // requests that a proxy has retried after its client was lost
		<-r.begun
	}
	c, err := ask(w.address, w.secure, chat(s.model, s.streamed, 16))
	if err != nil {
		return 0, err
	}
	defer c.reset()
	var n int64
	select {
	case n = <-r.begun:
	case <-time.After(10 * giveUp): // a busy machine is not the proxy's fault
		return 0, fmt.Errorf("the request for %q did not reach the worker", s.model)
	}
	if err := s.readEvents(c); err != nil {
		return 0, err
	}
	time.Sleep(pauseLeast + rand.N(pauseMost-pauseLeast))
	left := now()
	if how == "RST" {
		c.reset()
	} else {
		c.leave()
	}
	return r.closing(n, left)
}

// readEvents reads the events that the client sees before it leaves.
func (s situation) readEvents(c *call) error {
	if s.events == 0 {
		return nil
	}
	if err := c.head(); err != nil {
		return err
	}
	for range s.events {
		if _, _, err := c.event(); err != nil {
			return err
		}
	}
	return nil
}

// closing waits until the connection of request n is closed. It skips reports on earlier requests
// that were given up.
func (r *lostRig) closing(n int64, left time.Duration) (time.Duration, error) {
	late := time.After(r.patience)
	for {
		select {
		case word := <-r.closed:
			if word.n != n {
				continue
			}
			if word.at < left {
				return 0, errors.New("the worker's connection was closed before the client went")
			}
			return word.at - left, nil
		case <-late:
			return 0, errStillOpen
		}
	}
}
