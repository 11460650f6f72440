// Tests of what the planner is told.

package proxy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kvasir/kvroute"
	"kvasir/planner"
)

// What workers answered is told, with its lengths and times; what they did not, or was for another model, is not.
func TestRequestsAreRecorded(t *testing.T) {
	good, bad := goodWorker(t), startWorker(t, send(httpReply(400, "application/json", `{"error":{"message":"no"}}`)))
	streams := startWorker(t, send(streamHead+chunk(roleEvent)+chunk(delta("a"))+chunk(finishEvent+usageEvent+doneEvent)+"0\r\n\r\n"))
	s := settingsFor(good.url, bad.url, streams.url)
	s.Models = append(s.Models, Model{Name: "other"}, Model{Name: "streams"})
	s.Workers[1].Models, s.Workers[2].Models = []string{"other"}, []string{"streams"}
	p := startProxy(t, s)
	begin := time.Now()
	for _, c := range []struct {
		model, body string
		came, done  int
	}{
		{"", plainChat, 1, 1}, {"m", plainChat, 1, 1}, {"m", strings.Replace(plainChat, `"m"`, `"other"`, 1), 0, 0},
		{"", strings.Replace(plainChat, `"m"`, `"other"`, 1), 1, 0}, {"other", plainChat, 0, 0}, {"", strings.Replace(streamChat, `"m"`, `"streams"`, 1), 1, 1},
	} {
		r := planner.NewRecorder(1<<16, time.Hour, begin)
		p.Record(r, c.model)
		p.ask(t, chatPath, c.body)
		o := planner.Options{}.WithDefaults()
		l := r.Load(begin.Add(time.Minute), &o)
		waitUntil(t, "the request has ended", func() bool { // its client hears so first
			l = r.Load(begin.Add(time.Minute), &o)
			return len(l.Done.Requests) == c.done
		})
		came := 0
		for _, n := range l.Arrivals {
			came += n
		}
		if came != c.came || len(l.Done.Requests) != c.done {
			t.Errorf("%q, %s: %d came, %d done", c.model, c.body, came, len(l.Done.Requests))
		}
		if c.done > 0 {
			if q := l.Done.Requests[0]; q.PromptTokens != 7 || q.AnswerTokens != 2 {
				t.Errorf("%q, %s: %+v", c.model, c.body, q)
			}
		}
	}
	r := planner.NewRecorder(1<<16, time.Hour, begin)
	p.Record(r, "")
	p.ask(t, "/v1/embeddings", `{"model":"m","input":"x"}`)
	o := planner.Options{}.WithDefaults()
	if l := r.Load(begin.Add(time.Minute), &o); l.Arrivals[0]+l.Arrivals[1]+l.Arrivals[2] != 0 {
		t.Errorf("embeddings are recorded: %v", l.Arrivals)
	}
}

// To be recorded costs a request no allocation.
func TestRecordingAllocatesNothing(t *testing.T) {
	p := &Proxy{}
	p.Record(planner.NewRecorder(1<<20, time.Hour, time.Now()), "")
	prompt := kvroute.Prompt{IDs: make([]uint32, 8000)}
	if n := len(prompt.AppendNames(nil, planner.PieceTokens)); n != 31 {
		t.Fatalf("%d pieces", n)
	}
	r := p.planning.records.Load()
	if raceEnabled {
		t.Skip("the race detector allocates, and empties pools at random")
	}
	if n := testing.AllocsPerRun(1000, func() {
		ticket := r.came(time.Now(), &prompt)
		r.to.Done(ticket, planner.Done{PromptTokens: 8000, AnswerTokens: 3, E2E: time.Second})
	}); n > 0.1 { // the pool's memory may go with a collection
		t.Errorf("%v allocations", n)
	}
}

// Workers that are not up are known, of those that never said what they serve too.
func TestSizesOfWhatIsDown(t *testing.T) {
	s := settingsFor(goodWorker(t).url, "http://127.0.0.1:1", "http://127.0.0.1:1")
	s.Workers[1].Models, s.Workers[2].Models = nil, []string{"other"}
	p := startProxy(t, s)
	waitUntil(t, "two are known to be down", func() bool { return p.Sizes("").Fleet.Total() == 1 })
	if all, m := p.Sizes(""), p.Sizes("m"); all.Known.Workers != 3 || m.Known.Workers != 2 || m.Fleet.Workers != 1 {
		t.Errorf("%+v, %+v", all, m)
	}
}

func TestSizes(t *testing.T) {
	s := settingsFor(goodWorker(t).url, goodWorker(t).url, goodWorker(t).url)
	s.Workers[0].Role, s.Workers[1].Role, s.Workers[2].Models = "prefill", "decode", []string{"other"}
	p := startProxy(t, s)
	for i := range 3 {
		p.backendOf(t, fmt.Sprintf("w%d", i)).SetEngine(kvroute.EngineFacts{BlockSize: 16, Blocks: 1000 + i})
	}
	waitUntil(t, "workers are up", func() bool { return p.Sizes("").Fleet.Total() == 3 })
	all, m := p.Sizes(""), p.Sizes("m")
	if f := all.Fleet; f.Prefill != 1 || f.Decode != 1 || f.Workers != 1 || all.Engine.BlockSize != 16 || all.Engine.Blocks != 1000 || all.Pace != 0 {
		t.Errorf("%+v", all)
	}
	if all.Known != all.Fleet || m.Known != m.Fleet {
		t.Errorf("all are up: %+v, %+v", all, m)
	}
	if f := m.Fleet; f.Prefill != 1 || f.Decode != 1 || f.Workers != 0 {
		t.Errorf("%+v", m)
	}
}
