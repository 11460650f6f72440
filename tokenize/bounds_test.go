// Files that ask for too much: refused when they are read, not paid for with each text.

package tokenize

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestFilesThatCostTooMuch(t *testing.T) {
	list := func(n int, part string) string { return strings.TrimSuffix(strings.Repeat(part+",", n), ",") }
	replace := func(from, to string) string {
		return fmt.Sprintf(`{"type":"Replace","pattern":{"String":%q},"content":%q}`, from, to)
	}
	var added strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&added, `{"content":"%0500d"},`, i)
	}
	for _, c := range []struct{ part, says string }{
		{`"normalizer":{"type":"Sequence","normalizers":[` + list(17, `{"type":"Lowercase"}`) + `]}`, "more than 16 normalizers"},
		{`"normalizer":{"type":"Sequence","normalizers":[` + list(7, replace("a", "aa")) + `]}`, "64 times as long"},
		{`"normalizer":` + replace("a", strings.Repeat("b", 1000)), "64 times as long"},
		{`"normalizer":{"type":"Prepend","prepend":"` + strings.Repeat("b", 10_000) + `"}`, "64 times as long"},
		{`"pre_tokenizer":{"type":"Sequence","pretokenizers":[` + list(17, `{"type":"Digits"}`) + `]}`, "more than 16 normalizers or pre-tokenizers"},
		{`"post_processor":{"type":"Sequence","processors":[` + list(40, `{"type":"BertProcessing","cls":["a",0],"sep":["b",1]}`) + `]}`, "tokens around a text"},
		{`"post_processor":{"type":"ByteLevel","x":"` + strings.Repeat("x", 2<<20) + `"}`, "more than 1048576 bytes"},
		{`"added_tokens":[` + strings.TrimSuffix(added.String(), ",") + `]`, "more than 4194304 bytes"},
	} {
		_, err := Read([]byte(`{` + c.part + `,"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":[]}}`))
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.60s: %v, want %q", c.part, err, c.says)
		}
	}
}
