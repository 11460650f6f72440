//go:build linux

// What placement takes in the running proxy: an 8 KB prompt, 16 workers, a real tokenizer.

package proxy

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kvasir/kvroute"
	"kvasir/openai"
)

var placementMicros = regexp.MustCompile(`"placement_us":(\d+)`)

// BenchmarkPlacement sends one request after the other and reports what the log says of
// each placement (p50-us, p99-us): tokens by Qwen 2.5's own files, names of blocks, the index,
// prices. new: no text was seen before; turn: all but the last turn was.
//
// That is time on the clock, and on a machine with other work mostly the others' turns. So behind
// each request another one of its kind goes the same way up to its placement on a thread of its
// own, in the same proxy, by the thread's processor time: located-us are tokens, placed-us all of
// it. The collector's help that an allocation must give counts, its own threads do not.
func BenchmarkPlacement(b *testing.B) {
	const dir = "../.cache/tokenizer-files/qwen2_5"
	if _, err := os.Stat(dir); err != nil {
		b.Skip("SKIP real part: no tokenizer files; scripts/parts.sh tokenizer-files brings them")
	}
	answer := []byte(httpReply(200, "application/json", chatReply))
	w := startWorker(b, func(c net.Conn, _ string) bool {
		_, err := c.Write(answer)
		return err == nil
	})
	var urls []string
	for range 16 {
		urls = append(urls, w.url)
	}
	s := placingSettings(urls...)
	s.Models[0].Tokenizer = dir
	for i := range s.Workers {
		s.Workers[i].Engine = "openai" // of which nothing is learnt: what is said below stays
	}
	p := startProxy(b, s)
	for i := range 16 {
		p.backendOf(b, fmt.Sprintf("w%d", i)).SetEngine(kvroute.EngineFacts{BlockSize: 16, Blocks: 16384, MaxBatchedTokens: 8192, MaxSeqs: 256})
	}
	p.waitForTokens(b)
	words := strings.Fields("the of and a to in is you that it he was for on are as with his they I at be this have from or one had by word but not what all were we when your can said")
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // text
	text := func(n int) string {
		var t strings.Builder
		for t.Len() < n {
			t.WriteString(words[random.IntN(len(words))])
			t.WriteByte(' ')
		}
		return t.String()
	}
	c, err := net.Dial("tcp", p.addr)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	replies := bufio.NewReader(c)
	conversations := make([]string, 64)
	for i := range conversations {
		conversations[i] = `{"model":"m","messages":[{"role":"system","content":"` + text(2000) + `"},{"role":"user","content":"` + text(5500) + `"},{"role":"assistant","content":"` + text(300) + `"},{"role":"user","content":"`
	}
	kinds := []struct {
		name string
		body func(i int) string
	}{
		{"new", func(int) string { return `{"model":"m","messages":[{"role":"user","content":"` + text(8000) + `"}]}` }},
		{"turn", func(i int) string { return conversations[i%len(conversations)] + text(200) + `"}]}` }},
	}
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			p.log.Reset()
			pl := new(plan)
			var located, placed []time.Duration
			for i := 0; b.Loop(); i++ {
				body := kind.body(i)
				if _, err := io.WriteString(c, post("/v1/chat/completions", body)); err != nil {
					b.Fatal(err)
				}
				if r := receive(b, replies); r.Header.Get("x-kvasir-placement") != "" || r.Header.Get("x-kvasir-prompt-blocks") == "0" {
					b.Fatalf("%v", r.Header)
				}
				tokens, all := p.placeAlone(b, pl, kind.body(i))
				located, placed = append(located, tokens), append(placed, all)
			}
			var took []time.Duration
			for _, m := range placementMicros.FindAllStringSubmatch(p.log.String(), -1) {
				n, _ := strconv.Atoi(m[1])
				took = append(took, time.Duration(n)*time.Microsecond)
			}
			reportQuantiles(b, took, "us")
			reportQuantiles(b, located, "located-us")
			reportQuantiles(b, placed, "placed-us")
			b.ReportMetric(0, "ns/op") // of the whole request, with the benchmark's own work
		})
	}
}

// placeAlone takes a chat through the pipeline up to its placement, which it ends at once, and
// returns the processor time of finding its tokens, and of that and the choice.
func (p *testProxy) placeAlone(b *testing.B, pl *plan, body string) (located, chosen time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pl.state, pl.route = p.state.Load(), &openai.Routes[0]
	if err := pl.parse([]byte(body), nil); err != nil {
		b.Fatal(err)
	}
	pl.answerBy(modelFor(pl.asked, pl.state))
	var err *openai.Error
	if pl.placing.steering, err = steer(pl); err != nil {
		b.Fatal(err)
	}
	pl.splice(nil)
	var said placed
	begin := threadTime(b)
	locate(pl, p.tokenizers, &said)
	located = threadTime(b) - begin
	at, fault := pl.state.pool.Place(pl.query(time.Now(), !pl.handsOver(), false))
	chosen = threadTime(b) - begin
	if fault != nil || at.Overlap.Of == 0 || said.approximate != "" {
		b.Fatalf("%v %+v %q", fault, at.Overlap, said.approximate)
	}
	at.Release()
	pl.placing.forget()
	return located, chosen
}

// threadTime is the processor time of the thread that asks.
func threadTime(b *testing.B) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}

// reportQuantiles reports p50 and p99 in microseconds.
func reportQuantiles(b *testing.B, took []time.Duration, unit string) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2])/1e3, "p50-"+unit)
	b.ReportMetric(float64(took[len(took)*99/100])/1e3, "p99-"+unit)
}
