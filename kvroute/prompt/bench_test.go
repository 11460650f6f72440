//go:build linux

// What a prompt of 220 KB costs: the first time, with a new last turn, and again.

package prompt

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// benchmark runs one request after the other and reports the processor time of their thread: the mean on
// the clock, which go test shows, has the turns of the machine's other programs in it.
func benchmark(b *testing.B, m *Model, bodies [][]byte, before func(i int)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b.SetBytes(int64(len(bodies[0])))
	b.ReportAllocs()
	dst := make([]uint32, 0, 1<<17)
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		before(i % len(bodies))
		b.StartTimer()
		start := threadTime(b)
		if _, err := m.Chat(context.Background(), dst[:0], bodies[i%len(bodies)]); err != nil {
			b.Fatal(err)
		}
		took = append(took, threadTime(b)-start)
	}
	slices.Sort(took)
	for _, at := range []struct {
		name string
		of   int // percent
	}{{"least-cpu-µs", 0}, {"p50-cpu-µs", 50}, {"p99-cpu-µs", 99}} {
		b.ReportMetric(float64(took[len(took)*at.of/100])/1e3, at.name)
	}
}

// threadTime is the processor time of the thread that asks.
func threadTime(b *testing.B) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
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
