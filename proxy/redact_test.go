// Redaction: offsets of a text in the body.

package proxy

import (
	"bytes"
	"testing"

	"kvasir/openai"
)

// Offsets go from the text as it is meant to its bytes in the body.
func TestOffsetsOfEscapedText(t *testing.T) {
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"a\n\"\u00e9\ud83d\ude00 x@y.zz é\/ end"}]}`)
	var r openai.Request
	if err := r.Parse(openai.Route{Path: "/v1/chat/completions", Kind: openai.KindChat}, body, nil); err != nil {
		t.Fatal(err.Message)
	}
	text := r.Content.Texts[0]
	plain := text.AppendTo(nil, body)
	for _, part := range []string{"a", "\n", `"`, "é", "😀", "x@y.zz", "é/", "end"} {
		start := bytes.Index(plain, []byte(part))
		o := offsets{raw: int(text.Inside().Start)}
		from := o.to(body, start, true)
		to := o.to(body, start+len(part), true)
		if got := openai.AppendUnescaped(nil, body[from:to]); string(got) != part {
			t.Errorf("%q is found at %q", part, body[from:to])
		}
	}
}
