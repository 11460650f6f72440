// Transcripts: testdata/*.txt say what a configuration makes of requests; -update writes the answers.

package classify

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kvasir/transcripttest"
)

func TestTranscripts(t *testing.T) {
	transcripttest.Run(t, "testdata/*.txt", func(t *testing.T, text string) string {
		s := &script{t: t}
		return transcripttest.Replay(text, s.tell, s.told)
	})
}

// A script is the state behind one transcript.
type script struct {
	t       *testing.T
	options Options
	request Request
	out     bytes.Buffer
	c       *Classifier
}

// told is what was answered since the last time; the next request is another.
func (s *script) told() string {
	defer func() { s.out.Reset(); s.request = Request{} }()
	return s.out.String()
}

func (s *script) say(format string, args ...any) { fmt.Fprintf(&s.out, format, args...) }

var roleNames = map[string]Role{
	"user": User, "system": System, "assistant": Assistant, "tool": Tool,
	"definition": ToolDefinition, "document": Document, "other": Other,
}

func (s *script) tell(line string) {
	command, rest, _ := strings.Cut(line, " ")
	if role, ok := roleNames[strings.TrimPrefix(command, "+")]; ok {
		s.text(role, rest, command[0] == '+')
		return
	}
	switch command {
	case "new": // forget the options
		s.options, s.c = Options{}, nil
	case "options":
		s.read(rest, &s.options)
	case "signal":
		var o SignalOptions
		s.read(rest, &o)
		s.options.Signals, s.c = append(s.options.Signals, o), nil
	case "decision":
		var d Decision
		s.read(rest, &d)
		s.options.Decisions, s.c = append(s.options.Decisions, d), nil
	case "judge":
		s.judge(rest)
	case "explain":
		s.explain(rest)
	case "check": // only whether the options are right
		if _, err := New(s.options); err != nil {
			s.say("%v\n", err)
		} else {
			s.say("ok\n")
		}
	default:
		s.t.Fatalf("no command %q", line)
	}
}

func (s *script) read(text string, to any) {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
	s.c = nil
}

// text adds a message, or with + a part to the last one. "..." may have escapes.
func (s *script) text(role Role, text string, part bool) {
	if strings.HasPrefix(text, `"`) {
		var err error
		if text, err = strconv.Unquote(text); err != nil {
			s.t.Fatalf("%s: %v", text, err)
		}
	}
	if !part {
		s.request.Messages++
		if role == User {
			s.request.Turns++
		}
	}
	s.request.Texts = append(s.request.Texts, Text{[]byte(text), role, int32(s.request.Messages - 1)})
}

// judge auto | model=NAME, unread=N, tools=N ..., also=KIND,KIND
func (s *script) prepare(words string) {
	if s.c == nil {
		c, err := New(s.options)
		if err != nil {
			s.t.Fatal(err)
		}
		s.c = c
	}
	for w := range strings.FieldsSeq(words) {
		name, value, _ := strings.Cut(w, "=")
		n, _ := strconv.Atoi(value)
		switch name {
		case "auto":
			s.request.Auto = true
		case "model":
			s.request.Model = value
		case "unread":
			s.request.Unread = n
		case "tools":
			s.request.Tools = n
		case "images":
			s.request.Media = n
		case "also":
			for k := range strings.SplitSeq(value, ",") {
				s.request.Also = append(s.request.Also, Kind(k))
			}
		default:
			s.t.Fatalf("no word %q", w)
		}
	}
}

func (s *script) judge(words string) {
	s.prepare(words)
	v := s.c.Judge(&s.request)
	defer v.Release()
	if g := v.Blocked(); g != Passed {
		s.say("blocked by %v\n", g)
	}
	for _, err := range []error{v.Jailbreak.Err, v.PII.Err} {
		if err != nil {
			s.say("error: %v\n", err)
		}
	}
	if v.Jailbreak.Flagged {
		s.say("%s in message %d\n", v.Jailbreak.Type, v.Jailbreak.Message)
	}
	for _, e := range v.PII.Spans {
		text := s.request.Texts[e.Text].Bytes[e.Start:e.End]
		s.say("%v %q denied=%v\n", e.Type, text, v.PII.Denies(e.Type))
	}
	if v.Category.Judged {
		s.say("category %s\n", v.Category.Label)
	}
	if v.Language.Code != "" {
		s.say("language %s\n", v.Language.Code)
	}
	if v.Complexity.Level != "" {
		s.say("complexity %s\n", v.Complexity.Level)
	}
	if v.Tokens > 0 {
		s.say("about %d tokens\n", v.Tokens)
	}
	for _, m := range v.Matched {
		if slices.Contains([]Kind{KindCategory, KindJailbreak, KindEmbedding, KindPII, KindReask}, m.Kind) {
			s.say("%s %s\n", m.Kind, m.Name) // scores of weights, which change
		} else {
			s.say("%s %s %s\n", m.Kind, m.Name, scored(m.Score))
		}
	}
	if v.Decision != nil {
		s.say("decision %s\n", v.Decision.Name)
	}
	var computed []string
	for _, t := range v.Took {
		computed = append(computed, string(t.Kind))
	}
	slices.Sort(computed)
	s.say("computed: %s\n", cmp.Or(strings.Join(computed, " "), "nothing"))
}

func (s *script) explain(words string) {
	s.prepare(words)
	v, reasons := s.c.Explain(&s.request)
	defer v.Release()
	for _, r := range reasons {
		s.say("%s: %s", r.Decision, r.Holds)
		switch {
		case r.Taken:
			s.say(", taken")
		case r.Why != "":
			s.say(", but %s", r.Why)
		}
		s.say("\n")
		for _, a := range r.Asked {
			s.say("%s%s: %s", strings.Repeat("  ", a.Depth+1), a.What, a.Holds)
			if a.Found != "" {
				s.say(" (%s)", a.Found)
			}
			s.say("\n")
		}
	}
}
