// The cost of a request body, beside what other readers of JSON cost.

package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// chatBody is a chat of about size bytes: a system prompt, turns of prose with
// escapes and a little beyond ASCII.
func chatBody(size int) []byte {
	const prose = `The quick brown fox jumps over the lazy dog, and then \"rests\" for a while.\nIts name is Zoë; it is 4 years old. `
	var b strings.Builder
	b.WriteString(`{"model":"qwen2.5-7b-instruct","messages":[{"role":"system","content":"You are a helpful assistant."}`)
	turn := strings.Repeat(prose, max(1, size/10/len(prose)))
	for i := 0; b.Len() < size-150; i++ {
		fmt.Fprintf(&b, `,{"role":"%s","content":"%s"}`, [2]string{"user", "assistant"}[i%2], turn)
	}
	b.WriteString(`],"stream":true,"stream_options":{"include_usage":true},"max_tokens":256,"temperature":0.7,"top_p":0.95}`)
	return []byte(b.String())
}

// fullBody fills a chat body to size with one message of the given text.
func fullBody(size int, fill string) []byte {
	return []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat(fill, size/len(fill)) + `"}]}`)
}

func BenchmarkRequest(b *testing.B) {
	tools := `{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[` + strings.TrimSuffix(strings.Repeat(
		`{"type":"function","function":{"name":"get_weather","description":"Weather at a place","parameters":{"type":"object","properties":{"place":{"type":"string","description":"city"},"unit":{"type":"string","enum":["c","f"]}},"required":["place"]}}},`, 80), ",") + `]}`
	for _, c := range []struct {
		name string
		body []byte
	}{
		{"chat2KB", chatBody(2 << 10)},
		{"oneTurn2KB", fullBody(2<<10, `The quick brown fox jumps over the lazy dog, and \"rests\" for a while.\n`)},
		{"chat200KB", chatBody(200 << 10)},
		{"ascii200KB", fullBody(200<<10, "plain prose without anything else in it, ")},
		{"chinese200KB", fullBody(200<<10, "白日依山尽，黄河入海流。")},
		{"russian200KB", fullBody(200<<10, "Мой дядя самых честных правил, ")},
		{"escapedChinese200KB", fullBody(200<<10, `\u767d\u65e5\u4f9d\u5c71\u5c3d`)},
		{"code200KB", fullBody(200<<10, `if x != \"\" {\n\treturn y\n}\n`)},
		{"tools20KB", []byte(tools)},
		{"opaqueNumbers", []byte(`{"model":"m","messages":[{"role":"user","content":"hi"}],"x":[` + strings.Repeat("12345,", 4000) + `1]}`)},
	} {
		b.Run("parse/"+c.name, func(b *testing.B) {
			var r Request
			b.SetBytes(int64(len(c.body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := r.Parse(chatRoute, c.body, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("jsonValid/"+c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.body)))
			for b.Loop() {
				if !json.Valid(c.body) {
					b.Fatal("not valid")
				}
			}
		})
	}
}

// BenchmarkSplices is what a request costs after it was parsed: another model,
// usage asked for, pieces for one writev.
func BenchmarkSplices(b *testing.B) {
	body := chatBody(2 << 10)
	var r Request
	if e := r.Parse(chatRoute, body, nil); e != nil {
		b.Fatal(e)
	}
	r.Usage = Usage{} // as if the client had not asked
	var s Splices
	var pieces [][]byte
	b.ReportAllocs()
	for b.Loop() {
		s.Reset()
		StripHandover(&s, &r)
		AskUsage(&s, &r)
		SetModel(&s, &r, "another-model")
		pieces = s.Segments(pieces[:0], body)
		if s.Length(body) <= len(body) {
			b.Fatal("nothing was spliced")
		}
	}
}

// BenchmarkFormModel steps over a file of 1 MiB.
func BenchmarkFormModel(b *testing.B) {
	body := []byte("--xYz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n" + strings.Repeat("RIFF\r\n\x00\xff", 1<<17) +
		"\r\n--xYz\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper\r\n--xYz--\r\n")
	rt, contentType := routeAt(b, "/v1/audio/transcriptions"), []byte("multipart/form-data; boundary=xYz")
	var r Request
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if e := r.Parse(rt, body, contentType); e != nil {
			b.Fatal(e)
		}
	}
}

var chatRoute = Route{"/v1/chat/completions", KindChat}
