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

// mixed is text as prompts have it: prose of several languages, code and data; about 220 KB of which
// no two lines are alike.
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

// BenchmarkAppend is the rate when the words are known (warm), as in a gateway, where they nearly
// always are; and with a cache that has just been emptied (cold). best-MB/s
// takes the fastest time of each 8 KB of it: others may want the machine's cores too.
func BenchmarkAppend(b *testing.B) {
	part(b, "tokenizer-files")
	text := mixed()
	var parts [][]byte
	for rest := text; len(rest) > 0; {
		n := min(len(rest), 8192)
		for n < len(rest) && !utf8.RuneStart(rest[n]) {
			n++
		}
		parts, rest = append(parts, rest[:n]), rest[n:]
	}
	for _, name := range realFiles {
		tokenizer, err := Open(filepath.Join(cached+"tokenizer-files", name, "tokenizer.json"))
		if err != nil {
			b.Fatal(err)
		}
		run := func(prepare func()) func(b *testing.B) {
			return func(b *testing.B) {
				var ids []uint32
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
						ids = tokenizer.Append(ids[:0], part, false)
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
		b.Run(name+"/warm", run(nil))
		b.Run(name+"/cold", run(func() { tokenizer.cache = new(wordCache) }))
	}
}

func BenchmarkOpen(b *testing.B) {
	part(b, "tokenizer-files")
	for _, name := range realFiles {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Open(filepath.Join(cached+"tokenizer-files", name, "tokenizer.json")); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkReference is the reference library on the same text, its own cache warm, on one core.
func BenchmarkReference(b *testing.B) {
	part(b, "tokenizer-files")
	part(b, "tokenizers")
	file := filepath.Join(b.TempDir(), "text")
	if err := os.WriteFile(file, mixed(), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, name := range realFiles {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				cmd := python("reference.py", filepath.Join(cached+"tokenizer-files", name, "tokenizer.json"), file)
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
