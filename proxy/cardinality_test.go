// What clients invent makes no series of metrics.

package proxy

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"kvasir/classify"
)

// inventions are what a client can make up, as requests with a number in each such place.
var inventions = []func(n int) string{
	func(n int) string {
		return post("/v1/chat/completions", fmt.Sprintf(`{"model":"made-up-%d","messages":[{"role":"user","content":"hi"}]}`, n))
	},
	func(n int) string {
		return post("/v1/chat/completions", fmt.Sprintf(`{"model":"made-up-%d","messages":[{"role":"user","content":"hi"}]}`, n), "Authorization: Bearer sk-a")
	},
	func(n int) string {
		return post("/v1/chat/completions", plainChat, fmt.Sprintf("Authorization: Bearer sk-%d", n))
	},
	func(n int) string {
		return post(fmt.Sprintf("/v1/made-up-%d", n), plainChat, "Authorization: Bearer sk-a")
	},
	func(n int) string {
		return fmt.Sprintf("GET /v1/models/made-up-%d HTTP/1.1\r\nHost: h%d\r\nAuthorization: Bearer sk-a\r\n\r\n", n, n)
	},
	func(n int) string {
		return fmt.Sprintf("MADE%d /v1/chat/completions HTTP/1.1\r\nHost: kvasir\r\nAuthorization: Bearer sk-a\r\nContent-Length: 0\r\n\r\n", n)
	},
	func(n int) string {
		return post("/v1/chat/completions?made-up="+fmt.Sprint(n), plainChat, "Authorization: Bearer sk-a", fmt.Sprintf("X-Made-Up-%d: %d", n, n),
			fmt.Sprintf("X-Request-Id: made-up-%d", n), fmt.Sprintf("User-Agent: made-up/%d", n), fmt.Sprintf("X-Tenant: made-up-%d", n))
	},
	func(n int) string {
		return post("/v1/chat/completions", fmt.Sprintf(`{"model":"m","user":"made-up-%d","made-up-%d":%d,"messages":[{"role":"made-up-%d","content":"hi"}]}`, n, n, n, n), "Authorization: Bearer sk-a")
	},
	func(n int) string {
		return post("/v1/chat/completions", fmt.Sprintf(`{"model":"m","tools":[{"type":"function","function":{"name":"made_up_%d"}}],"tool_choice":{"type":"function","function":{"name":"made_up_%d"}},"messages":[{"role":"user","content":"hi"}]}`, n, n), "Authorization: Bearer sk-a")
	},
	func(n int) string {
		return post("/v1/chat/completions", fmt.Sprintf(`{"model":"auto","reasoning_effort":"made-up-%d","messages":[{"role":"user","content":"hi"}]}`, n), "Authorization: Bearer sk-b")
	},
	func(n int) string {
		return post("/v1/embeddings", fmt.Sprintf(`{"model":"made-up-%d","input":"x"}`, n), "Authorization: Bearer sk-b")
	},
	func(n int) string {
		return post("/v1/chat/completions", plainChat, "Authorization: Bearer sk-b", fmt.Sprintf("X-Worker-Instance-Id: made-up-%d", n))
	},
}

// TestInventionsMakeNoSeries: whatever thousands of requests make up (models, keys, paths, methods, headers, roles,
// tools, tenants), /metrics has as many series after them as after the first of each.
func TestInventionsMakeNoSeries(t *testing.T) {
	w := startWorker(t, send(httpReply(200, "application/json", chatReply)))
	s := caching(t, w.url)
	s.Classify.PII.Action = classify.Off
	s.Models[0].Price = Price{Prompt: 1, Completion: 1, Cached: -1}
	p := startProxy(t, everyName(keyed(s, Key{Name: "a"}, Key{Name: "b", Tenant: "t", Models: []string{"m", "auto"}})))
	each := 400
	if raceEnabled {
		each = 100
	}
	rounds := func(from, to int) {
		var all sync.WaitGroup
		for _, invent := range inventions {
			all.Go(func() {
				c := dial(t, p.addr)
				replies := bufio.NewReader(c)
				for n := from; n < to; n++ {
					if _, err := io.WriteString(c, invent(n)); err != nil {
						t.Errorf("%q: %v", invent(n), err)
						return
					}
					resp, err := http.ReadResponse(replies, nil)
					if err != nil {
						t.Errorf("%q: %v", invent(n), err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					if resp.Close {
						c = dial(t, p.addr)
						replies = bufio.NewReader(c)
					}
				}
			})
		}
		all.Wait()
	}
	names := func() []string {
		all := seriesOf(t, p)
		for name := range all {
			if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
				delete(all, name)
			}
		}
		return slices.Sorted(maps.Keys(all))
	}
	rounds(0, 2)
	p.has(t, map[string]float64{`kvasir_key_requests_total{key="b",result="answered",tenant="t"}`: 2 * 2}) // all are counted
	before := names()
	rounds(2, each)
	if after := names(); !slices.Equal(before, after) {
		after = slices.DeleteFunc(after, func(n string) bool { return slices.Contains(before, n) })
		t.Errorf("%d series before, and these more: %s", len(before), strings.Join(after, "\n"))
	}
	for _, name := range before {
		if strings.Contains(name, "made") {
			t.Errorf("%s is a client's", name)
		}
	}
}
