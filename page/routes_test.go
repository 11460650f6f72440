// Tests of the JSON routes and of the page's files, over a real listener.

package page

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"kvasir/proxy/record"
)

// fill has requests of all kinds end.
func (p *served) fill(t testing.TB) {
	t.Helper()
	for i, change := range []func(*record.Record){
		func(r *record.Record) { r.Key = "alice" },
		func(r *record.Record) { r.Model, r.Worker, r.Prefill = "other", "v", "w" },
		func(r *record.Record) { r.Status = 502 },
		func(r *record.Record) {
			r.Path, r.End, r.Worker, r.Placement = "blocked", "blocked", "", record.Placement{}
			r.Judgement = record.Judgement{Judged: true, GuardJudged: true, Attack: "jailbreak", Score: 0.98, Guard: "jailbreak", Types: []string{"PERSON"}}
		},
		func(r *record.Record) {
			r.Cache, r.Path, r.Worker = record.Cache{Result: "hit", Entry: "000000000000002a", Similarity: 0.97, Age: 3 * time.Second}, "cache", ""
		},
		func(r *record.Record) { r.Cache = record.Cache{Result: "miss", Why: "number"} },
		func(r *record.Record) {
			r.Judgement = record.Judgement{Judged: true, Category: "math", Confidence: 0.7, Decision: "maths", Reasoning: "on", Injected: true,
				Matched: []record.Match{{Kind: "category", Name: "math", Score: 0.7}}, Language: "en", Hidden: 2, Redacted: 1}
			r.Trace.Trace[15] = 42
		},
		func(r *record.Record) {
			r.Judgement = record.Judgement{Judged: true, Category: "other", Confidence: 0.3}
		},
	} {
		r := ended()
		r.ID = requestsNamed(i)
		change(r)
		p.Observe(r)
	}
}

type listAnswer struct {
	Requests      []map[string]any
	Kept, Dropped int
}

func (l *listAnswer) ids() (ids []string) {
	for _, r := range l.Requests {
		ids = append(ids, strings.TrimPrefix(r["id"].(string), "request-"))
	}
	return ids
}

// TestRequests: filters, pages, and what is wrong with a question.
func TestRequests(t *testing.T) {
	p := serve(t, testOptions())
	p.fill(t)
	for query, want := range map[string]string{
		"":                          "[7 6 5 4 3 2 1 0]",
		"?key=alice":                "[0]",
		"?model=other":              "[1]",
		"?model=auto&limit=2":       "[7 6]",
		"?worker=v":                 "[1]",
		"?worker=w&outcome=ok":      "[7 6 5 1 0]",
		"?outcome=error":            "[2]",
		"?outcome=blocked":          "[3]",
		"?outcome=cache":            "[4]",
		"?outcome=cancelled":        "[]",
		"?limit=3&before=4":         "[2 1 0]",
		"?before=1":                 "[]",
		"?before=99999999999&key=x": "[]",
	} {
		var list listAnswer
		if status := p.get(t, "/api/requests"+query, &list); status != 200 || fmt.Sprint(list.ids()) != want || list.Kept != 8 || list.Dropped != 0 || list.Requests == nil {
			t.Errorf("%s: %d %v of %d, want %s", query, status, list.ids(), list.Kept, want)
		}
	}
	for _, path := range []string{
		"/api/requests?limit=0", "/api/requests?limit=-1", "/api/requests?before=0", "/api/requests?before=x", "/api/requests?outcome=good",
		"/api/decisions?threshold=1.1", "/api/decisions?threshold=NaN", "/api/decisions?threshold=x", "/api/cache?limit=none",
	} {
		var shape struct {
			Error struct{ Message, Type string }
		}
		if status := p.get(t, path, &shape); status != 400 || shape.Error.Type != "invalid_request_error" {
			t.Errorf("%s: %d %+v", path, status, shape)
		}
	}
}

// TestRequest: one request with its way, by its id or its number; scores stand against thresholds.
func TestRequest(t *testing.T) {
	p := serve(t, testOptions())
	p.fill(t)
	var full map[string]any
	if status := p.get(t, "/api/requests/request-6", &full); status != 200 {
		t.Fatal(status, full)
	}
	for path, want := range map[string]string{
		"steps":         "[map[begin_ms:0 end_ms:1 name:read] map[begin_ms:1 end_ms:20 name:decode status:200 worker:w]]",
		"decision":      "map[injected:true name:maths reasoning:on]",
		"category":      "math",
		"prompt_tokens": "100",
		"outcome":       "ok",
		"trace_id":      "0000000000000000000000000000002a",
		"first_byte_ms": "20",
	} {
		if got := fmt.Sprint(full[path]); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	signals := full["signals"].(map[string]any)
	if fmt.Sprint(signals["category"]) != "map[confidence:0.7 label:math threshold:0.6]" || fmt.Sprint(signals["pii"]) != "map[action:redact denied:[] redacted:1 threshold:0.7 types:[]]" ||
		signals["hidden_characters"] != 2.0 || signals["language"] != "en" || signals["jailbreak"] != nil {
		t.Errorf("signals are %v", signals)
	}
	place := full["placement"].(map[string]any)
	if place["why"] != "predict" || place["exact"] != true || len(place["candidates"].([]any)) != 1 {
		t.Errorf("the placement is %v", place)
	}
	var blocked, hit map[string]any
	p.get(t, "/api/requests/4", &blocked) // by its number
	if blocked["id"] != "request-3" || blocked["placement"] != nil || fmt.Sprint(blocked["decision"]) != "map[guard:jailbreak injected:false name: reasoning:]" ||
		fmt.Sprint(blocked["signals"].(map[string]any)["jailbreak"]) != "map[action:block score:0.98 threshold:0.7 type:jailbreak]" {
		t.Errorf("the blocked one is %v", blocked)
	}
	p.get(t, "/api/requests/request-4", &hit)
	if fmt.Sprint(hit["cache_detail"]) != "map[age_ms:3000 entry:000000000000002a result:hit similarity:0.97]" {
		t.Errorf("the hit is %v", hit)
	}
	for _, id := range []string{"nobody", "0", "99", "18446744073709551615"} {
		if status := p.get(t, "/api/requests/"+id, nil); status != 404 {
			t.Errorf("%s: %d", id, status)
		}
	}
}

// TestDecisions: the threshold that is asked for names fewer categories, or more.
func TestDecisions(t *testing.T) {
	p := serve(t, testOptions())
	p.fill(t)
	for query, want := range map[string]string{
		"":                "0 []",
		"?threshold=0.6":  "0 []",
		"?threshold=0.71": "1 [request-6]",
		"?threshold=0.2":  "1 [request-7]",
		"?threshold=0":    "1 [request-7]",
		"?threshold=1":    "1 [request-6]",
	} {
		var d struct {
			Of         int
			Threshold  float64
			Decisions  []map[string]any
			Categories []map[string]any
			Confidence struct {
				Edges  []float64
				Counts []int
			}
			Change struct {
				Count    int
				Examples []struct{ ID string }
			} `json:"would_change"`
		}
		status := p.get(t, "/api/decisions"+query, &d)
		var ids []string
		for _, e := range d.Change.Examples {
			ids = append(ids, e.ID)
		}
		if got := fmt.Sprint(d.Change.Count, ids); status != 200 || got != want {
			t.Errorf("%s: %d, %s, want %s", query, status, got, want)
		}
		if d.Of != 3 || d.Threshold != 0.6 || fmt.Sprint(d.Decisions) != "[map[count:1 model:m name:maths]]" || len(d.Categories) != 2 ||
			len(d.Confidence.Edges) != 21 || d.Confidence.Counts[14] != 1 || d.Confidence.Counts[6] != 1 {
			t.Errorf("%s: %+v", query, d)
		}
	}
}

// TestOtherRoutes: those whose answers come from functions.
func TestOtherRoutes(t *testing.T) {
	p := serve(t, testOptions())
	p.fill(t)
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string // members that the answer has
	}{
		{"GET", "/api/overview", "", 200, "version started now status ready reasons workers_up workers_all in_flight queued last series"},
		{"GET", "/api/workers", "", 200, "workers"},
		{"GET", "/api/cache", "", 200, "store entries bytes hits misses bypassed recent"},
		{"GET", "/api/config", "", 200, "file"},
		{"POST", "/api/explain", "{}", 200, "model signals decision placement"},
		{"POST", "/workers/w/drain", "", 200, "worker draining requests"},
		{"POST", "/workers/w/undrain", "", 200, "worker draining requests"},
		{"POST", "/workers/team%2Fw%3A8000/drain", "", 200, "worker draining requests"}, // as browsers write team/w:8000
		{"POST", "/workers/team%2fw:8000/undrain", "", 200, "worker draining requests"},
		{"POST", "/workers/nobody/drain", "", 404, "error"},
		{"POST", "/api/try/v1/chat/completions", "{}", 502, "error"},
		{"POST", "/api/try/v1/models", "{}", 400, "error"},
		{"POST", "/api/try/../metrics", "{}", 400, "error"},
	} {
		var answer map[string]any
		status := p.ask(t, c.method, c.path, c.body, &answer)
		if status != c.status {
			t.Errorf("%s %s: %d %v", c.method, c.path, status, answer)
		}
		for name := range strings.FieldsSeq(c.want) {
			if _, has := answer[name]; !has {
				t.Errorf("%s %s has no %s: %v", c.method, c.path, name, answer)
			}
		}
	}
	var seen struct {
		Hits, Misses int
		Recent       []map[string]any
	}
	p.get(t, "/api/cache", &seen)
	if seen.Hits != 1 || seen.Misses != 1 || len(seen.Recent) != 1 || seen.Recent[0]["entry"] != "000000000000002a" || seen.Recent[0]["request_id"] != "request-4" {
		t.Errorf("the cache is %+v", seen)
	}
}

// TestFiles: the page's files come with what keeps them safe, and once only as long as they are the
// same; who is no browser is told in words what is here.
func TestFiles(t *testing.T) {
	p := serve(t, testOptions())
	ask := func(path, accept, tag string) (*http.Response, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.addr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Close = true
		req.Header.Set("Accept", accept)
		if tag != "" {
			req.Header.Set("If-None-Match", tag)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp, string(body)
	}
	const browser = "text/html,application/xhtml+xml,*/*;q=0.8"
	for _, path := range []string{"/", "/page/index.html"} {
		resp, body := ask(path, browser, "")
		h := resp.Header
		if resp.StatusCode != 200 || h.Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(body, "<!doctype html>") || h.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'; style-src 'self'") || h.Get("ETag") == "" {
			t.Errorf("%s: %d %v", path, resp.StatusCode, h)
		}
		if again, body := ask(path, browser, h.Get("ETag")); again.StatusCode != 304 || body != "" {
			t.Errorf("%s again: %d", path, again.StatusCode)
		}
	}
	if resp, body := ask("/", "*/*", ""); resp.Header.Get("Content-Type") != "text/plain; charset=utf-8" || !strings.Contains(body, "/api/overview") {
		t.Errorf("to curl: %v %s", resp.Header, body)
	}
	for _, path := range []string{"/page/nothing.js", "/page/", "/page/../page.go", "/page/%2e%2e/static.go"} {
		if resp, _ := ask(path, browser, ""); resp.StatusCode != 404 {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
}

// TestTryEndsWithTheBrowser: who leaves takes the request with them, before the answer has begun and
// in the middle of it; so does the end of the page.
func TestTryEndsWithTheBrowser(t *testing.T) {
	for name, begun := range map[string]bool{"before the head": false, "in the middle": true} {
		for how, leave := range map[string]func(*served, net.Conn){
			"the browser leaves": func(_ *served, c net.Conn) { _ = c.Close() },
			"the page ends":      func(p *served, _ net.Conn) { p.once.Do(p.end) },
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				asked, cancelled := make(chan string, 1), make(chan struct{})
				o := testOptions()
				o.Ask = func(ctx context.Context, path string, header http.Header, body []byte) (*http.Response, error) {
					asked <- path + " " + header.Get("Authorization") + " " + string(body)
					context.AfterFunc(ctx, func() { close(cancelled) })
					if !begun {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					r, w := io.Pipe()
					go func() {
						_, _ = w.Write([]byte("data: 1\n\n"))
						<-ctx.Done()
						_ = w.CloseWithError(errors.New("cancelled"))
					}()
					return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}, "X-Kvasir-Worker": {"w"}, "Set-Cookie": {"a=b"}}, Body: r}, nil
				}
				p := serve(t, o)
				conn, err := net.Dial("tcp", p.addr)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(patience))
				_, _ = io.WriteString(conn, "POST /api/try/v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nX-Kvasir-Key: sk-1\r\nContent-Length: 2\r\n\r\n{}")
				if got := <-asked; got != "/v1/chat/completions Bearer sk-1 {}" {
					t.Errorf("asked is %q", got)
				}
				if begun {
					head := make([]byte, 64<<10)
					n := 0
					for !strings.Contains(string(head[:n]), "data: 1\n\n") {
						k, err := conn.Read(head[n:])
						if err != nil {
							t.Fatal(err)
						}
						n += k
					}
					if got := string(head[:n]); !strings.Contains(got, "X-Kvasir-Worker: w\r\n") || strings.Contains(got, "Cookie") {
						t.Errorf("the head is %s", got)
					}
				}
				leave(p, conn)
				select {
				case <-cancelled:
				case <-time.After(patience):
					t.Error("the request goes on")
				}
			})
		}
	}
}
