// Tests of the ring.

package page

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"unsafe"

	"kvasir/proxy/record"
)

// numbers are those of the requests that are kept, the newest first.
func (k *ring) numbers() (all []uint64) {
	k.each(math.MaxInt64, func(seq uint64, _ *record.Record) bool {
		all = append(all, seq)
		return true
	})
	return all
}

// TestRing keeps the last thousand, each as it was told, and nothing of the memory that it was told in.
func TestRing(t *testing.T) {
	var k ring
	k.init()
	if kept, dropped := k.count(); kept != 0 || dropped != 0 || k.numbers() != nil {
		t.Errorf("a new one has %d and dropped %d", kept, dropped)
	}
	r := ended()
	r.Content = &record.Content{Input: "what was asked"}
	for i := range mostKept + 500 {
		r.Status, r.Steps[1].Leg.Worker, r.Placement.Candidates[0].Cost = i, fmt.Sprint(i), float64(i)
		k.add(r)
	}
	*r.Steps[1].Leg = record.Leg{}
	clear(r.Steps)
	clear(r.Placement.Candidates)
	all := k.numbers()
	if len(all) != mostKept || all[0] != mostKept+500 || all[mostKept-1] != 501 {
		t.Fatalf("%d are kept, from %d to %d", len(all), all[0], all[len(all)-1])
	}
	k.each(math.MaxInt64, func(seq uint64, r *record.Record) bool {
		i := int(seq) - 1
		if r.Status != i || r.Steps[1].Leg.Worker != fmt.Sprint(i) || r.Placement.Candidates[0].Cost != float64(i) || r.WorkerID != nil || r.Content != nil {
			t.Fatalf("number %d is %+v", seq, r)
		}
		return true
	})
	var some []uint64
	k.each(700, func(seq uint64, _ *record.Record) bool {
		some = append(some, seq)
		return len(some) < 3
	})
	if fmt.Sprint(some) != "[699 698 697]" {
		t.Errorf("before 700 are %v", some)
	}
	k.each(0, func(seq uint64, _ *record.Record) bool {
		t.Errorf("before 0 is %d", seq)
		return false
	})
}

// TestRingIsBounded: whatever clients and workers make requests to be, the ring has no more memory
// than its bound; the oldest go first, and one that is larger than all does not stay.
func TestRingIsBounded(t *testing.T) {
	var k ring
	k.init()
	large := ended()
	for range 63 {
		large.Steps = append(large.Steps, large.Steps[1])
	}
	for range 31 {
		large.Placement.Candidates = append(large.Placement.Candidates, large.Placement.Candidates[0])
	}
	large.Judgement.Matched = make([]record.Match, 100)
	for i := range 3 * mostKept {
		r := ended()
		if i%3 > 0 {
			r = large
		}
		k.add(r)
		if k.bytes.Load() > mostKeptBytes {
			t.Fatalf("%d bytes after %d", k.bytes.Load(), i)
		}
	}
	all := k.numbers()
	for i, seq := range all {
		if seq != uint64(3*mostKept-i) {
			t.Fatalf("at place %d is number %d", i, seq)
		}
	}
	if kept, dropped := k.count(); kept != len(all) || kept+dropped != 3*mostKept || kept < mostKept/2 || kept == mostKept {
		t.Errorf("%d kept, %d dropped", kept, dropped)
	}
	k.checkBytes(t)
	k.look(all[0], func(_ uint64, r *record.Record) bool {
		if len(r.Placement.Candidates) != mostCandidates || r.Placement.LeftOut != 32-mostCandidates {
			t.Errorf("%d candidates, %d left out", len(r.Placement.Candidates), r.Placement.LeftOut)
		}
		return true
	})
	k.most = int64(unsafe.Sizeof(k.slots)) + 100
	k.add(large)
	if all := k.numbers(); len(all) != 0 {
		t.Errorf("kept are %v", all)
	}
	k.checkBytes(t)
}

// checkBytes compares the sum with what is there.
func (k *ring) checkBytes(t *testing.T) {
	t.Helper()
	sum := int64(unsafe.Sizeof(k.slots))
	for i := range k.slots {
		if s := &k.slots[i]; s.bytes != s.size() {
			t.Errorf("slot %d counts %d bytes, has %d", i, s.bytes, s.size())
		}
		sum += k.slots[i].bytes
	}
	if sum != k.bytes.Load() {
		t.Errorf("%d bytes are counted, %d are there", k.bytes.Load(), sum)
	}
}

// TestRingAtOnce: requests that end and are looked at at the same time, with the bound in force.
func TestRingAtOnce(t *testing.T) {
	var k ring
	k.init()
	k.most = int64(unsafe.Sizeof(k.slots)) + 50_000
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 3000 {
				r := ended()
				for range (i + g) % 20 {
					r.Steps = append(r.Steps, r.Steps[0])
				}
				k.add(r)
			}
		})
	}
	all.Go(func() {
		for range 100 {
			last := uint64(math.MaxUint64)
			k.each(math.MaxInt64, func(seq uint64, r *record.Record) bool {
				if seq >= last || r.Status != 200 || r.Steps[0].Name != record.Read {
					t.Errorf("number %d after %d is %+v", seq, last, r)
				}
				last = seq
				return true
			})
		}
	})
	all.Wait()
	k.checkBytes(t)
	if k.bytes.Load() > k.most {
		t.Errorf("%d bytes, at most %d", k.bytes.Load(), k.most)
	}
}
