// What the guards, the category and the embedding cost together, on texts as people write them.

package classify

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"kvasir/classify/model"
)

// writtenTexts are the innocent texts of scripts/train/data in files of these names, shuffled and
// cut to n tokens each. No two are alike, so that nothing is shared but the pieces of words.
func writtenTexts(tb testing.TB, n int, names ...string) [][]byte {
	tb.Helper()
	var all []string
	for _, name := range names {
		files, err := filepath.Glob(filepath.Join("..", "scripts", "train", "data", name))
		if err != nil || len(files) == 0 {
			tb.Fatalf("no texts %s: %v", name, err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				tb.Fatal(err)
			}
			all = append(all, strings.Split(string(b), "\n%%\n")[1:]...)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	rng.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	m, err := model.Embedded()
	if err != nil {
		tb.Fatal(err)
	}
	text := []byte(strings.Join(all, "\n"))
	tokens := m.Tokenize(nil, text, new(model.Scratch))
	var texts [][]byte
	for part := range slices.Chunk(tokens, n) {
		if len(part) == n {
			texts = append(texts, text[part[0].Start:part[n-1].End])
		}
	}
	return texts
}

// asShipped are the options of config.yaml's guards.
func asShipped() Options {
	o := blocking()
	for _, t := range piiTypes() {
		switch t {
		case "PERSON", "GPE", "ORGANIZATION", "NRP", "TITLE", "STREET_ADDRESS", "DATE_TIME", "AGE", "ZIP_CODE":
			o.PII.Allow = append(o.PII.Allow, t)
		}
	}
	return o
}

// BenchmarkGuards is one core's time for both guards as config.yaml has them, the category and the
// embedding. cpu-us/op is what a machine that others use as well cannot distort much.
func BenchmarkGuards(b *testing.B) {
	w, err := openWeights(new(Options), nil)
	if err != nil {
		b.Fatal(err)
	}
	o := asShipped()
	for _, row := range []struct {
		name   string
		tokens int
		files  []string
	}{
		{"16tokens", 16, []string{"question*-en.txt"}},
		{"64tokens", 64, []string{"question*-en.txt"}},
		{"64tokens/hard", 64, []string{"benign*-en*.txt"}},
		{"64tokens/languages", 64, []string{"question*.txt", "benign*.txt"}},
		{"512tokens", 512, []string{"question*-en.txt"}},
		{"512tokens/hard", 512, []string{"benign*-en*.txt"}},
		{"512tokens/languages", 512, []string{"question*.txt", "benign*.txt"}},
	} {
		b.Run(row.name, func(b *testing.B) {
			texts := writtenTexts(b, row.tokens, row.files...)
			c, err := newWith(o, w)
			if err != nil {
				b.Fatal(err)
			}
			r := said("")
			r.Auto, r.Also = true, []Kind{KindSentence}
			var took []time.Duration
			used, i := processorTime(), 0
			for b.Loop() {
				if i == len(texts) { // all over again, with nothing shared
					if c, err = newWith(o, w); err != nil {
						b.Fatal(err)
					}
					i = 0
				}
				r.Texts[0].Bytes = texts[i]
				start := time.Now()
				c.Judge(r).Release()
				took = append(took, time.Since(start))
				i++
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-us")
			b.ReportMetric(float64((processorTime()-used).Nanoseconds())/1e3/float64(b.N), "cpu-us/op")
		})
	}
}

// BenchmarkCrowd is the same for short questions of many who ask at the same moment, and of one.
func BenchmarkCrowd(b *testing.B) {
	w, err := openWeights(new(Options), nil)
	if err != nil {
		b.Fatal(err)
	}
	texts := writtenTexts(b, 20, "question*-en.txt")
	for _, crowd := range []int{1, 8, 64} {
		b.Run(strconv.Itoa(crowd), func(b *testing.B) {
			c, err := newWith(asShipped(), w)
			if err != nil {
				b.Fatal(err)
			}
			var asked atomic.Int64
			var all sync.WaitGroup
			used := processorTime()
			for range crowd {
				all.Go(func() {
					r := said("")
					r.Auto, r.Also = true, []Kind{KindSentence}
					for i := int(asked.Add(1)); i <= b.N; i = int(asked.Add(1)) {
						r.Texts[0].Bytes = append(strconv.AppendInt(r.Texts[0].Bytes[:0], int64(i), 10), texts[i%len(texts)]...)
						c.Judge(r).Release()
						runtime.Gosched() // as who waits for the next request
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64((processorTime()-used).Nanoseconds())/1e3/float64(b.N), "cpu-us/op")
		})
	}
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
