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
	"slices"
	"strconv"
	"strings"
	"testing"

	"kvasir/kvroute"
)

var placementMicros = regexp.MustCompile(`"placement_us":(\d+)`)

// BenchmarkPlacement sends one request after the other and reports what the log says of
// each placement: tokens by Qwen 2.5's own files, names of blocks, the index, prices. new: no
// text was seen before; turn: all but the last turn was.
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
	for _, kind := range []string{"new", "turn"} {
		b.Run(kind, func(b *testing.B) {
			p.log.mu.Lock()
			p.log.b.Reset()
			p.log.mu.Unlock()
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				body := conversations[i%len(conversations)] + text(200) + `"}]}`
				if kind == "new" {
					body = `{"model":"m","messages":[{"role":"user","content":"` + text(8000) + `"}]}`
				}
				b.StartTimer()
				if _, err := io.WriteString(c, post("/v1/chat/completions", body)); err != nil {
					b.Fatal(err)
				}
				if r := receive(b, replies); r.Header.Get("x-kvasir-placement") != "" || r.Header.Get("x-kvasir-prompt-blocks") == "0" {
					b.Fatalf("%v", r.Header)
				}
			}
			var took []int
			for _, m := range placementMicros.FindAllStringSubmatch(p.log.String(), -1) {
				n, _ := strconv.Atoi(m[1])
				took = append(took, n)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2]), "p50-us")
			b.ReportMetric(float64(took[len(took)*99/100]), "p99-us")
		})
	}
}
