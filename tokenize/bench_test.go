// How fast, beside the reference library.

package tokenize

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// mixed is text as prompts have it: prose of several languages, code and data; about 220 KB in
// which no two lines are the same.
func mixed() []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < 220<<10; i++ {
		fmt.Fprintf(&b, "%d. %s\n", i, sentences[i%len(sentences)])
		if b.Len()%3 > 0 { // English and code most of all
			b.WriteString("The committee will meet on the second floor to discuss how the budget for the new library is to be spent.\n")
			fmt.Fprintf(&b, "func handler%d(w http.ResponseWriter, r *http.Request) error {\n\treturn writeJSON(w, map[string]any{\"id\": %d})\n}\n", i, i)
		}
	}
	return bytes.ToValidUTF8(b.Bytes(), nil)
}

// BenchmarkAppend measures the rate with all words in the cache (warm), which is nearly always so
// in a gateway, and with an empty cache (cold). best-MB/s adds up the fastest time of each part
// of 8 KB, because other programs may use the cores too.
func BenchmarkAppend(b *testing.B) {
	text := mixed()
	var parts [][]byte
	for rest := text; len(rest) > 0; {
		n := min(len(rest), 8192)
		for n < len(rest) && !utf8.RuneStart(rest[n]) {
			n++
		}
		parts, rest = append(parts, rest[:n]), rest[n:]
	}
	for _, path := range benchFiles(b) {
		tokenizer, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		name := filepath.Base(filepath.Dir(path))
		run := func(located bool, prepare func()) func(b *testing.B) {
			return func(b *testing.B) {
				var ids []uint32
				var spans []Span
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				best := slices.Repeat([]time.Duration{time.Hour}, len(parts))
				for b.Loop() {
					if prepare != nil {
						b.StopTimer()
						prepare()
						b.StartTimer()
					}
					for i, part := range parts {
						start := time.Now()
						if located {
							ids, spans = tokenizer.AppendSpans(ids[:0], spans[:0], part)
						} else {
							ids = tokenizer.Append(ids[:0], part, false)
						}
						best[i] = min(best[i], time.Since(start))
					}
				}
				total := time.Duration(0)
				for _, d := range best {
					total += d
				}
				b.ReportMetric(float64(len(text))/1e6/total.Seconds(), "best-MB/s")
			}
		}
		b.Run(name+"/warm", run(false, nil))
		b.Run(name+"/cold", run(false, func() { tokenizer.cache = new(wordCache) }))
		b.Run(name+"/spans", run(true, nil))
	}
}

// benchFiles are the real tokenizers that are installed.
func benchFiles(b *testing.B) (paths []string) {
	for _, part := range []string{"tokenizer-files", "encoder-tokenizers"} {
		files, err := filepath.Glob(cached + part + "/*/tokenizer.json")
		if err != nil {
			b.Fatal(err)
		}
		paths = append(paths, files...)
	}
	if len(paths) == 0 {
		b.Skip("SKIP real part: tokenizer-files: scripts/parts.sh tokenizer-files encoder-tokenizers brings them")
	}
	return paths
}

func BenchmarkOpen(b *testing.B) {
	for _, path := range benchFiles(b) {
		b.Run(filepath.Base(filepath.Dir(path)), func(b *testing.B) {
			for b.Loop() {
				if _, err := Open(path); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkReference is the reference library on the same text, its own cache warm, on one core.
func BenchmarkReference(b *testing.B) {
	part(b, "tokenizers")
	file := filepath.Join(b.TempDir(), "text")
	if err := os.WriteFile(file, mixed(), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, path := range benchFiles(b) {
		b.Run(filepath.Base(filepath.Dir(path)), func(b *testing.B) {
			for b.Loop() {
				cmd := python("reference.py", path, file)
				cmd.Env = append(os.Environ(), "RAYON_NUM_THREADS=1", "TOKENIZERS_PARALLELISM=false")
				out, err := cmd.Output()
				if err != nil {
					b.Fatal(err)
				}
				rate, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(rate, "best-MB/s")
			}
		})
	}
}
