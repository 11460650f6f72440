package encoder

import (
	"bytes"
	"fmt"
	"os"
	"testing"
)

// BenchmarkNet runs the net of the directory ENCODER over sequences of some lengths: scripts/encoders/bench.sh
// runs it beside onnxruntime.
func BenchmarkNet(b *testing.B) {
	dir := os.Getenv("ENCODER")
	if dir == "" {
		b.Skip("ENCODER names no directory")
	}
	e := mustOpen(b, dir, inInt8)
	ids := e.tokenizer.Append(nil, bytes.Repeat([]byte("the quick brown fox jumps over a lazy dog and "), 80), false)
	for _, n := range []int{16, 64, 256, 512} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := new(Scratch)
			for b.Loop() {
				if _, _, err := e.read(ids[:n-e.tokenizer.Around(false)], s, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
