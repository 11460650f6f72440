// Several routers before the same engines.

package replay

import (
	"slices"
	"testing"
	"time"
)

// Four routers that tell each other place nearly as well as one that sees all, and far better than four that do not.
func TestReplicas(t *testing.T) {
	trace := conversation(t)
	trace.Spread(3*time.Second, 1)
	o := Options{Workers: 4, Speed: 3, Policy: "predict", Queue: true}
	one := run(t, trace, o)
	o.Replicas, o.Sync = 4, -1
	apart := run(t, trace, o)
	o.Sync = 5 * time.Millisecond
	told := run(t, trace, o)
	t.Logf("one %.1f ms, told %.1f, apart %.1f; %.2f messages, %.0f bytes", one.TTFT.Mean, told.TTFT.Mean, apart.TTFT.Mean, told.Replicas.Messages, told.Replicas.Bytes)
	if told.TTFT.Mean > 1.1*one.TTFT.Mean {
		t.Errorf("first tokens take %.1f ms, with one router %.1f", told.TTFT.Mean, one.TTFT.Mean)
	}
	if apart.TTFT.Mean < 1.2*told.TTFT.Mean {
		t.Errorf("routers that tell nothing: %.1f ms, that do: %.1f; is anything told?", apart.TTFT.Mean, told.TTFT.Mean)
	}
	if apart.Replicas.Messages != 0 || told.Replicas.Messages < 1 || told.Replicas.Bytes < 100 || one.Replicas != nil {
		t.Errorf("%+v %+v %+v", one.Replicas, apart.Replicas, told.Replicas)
	}
}

// When all is done nobody thinks that anything is under way.
func TestReplicasAgree(t *testing.T) {
	o := Options{Workers: 2, Speed: 3, Policy: "predict", Replicas: 3, Sync: time.Millisecond}
	o = o.WithDefaults()
	f, err := newFleet(first(conversation(t), 60), &o)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.run(); err != nil {
		t.Fatal(err)
	}
	f.now += time.Second // what was said last is there
	f.collect()
	f.now += time.Second
	if err := f.deliver(); err != nil {
		t.Fatal(err)
	}
	for n, p := range f.routers {
		s := p.exchange.Stats()
		if s.Legs != 0 || s.Gaps != 0 || s.Dropped != 0 || s.Ignored != 0 || len(s.Peers) != 2 {
			t.Errorf("router %d: %+v", n, s)
		}
		for _, w := range p.workers {
			if w.Away() != 0 || w.Active() != 0 {
				t.Errorf("router %d: worker %s: %d here, %d away", n, w.Name(), w.Active(), w.Away())
			}
		}
	}
}

// Arrivals within a stamp, in order.
func TestSpread(t *testing.T) {
	trace := conversation(t)
	before := slices.Clone(trace.Requests)
	trace.Spread(3*time.Second, 1)
	if slices.EqualFunc(before, trace.Requests, func(a, b Request) bool { return a.Arrival == b.Arrival }) {
		t.Error("nothing moved")
	}
	at := map[int]time.Duration{}
	for _, r := range before {
		at[r.Line] = r.Arrival
	}
	for i, r := range trace.Requests {
		if moved := r.Arrival - at[r.Line]; moved < 0 || moved >= 3*time.Second {
			t.Errorf("line %d moved by %v", r.Line, moved)
		}
		if i > 0 && r.Arrival < trace.Requests[i-1].Arrival {
			t.Errorf("line %d is not in order", r.Line)
		}
	}
}
