// Benchmarks of the tokenizer and the encoder on the embedded weights.

package model

import (
	"fmt"
	"strings"
	"testing"
)

// benchText is text of several languages and scripts.
const benchText = `The committee will publish its report on renewable energy next Thursday; early drafts suggest that
storage, not generation, has become the bottleneck. 委员会将于下周四发布可再生能源报告，初稿显示瓶颈已经不是发电，而是储能。
Der Ausschuss veröffentlicht seinen Bericht am Donnerstag. SELECT id, name FROM users WHERE created_at > '2024-01-01';
Комитет опубликует отчёт в следующий четверг. El comité publicará su informe el próximo jueves.
`

func BenchmarkTokenize(b *testing.B) {
	m := embeddedModel(b)
	for _, row := range []struct{ name, text string }{
		{"mixed", strings.Repeat(benchText, 20)},
		{"english", strings.Repeat(benchText[:strings.Index(benchText, "委")], 60)},
		{"chinese", strings.Repeat("委员会将于下周四发布可再生能源报告，初稿显示瓶颈已经不是发电，而是储能。", 100)},
		{"one-letter", strings.Repeat("a", 10000)},
	} {
		b.Run(row.name, func(b *testing.B) {
			var s Scratch
			text := []byte(row.text)
			tokens := m.Tokenize(nil, text, &s)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				tokens = m.Tokenize(tokens[:0], text, &s)
			}
		})
	}
}

func BenchmarkEmbed(b *testing.B) {
	m := embeddedModel(b)
	var s Scratch
	tokens := m.Tokenize(nil, []byte(strings.Repeat(benchText, 20)), &s)
	chosen := kernel
	defer func() { kernel = chosen }()
	for _, f := range forms() {
		kernel = f
		var err error
		if m, err = open(bytesOf(tokensFile), bytesOf(encoderFile)); err != nil {
			b.Fatal(err)
		}
		for _, n := range []int{16, 64, 256, 512, 2048} {
			b.Run(fmt.Sprintf("%s/%d", f.name, n), func(b *testing.B) {
				var vector [Dim]float32
				for b.Loop() {
					m.Embed(&vector, tokens[:n], &s)
				}
			})
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		if _, err := open(bytesOf(tokensFile), bytesOf(encoderFile)); err != nil {
			b.Fatal(err)
		}
	}
}

func embeddedModel(tb testing.TB) *Model {
	tb.Helper()
	m, err := Embedded()
	if err != nil {
		tb.Fatal(err)
	}
	return m
}
