// What a body may cost: time, memory and allocations, however it is made.

package openai

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// best is the shortest of five runs: the one that the machine disturbed least.
func best(run func()) time.Duration {
	least := time.Hour
	for range 5 {
		start := time.Now()
		run()
		least = min(least, time.Since(start))
	}
	return least
}

func wantRefused(t *testing.T, rt Route, body, param, message string) {
	t.Helper()
	var r Request
	e := r.Parse(rt, []byte(body), nil)
	if e == nil {
		t.Fatalf("accepted; want %q", message)
	}
	if e.Param != param || !strings.Contains(e.Message, message) {
		t.Fatalf("param %q, message %q; want %q and %q", e.Param, e.Message, param, message)
	}
	if len(e.Message) > 1000 {
		t.Fatalf("the message has %d bytes", len(e.Message))
	}
}

func TestRequestMillionDeep(t *testing.T) {
	for _, open := range []string{"[", `{"a":`} {
		body := []byte(`{"model":"m","x":` + strings.Repeat(open, 1_000_000))
		var r Request
		if took := best(func() { r.Parse(chatRoute, body, nil) }); took > time.Millisecond {
			t.Errorf("a million %q took %v", open, took)
		}
		wantRefused(t, chatRoute, string(body), "", "more than 64 levels deep")
		// The same where objects and arrays are walked and not skipped.
		for _, key := range []string{"prompt", "tools", "documents", "messages", "response_format"} {
			wantRefused(t, chatRoute, `{"model":"m","`+key+`":`+strings.Repeat(`[{"function":`, 1000), "", "")
		}
		wantRefused(t, chatRoute, `{"model":"m","documents":`+strings.Repeat(open, 1000), "", "more than 64 levels deep")
	}
}

// manyKeys is an object with n members, the last of them named last if given.
func manyKeys(n int, last string) string {
	var b strings.Builder
	b.WriteString(`{"model":"m"`)
	for i := range n - 2 {
		b.WriteString(`,"key` + strconv.Itoa(i) + `":0`)
	}
	if last == "" {
		last = "last"
	}
	b.WriteString(`,"` + last + `":"x"}`)
	return b.String()
}

// TestRequestManyKeys: comparing each key with each takes 10 s.
func TestRequestManyKeys(t *testing.T) {
	body := []byte(manyKeys(100_000, ""))
	rt := routeAt(t, "/v1/rerank")
	var r Request
	took := best(func() {
		if e := r.Parse(rt, body, nil); e != nil {
			t.Fatal(e)
		}
	})
	if took > 5*time.Second { // 15 ms, and 20 times that under the race detector
		t.Errorf("100,000 keys took %v", took)
	}
	wantRefused(t, rt, manyKeys(100_000, "key77"), "key77", "Duplicate parameter: 'key77'")
	wantRefused(t, rt, manyKeys(100_000, `\u006bey77`), "key77", "Duplicate parameter: 'key77'")
	wantRefused(t, rt, manyKeys(100_000, "model"), "model", "Duplicate parameter: 'model'")
	wantRefused(t, rt, manyKeys(maxMembers+1, ""), "last", "An object has more than 131072 members")
	if e := r.Parse(rt, []byte(manyKeys(maxMembers, "")), nil); e != nil {
		t.Fatal(e)
	}
}

func TestRequestManyTexts(t *testing.T) {
	body := func(n int) string {
		return `{"model":"m","prompt":[` + strings.Repeat(`"a",`, n-1) + `"a"]}`
	}
	rt := routeAt(t, "/v1/completions")
	wantRefused(t, rt, body(MaxTexts+1), "prompt[65536]", "The request has more than 65536 texts")
	var r Request
	if e := r.Parse(rt, []byte(body(MaxTexts)), nil); e != nil || len(r.Content.Texts) != MaxTexts {
		t.Fatal(e, len(r.Content.Texts))
	}
	// Token ids cost nothing that lasts, however many.
	if e := r.Parse(rt, []byte(`{"model":"m","prompt":[`+strings.Repeat("1,", MaxTexts)+`1]}`), nil); e != nil {
		t.Fatal(e)
	}
	// What one request needed is not kept for the next.
	if cap(r.Content.Texts) > 4096 {
		t.Errorf("%d texts are kept", cap(r.Content.Texts))
	}
}

// TestRequestResetDropsGiants: a pool must not keep what one client blew up.
func TestRequestResetDropsGiants(t *testing.T) {
	var r Request
	escaped := strings.Repeat(`\u006d`, 20_000)
	body := strings.TrimSuffix(manyKeys(50_000, ""), "}") + `,"` + escaped + `":[],"bootstrap_a":1}`
	if e := r.Parse(routeAt(t, "/v1/rerank"), []byte(body), nil); e != nil {
		t.Fatal(e)
	}
	if cap(r.parser.json.keys.list) < 50_000 || len(r.parser.json.unescaped) != 20_000 {
		t.Fatal("the body is not the giant that it should be")
	}
	r.Reset()
	if cap(r.parser.json.keys.list) > 4096 || cap(r.parser.json.keys.table) > 16384 || cap(r.parser.json.unescaped) > 16384 || r.Body != nil || len(r.strip) != 0 {
		t.Errorf("kept: %d keys, a table of %d, %d bytes, %d to strip", cap(r.parser.json.keys.list), cap(r.parser.json.keys.table), cap(r.parser.json.unescaped), len(r.strip))
	}
}

func TestRequestManyHandoverFields(t *testing.T) {
	var b strings.Builder
	for i := range maxRouterFields {
		b.WriteString(`,"bootstrap_` + strconv.Itoa(i) + `":0`)
	}
	rt := routeAt(t, "/v1/rerank")
	var r Request
	if e := r.Parse(rt, []byte(`{"model":"m"`+b.String()+`}`), nil); e != nil || len(r.strip) != maxRouterFields {
		t.Fatal(e, len(r.strip))
	}
	wantRefused(t, rt, `{"model":"m"`+b.String()+`,"vllm_xargs":{"nvext":{}}}`, "vllm_xargs.nvext",
		"More than 64 parameters that only a router may send. Send none of them, at byte")
}

func TestRequestAllocations(t *testing.T) {
	for _, c := range []struct {
		name string
		rt   Route
		body []byte
	}{
		{"plain", chatRoute, chatBody(2 << 10)},
		{"escapes and hand-over", chatRoute, []byte(`{"m\u006fdel":"m\u006fdel","messages":[{"role":"us\u0065r","content":[{"type":"text","text":"\u00e9"}]}],` +
			`"stream":true,"bootstrap_room":1,"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}],"n":1}`)},
		{"twenty keys", routeAt(t, "/v1/rerank"), []byte(manyKeys(20, ""))},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r Request
			var s Splices
			var pieces [][]byte
			if n := testing.AllocsPerRun(100, func() {
				if e := r.Parse(c.rt, c.body, nil); e != nil {
					t.Fatal(e)
				}
				s.Reset()
				StripHandover(&s, &r)
				AskUsage(&s, &r)
				SetModel(&s, &r, "another-model")
				pieces = s.Segments(pieces[:0], c.body)
				if s.Length(c.body) == len(c.body) {
					t.Fatal("nothing was spliced")
				}
			}); n != 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}

func TestFormBounds(t *testing.T) {
	rt := routeAt(t, "/v1/audio/transcriptions")
	form := []byte("multipart/form-data; boundary=xYz")
	part := func(name, head, value string) string {
		return "--xYz\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n" + head + "\r\n" + value + "\r\n"
	}
	for _, c := range []struct{ name, body, message string }{
		{"a thousand parts", strings.Repeat(part("a", "", ""), maxFormParts-1) + part("model", "", "m") + "--xYz--", ""},
		{"one part more", strings.Repeat(part("a", "", ""), maxFormParts) + part("model", "", "m") + "--xYz--", "it has more than 1000 parts"},
		{"a head of 16 KiB", part("model", "X: "+strings.Repeat("x", maxFormPartHead-61)+"\r\n", "m") + "--xYz--", ""},
		{"a head of 20 KiB", part("model", "X: "+strings.Repeat("x", 20<<10)+"\r\n", "m") + "--xYz--", "the head of a part does not end within 16384 bytes"},
		{"a big file", part("file", "", strings.Repeat("\r\n--xY", 1<<20)) + part("model", "", "m") + "--xYz--", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r Request
			e := r.Parse(rt, []byte(c.body), form)
			if c.message == "" {
				if e != nil || string(r.Model) != "m" {
					t.Fatalf("%v, model %q", e, r.Model)
				}
			} else if e == nil || !strings.Contains(e.Message, c.message) {
				t.Fatalf("%v; want %q", e, c.message)
			}
		})
	}
}
