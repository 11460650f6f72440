// FuzzRealCache: the prefix cache over the tokenizers of real models.

package prompt

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kvasir/tokenize"
)

// realTokenizers are those that were brought; a test without any is skipped.
func realTokenizers(tb testing.TB) (names []string, all []*tokenize.Tokenizer) {
	tb.Helper()
	entries, _ := os.ReadDir(realFiles)
	for _, e := range entries {
		path := filepath.Join(realFiles, e.Name(), "tokenizer.json")
		if _, err := os.Stat(path); err != nil {
			continue
		}
		t, err := tokenize.Open(path)
		if err != nil {
			tb.Fatal(err)
		}
		names, all = append(names, e.Name()), append(all, t)
	}
	if all == nil {
		tb.Skip("SKIP real part: tokenizer-files: scripts/parts.sh tokenizer-files brings it")
	}
	return names, all
}

// realMarks are added tokens of real models, by which texts of the cache are taken apart.
var realMarks = []string{"<|im_end|>", "<|im_start|>user\n", "<|eot_id|>", "<|start_header_id|>user<|end_header_id|>\n\n", "</s>", "<s>",
	"<end_of_turn>\n", "<start_of_turn>user\n", "<｜end▁of▁sentence｜>", "<｜User｜>", "<|end|>", "<|start|>user<|message|>", "<think>", "\n\n", "\t\t", "   "}

// FuzzRealCache: texts with a common beginning, one after the other, for each real tokenizer.
func FuzzRealCache(f *testing.F) {
	names, all := realTokenizers(f)
	for i := range all {
		for mark := range realMarks {
			f.Add(uint8(i), uint16(mark), []byte("user\nhello, wie geht's? 你好"), []byte("assistant\n"), []byte("<|im_st"), uint16(300))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, marks uint16, part, a, b []byte, times uint16) {
		tokenizer := all[int(which)%len(all)]
		its := &files{tokenizer: tokenizer}
		c := newPrefixCache(1 << 20)
		part = append(append(slices.Clone(part), realMarks[int(marks)%len(realMarks)]...), realMarks[int(marks>>4)%len(realMarks)]...)
		begin := bytes.Repeat(part, int(times%512)+1)
		if len(begin) > 64<<10 {
			begin = begin[:64<<10]
		}
		mark := realMarks[int(marks>>8)%len(realMarks)]
		for i, text := range [][]byte{slices.Concat(begin, a), slices.Concat(begin, b), slices.Concat(begin, a, []byte(mark), b), slices.Concat(begin, a),
			slices.Concat(begin[:len(begin)/2], b, begin[len(begin)/2:])} {
			want := tokenizer.Append(nil, text, false)
			if got := c.append(nil, its, &workspace{text: slices.Clone(text)}); !slices.Equal(got, want) {
				t.Fatalf("%s, text %d: %q, %q, %q, %q", names[int(which)%len(all)], i, part, a, b, mark)
			}
			if c.bytes > c.limit {
				t.Fatal(c.bytes, "bytes")
			}
		}
	})
}
