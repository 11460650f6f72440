// Names: those of Dynamo, and what keeps names apart.

package kvindex

import (
	"slices"
	"testing"

	"kvasir/jsonltest"
)

// readLines decodes each line of a file of testdata.
func readLines[T any](tb testing.TB, file string) []T {
	tb.Helper()
	return jsonltest.Read[T](tb, "testdata/"+file)
}

func TestNamesAreDynamosHashes(t *testing.T) {
	type event struct {
		Worker    int
		Hashes    []Name
		Parent    *Name
		Tokens    []uint32
		BlockSize int `json:"block_size"`
	}
	blocks := 0
	for _, e := range readLines[event](t, "dynamo_stores.jsonl") {
		var before []Name
		if e.Parent != nil {
			before = []Name{*e.Parent}
		}
		if got := AppendNames(before, 0, e.Tokens, e.BlockSize)[len(before):]; !slices.Equal(got, e.Hashes) {
			t.Errorf("%v, not %v", got, e.Hashes)
		}
		blocks += len(e.Hashes)
	}
	if blocks < 100 {
		t.Errorf("only %d blocks compared", blocks)
	}
}

func TestNames(t *testing.T) {
	tokens := make([]uint32, 1000)
	for i := range tokens {
		tokens[i] = uint32(i * 7)
	}
	text := []byte("The quick brown fox jumps over the lazy dog, and then over the next one. And so on.")
	seen := map[Name]string{}
	unlike := func(what string, names []Name) {
		t.Helper()
		for _, n := range names {
			if other, ok := seen[n]; ok || n == 0 {
				t.Errorf("%s: name %d is that of %s", what, n, other)
			}
			seen[n] = what
		}
	}
	seeds := []Seed{0, SeedOf("m", "", ""), SeedOf("", "m", ""), SeedOf("", "", "m"), SeedOf("m", "l", "s"), SeedOf("ml", "", "s"), SeedOf("m", "ls", "")}
	for _, seed := range seeds {
		for _, size := range []int{1, 16, 300} {
			names := AppendNames(nil, seed, tokens, size)
			if len(names) != len(tokens)/size {
				t.Fatalf("%d names for %d tokens in blocks of %d", len(names), len(tokens), size)
			}
			unlike("tokens", names)
			at := len(tokens) / size / 2 * size
			if got := AppendNames(AppendNames(nil, seed, tokens[:at], size), seed, tokens[at:], size); !slices.Equal(got, names) {
				t.Errorf("blocks of %d named in two pieces are not those named in one", size)
			}
		}
		names := AppendTextNames(nil, seed, text, 16)
		unlike("text", names)
		if got := AppendTextNames(AppendTextNames(nil, seed, text[:32], 16), seed, text[32:], 16); len(names) != len(text)/16 || !slices.Equal(got, names) {
			t.Error("text named in two pieces is not that named in one")
		}
	}
	// One block of 16 tokens is 64 bytes of text: they never meet.
	unlike("text like tokens", AppendTextNames(nil, 0, make([]byte, 64), 64))
	unlike("tokens like text", AppendNames(nil, 0, make([]uint32, 16), 16))
}

func TestNamesAllocate(t *testing.T) {
	tokens := make([]uint32, 8000)
	dst := make([]Name, 0, 500)
	if n := testing.AllocsPerRun(10, func() {
		dst = AppendNames(dst[:0], 7, tokens, 16)
		dst = AppendNames(dst[:0], 7, tokens, 256)
		dst = AppendTextNames(dst[:0], 7, make([]byte, 64), 64)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkNames(b *testing.B) {
	tokens := make([]uint32, 32000)
	for i := range tokens {
		tokens[i] = uint32(i)
	}
	for _, size := range []int{16, 64} {
		b.Run(map[int]string{16: "16", 64: "64"}[size], func(b *testing.B) {
			var dst []Name
			b.SetBytes(4 * int64(len(tokens)))
			for b.Loop() {
				dst = AppendNames(dst[:0], 7, tokens, size)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(dst)), "ns/block")
		})
	}
}
