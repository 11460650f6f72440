// Effects of decisions on bodies, as transcripts.
package proxy

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"kvasir/classify"
	"kvasir/openai"
)

var rewriteEffects = flag.Bool("rewrite-effects", false, "write what was found into testdata/effects.txt")

// TestEffects reads testdata/effects.txt: blocks of
//
//	# what this is about
//	path family what [what...]
//	body
//	= the body that is sent
//
// where what is replace:PROMPT, insert:PROMPT, reasoning:VALUE, tokens:N,
// choices:N or temperature:F; _ stands for a space.
func TestEffects(t *testing.T) {
	const file = "testdata/effects.txt"
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for block := range strings.SplitSeq(strings.TrimSpace(string(old)), "\n\n") {
		lines := strings.Split(block, "\n")
		if len(lines) < 3 {
			t.Fatalf("a block of %d lines: %s", len(lines), block)
		}
		found := strings.Join(append(lines[:3:3], "= "+applied(t, lines[1], lines[2])), "\n")
		all = append(all, found)
		if !*rewriteEffects && found != block {
			t.Errorf("found:\n%s\n\nwant:\n%s", found, block)
		}
	}
	if *rewriteEffects {
		if err := os.WriteFile(file, []byte(strings.Join(all, "\n\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func applied(t *testing.T, how, body string) string {
	t.Helper()
	fields := strings.Fields(how)
	rt := routeOf(t, fields[0])
	var r openai.Request
	if err := r.Parse(rt, []byte(body), nil); err != nil {
		t.Fatalf("%s: %s", body, err.Message)
	}
	var s openai.Splices
	w := writer{&r, &s, rt.Kind}
	var d classify.Decision
	for _, f := range fields[2:] {
		name, value, _ := strings.Cut(f, ":")
		value = strings.ReplaceAll(value, "_", " ")
		switch name {
		case "replace", "insert":
			w.systemPrompt(value, name == "insert")
		case "reasoning":
			w.reasoning(fields[1], value)
		case "tokens":
			_, _ = fmt.Sscan(value, &d.MaxTokens)
		case "choices":
			_, _ = fmt.Sscan(value, &d.MaxChoices)
		case "temperature":
			d.CapTemperature = true
			_, _ = fmt.Sscan(value, &d.MaxTemperature)
		default:
			t.Fatalf("unknown effect %q", f)
		}
	}
	w.caps(&d)
	sent := bytes.Join(s.Segments(nil, r.Body), nil)
	if !json.Valid(sent) {
		t.Errorf("not JSON: %s", sent)
	}
	var again openai.Request
	if err := again.Parse(rt, sent, nil); err != nil {
		t.Errorf("what is sent is not what is taken: %s: %s", err.Message, sent)
	}
	return string(sent)
}

func routeOf(t *testing.T, path string) openai.Route {
	t.Helper()
	for _, rt := range openai.Routes {
		if rt.Path == path {
			return rt
		}
	}
	t.Fatalf("no route %q", path)
	return openai.Route{}
}

// Offsets go from the text as it is meant to its bytes in the body.
func TestOffsetsOfEscapedText(t *testing.T) {
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"a\n\"\u00e9\ud83d\ude00 x@y.zz é\/ end"}]}`)
	var r openai.Request
	if err := r.Parse(openai.Route{Path: "/v1/chat/completions", Kind: openai.KindChat}, body, nil); err != nil {
		t.Fatal(err.Message)
	}
	text := r.Texts[0]
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
