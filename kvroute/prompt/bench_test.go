// What a prompt of 220 KB costs: the first time, with a new last turn, and again.

package prompt

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kvasir/kvroute/template"
)

const realFiles = "../../.cache/tokenizer-files/"

// longTalk is a conversation of about so many bytes, as an assistant that writes code has them.
func longTalk(size int) *template.List {
	r := rand.New(rand.NewPCG(3, 4))
	vocabulary := strings.Fields("the function returns a value for each request that was sent to server and then it writes an error " +
		"into log when connection closes before response has been read Überprüfung naïve 日本語 x := range items { return nil } if err != nil {")
	l := template.NewList(dict("role", "system", "content", "You are a helpful assistant that writes Go."))
	for total := 0; total < size; {
		for _, role := range []string{"user", "assistant"} {
			var b strings.Builder
			for b.Len() < 1200 {
				b.WriteString(vocabulary[r.IntN(len(vocabulary))])
				b.WriteByte(" \n"[r.IntN(10)/9])
				if r.IntN(12) == 0 {
					fmt.Fprintf(&b, "v%d = \"%x\"\n", r.IntN(1000), r.IntN(1<<30))
				}
			}
			total += b.Len()
			l.Items = append(l.Items, dict("role", role, "content", b.String()))
		}
	}
	l.Items = append(l.Items, dict("role", "user", "content", "And now?"))
	return l
}

func realModel(tb testing.TB, name string) *Model {
	tb.Helper()
	if _, err := os.Stat(filepath.Join(realFiles, name)); err != nil {
		tb.Skip("SKIP real part: tokenizer-files: scripts/parts.sh tokenizer-files brings it")
	}
	m, err := NewLibrary(Options{}).Model(name, realFiles+name, Hints{})
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// benchmark runs one request after the other and reports the fastest beside the mean, which other
// programs of the machine disturb.
func benchmark(b *testing.B, m *Model, bodies [][]byte, before func(i int)) {
	b.SetBytes(int64(len(bodies[0])))
	b.ReportAllocs()
	dst := make([]uint32, 0, 1<<17)
	best, i := time.Hour, 0
	for b.Loop() {
		b.StopTimer()
		before(i % len(bodies))
		b.StartTimer()
		start := time.Now()
		if _, err := m.Chat(context.Background(), dst[:0], bodies[i%len(bodies)]); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(start))
		i++
	}
	b.ReportMetric(float64(best.Nanoseconds())/1e3, "best-µs")
}

func BenchmarkChat(b *testing.B) {
	for _, name := range []string{"qwen3", "llama3_1", "deepseek_v3", "gemma3"} {
		talk := longTalk(220 << 10)
		bodies := [][]byte{encode(b, dict("model", "m", "messages", talk))}
		for i := range 64 {
			talk.Items = append(talk.Items, dict("role", "assistant", "content", fmt.Sprint("Answer ", i)),
				dict("role", "user", "content", strings.Repeat("go on ", 40)))
			bodies = append(bodies, encode(b, dict("model", "m", "messages", talk)))
		}
		m := realModel(b, name)
		empty := func(int) { m.cache = newPrefixCache(64 << 20) }
		b.Run(name+"/first", func(b *testing.B) { benchmark(b, m, bodies[:1], empty) })
		b.Run(name+"/turn", func(b *testing.B) {
			benchmark(b, m, bodies[1:], func(i int) {
				if i > 0 {
					return
				}
				empty(0) // the conversation begins anew
				if _, err := m.Chat(context.Background(), nil, bodies[0]); err != nil {
					b.Fatal(err)
				}
			})
		})
		b.Run(name+"/again", func(b *testing.B) { benchmark(b, m, bodies[:1], func(int) {}) })
	}
}
