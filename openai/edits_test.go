// Edits that a decision asks for, as transcripts.

package openai

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
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
	rt := routeAt(t, fields[0])
	var r Request
	if err := r.Parse(rt, []byte(body), nil); err != nil {
		t.Fatalf("%s: %s", body, err.Message)
	}
	var s Splices
	tokens, choices, temperature := 0, 0, math.Inf(1)
	for _, f := range fields[2:] {
		name, value, _ := strings.Cut(f, ":")
		value = strings.ReplaceAll(value, "_", " ")
		switch name {
		case "replace", "insert":
			SetSystemPrompt(&s, &r, value, name == "insert")
		case "reasoning":
			SetReasoning(&s, &r, fields[1], value)
		case "tokens":
			_, _ = fmt.Sscan(value, &tokens)
		case "choices":
			_, _ = fmt.Sscan(value, &choices)
		case "temperature":
			_, _ = fmt.Sscan(value, &temperature)
		default:
			t.Fatalf("unknown effect %q", f)
		}
	}
	if tokens > 0 {
		CapTokens(&s, &r, tokens)
	}
	if choices > 0 {
		CapChoices(&s, &r, choices)
	}
	if !math.IsInf(temperature, 1) {
		CapTemperature(&s, &r, temperature)
	}
	sent := bytes.Join(s.Segments(nil, r.Body), nil)
	if !json.Valid(sent) {
		t.Errorf("not JSON: %s", sent)
	}
	var again Request
	if err := again.Parse(rt, sent, nil); err != nil {
		t.Errorf("what is sent is not what is taken: %s: %s", err.Message, sent)
	}
	return string(sent)
}

// Engines take a negative limit for none, and the cap let it pass; the cap of a
// system prompt's place ended at 64 of them.
func TestCapsHoldWhateverIsAsked(t *testing.T) {
	if got := applied(t, "/v1/chat/completions none tokens:16", `{"model":"m","max_tokens":-1,"messages":[{"role":"user","content":"a"}]}`); !strings.Contains(got, `"max_tokens":16`) {
		t.Error(got)
	}
	many := strings.Repeat(`{"role":"system","content":"mine"},`, 100)
	got := applied(t, "/v1/chat/completions none replace:ours", `{"model":"m","messages":[`+many+`{"role":"user","content":"a"}]}`)
	if want := `{"model":"m","messages":[{"role":"system","content":"ours"},{"role":"user","content":"a"}]}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
