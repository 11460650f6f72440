// What is read from request bodies and what is refused, as transcripts.

package openai

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var rewriteRequests = flag.Bool("rewrite-requests", false, "write what was found into testdata/requests")

// TestRequestTranscripts reads testdata/requests: blocks of
//
//	# what this is about
//	path [content type]
//	body, on one line as it is, or as a Go string
//	= what comes of it, line by line
func TestRequestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/requests/*.txt")
	if err != nil || len(files) < 3 {
		t.Fatalf("transcripts are missing: %v %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			old, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var all strings.Builder
			for block := range strings.SplitSeq(strings.TrimSpace(string(old)), "\n\n") {
				found := runTranscript(t, block)
				all.WriteString(found + "\n\n")
				if !*rewriteRequests && found != block {
					t.Errorf("found:\n%s\n\nwant:\n%s", found, block)
				}
			}
			if *rewriteRequests {
				if err := os.WriteFile(file, []byte(strings.TrimSpace(all.String())+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// runTranscript returns the block with what comes of its body.
func runTranscript(t *testing.T, block string) string {
	var keep []string
	for line := range strings.SplitSeq(block, "\n") {
		if !strings.HasPrefix(line, "= ") {
			keep = append(keep, line)
		}
	}
	if len(keep) != 3 || keep[0][0] != '#' {
		t.Fatalf("a block needs a comment, a path and a body:\n%s", block)
	}
	path, contentType, _ := strings.Cut(keep[1], " ")
	body := keep[2]
	if body[0] == '"' || body[0] == '`' {
		var err error
		if body, err = strconv.Unquote(body); err != nil {
			t.Fatalf("%s: %v", keep[2], err)
		}
	}
	out := slices.Clone(keep)
	for _, line := range tellRequest(routeAt(t, path), []byte(body), []byte(contentType)) {
		out = append(out, "= "+line)
	}
	return strings.Join(out, "\n")
}

func routeAt(t testing.TB, path string) Route {
	for _, rt := range Routes {
		if rt.Path == path {
			return rt
		}
	}
	t.Fatalf("no route %q", path)
	return Route{}
}

// tellRequest says what parse found, and what a worker would be sent.
func tellRequest(rt Route, body, contentType []byte) (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	var r Request
	if e := r.Parse(rt, body, contentType); e != nil {
		say("%d %s %s", e.Status, e.Type, cmpOr(e.Param, "null"))
		say("%s", e.Message)
		return lines
	}
	say("model %q at %s", r.Model, r.modelAt.Of(body))
	if r.Stream {
		say("stream, usage asked: %v, continuous: %v", r.Usage.Include, r.Usage.Continuous)
	}
	roles := [...]string{"user", "system", "assistant", "tool", "tools", "document", "other"}
	for _, x := range r.Content.Texts {
		say("%s %d %q", roles[x.Role], x.Message, x.AppendTo(nil, body))
	}
	if r.Content.Media > 0 {
		say("media %d", r.Content.Media)
	}
	if r.Content.Unread > 0 {
		say("unread %d", r.Content.Unread)
	}
	if r.Content.template.Given() {
		say("template %s", r.Content.template.Of(body))
	}
	for _, a := range r.Content.Adapters {
		say("adapter %s %s", a.Name, a.value.Of(body))
	}
	for _, f := range []struct {
		name string
		at   Span
	}{
		{"tools", r.Fields.Tools}, {"user", r.Fields.user}, {"n", r.Fields.n}, {"max_tokens", r.Fields.maxTokens},
		{"max_completion_tokens", r.Fields.maxCompletion}, {"max_output_tokens", r.Fields.maxOutput}, {"temperature", r.Fields.Temperature}, {"seed", r.Fields.seed},
		{"response_format", r.Fields.responseFormat}, {"cache_salt", r.Fields.CacheSalt},
	} {
		if f.at.Given() {
			say("%s: %s", f.name, f.at.Of(body))
		}
	}
	var s Splices
	StripHandover(&s, &r)
	RewriteHeads(&s, &r)
	AskUsage(&s, &r)
	if !s.Empty() {
		say("sent %s", quoteIfOdd(bytes.Join(s.Segments(nil, body), nil)))
	}
	SetModel(&s, &r, `new "one"`)
	sent := bytes.Join(s.Segments(nil, body), nil)
	say("sent %s", quoteIfOdd(sent))
	if len(sent) != s.Length(body) {
		say("BUG: length says %d, it is %d", s.Length(body), len(sent))
	}
	return lines
}

func quoteIfOdd(b []byte) string {
	if q := strconv.Quote(string(b)); strings.ContainsAny(string(b), "\r\n\t\x00") {
		return q
	}
	return string(b)
}

func cmpOr(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
