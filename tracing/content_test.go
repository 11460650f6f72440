// Tests of prompts and answers on their way to the collector.

package tracing

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"kvasir/proxy/record"
)

// told is a request whose record has content of so many bytes.
func told(bytes int) *record.Record {
	return &record.Record{Route: "/v1/chat/completions", Asked: "m", Trace: sampled(1), Began: began,
		Content: &record.Content{Input: strings.Repeat("a", bytes)}}
}

func TestContent(t *testing.T) {
	c := startCollector(t)
	tr, _ := start(t, &Options{Endpoint: c.endpoint()})
	r := told(3)
	r.Content.System, r.Content.Output = "[s]", "[o]"
	tr.Observe(r)
	r.Content = &record.Content{LeftOut: "unjudged"}
	tr.Observe(r)
	r.Content = nil
	tr.Observe(r)
	tr.Close()
	for i, want := range []map[string]string{
		{"gen_ai.system_instructions": "[s]", "gen_ai.input.messages": "aaa", "gen_ai.output.messages": "[o]", "kvasir.content.left_out": ""},
		{"gen_ai.system_instructions": "", "gen_ai.input.messages": "", "gen_ai.output.messages": "", "kvasir.content.left_out": "unjudged"},
		{"gen_ai.system_instructions": "", "gen_ai.input.messages": "", "gen_ai.output.messages": "", "kvasir.content.left_out": ""},
	} {
		has := attributesOf(c.spans[i].Attributes)
		for name, value := range want {
			if has[name] != value {
				t.Errorf("span %d: %s is %q, want %q", i, name, has[name], value)
			}
		}
	}
}

// A batch with much content goes out in messages that collectors take.
func TestContentInManyMessages(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "60000")
	c := startCollector(t)
	tr, _ := start(t, &Options{Endpoint: c.endpoint()})
	const requests, size = 100, 128 << 10
	for range requests {
		tr.Observe(told(size))
	}
	p := tr.now.Load()
	if err := p.batches.ForceFlush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.count() != requests || c.longest > 4<<20 || len(c.asked) < requests*size/maxBatch {
		t.Errorf("%d spans in %d messages, the longest of %d bytes", c.count(), len(c.asked), c.longest)
	}
	if p.content.Load() != 0 || p.waiting.Load() != 0 {
		t.Errorf("%d bytes and %d spans wait", p.content.Load(), p.waiting.Load())
	}
}

// Where too much waits, spans go without content and say so.
func TestContentWithoutRoom(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "60000")
	c := startCollector(t)
	tr, _ := start(t, &Options{Endpoint: c.endpoint()})
	const fit = 4
	for range fit + 1 {
		tr.Observe(told(maxContent / fit))
	}
	p := tr.now.Load()
	if p.content.Load() != maxContent {
		t.Errorf("%d bytes wait", p.content.Load())
	}
	if err := p.batches.ForceFlush(t.Context()); err != nil {
		t.Fatal(err)
	}
	last := attributesOf(c.spans[fit].Attributes)
	if last["kvasir.content.left_out"] != "queue_full" || last["gen_ai.input.messages"] != "" || p.content.Load() != 0 {
		t.Errorf("the last one has %v, %d bytes wait", last, p.content.Load())
	}
	if n, left := testutil.ToFloat64(tr.exported), testutil.ToFloat64(tr.leftOut.WithLabelValues("queue_full")); n != fit+1 || left != 1 {
		t.Errorf("%v spans are exported, %v without content", n, left)
	}
}

// The SDK's own limits may cut content; the count of what waits goes by what is left.
func TestContentUnderTheLimitsOfSpans(t *testing.T) {
	t.Setenv("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "5")
	c := startCollector(t)
	tr, _ := start(t, &Options{Endpoint: c.endpoint()})
	tr.Observe(told(1000))
	p := tr.now.Load()
	if err := p.batches.ForceFlush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := attributesOf(c.spans[0].Attributes)["gen_ai.input.messages"]; got != "aaaaa" || p.content.Load() != 0 {
		t.Errorf("it has %q, %d bytes wait", got, p.content.Load())
	}
}
