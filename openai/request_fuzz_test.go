// Bodies of any bytes, read side by side with the standard library.

package openai

import (
	"bytes"
	"encoding/json"
	"mime"
	"mime/multipart"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// addTranscripts gives the bodies of testdata/requests to a fuzz target.
func addTranscripts(f *testing.F, add func(rt Route, contentType, body string)) {
	files, err := filepath.Glob("testdata/requests/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatalf("transcripts are missing: %v", err)
	}
	for _, file := range files {
		all, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for block := range strings.SplitSeq(strings.TrimSpace(string(all)), "\n\n") {
			lines := strings.Split(block, "\n")
			path, contentType, _ := strings.Cut(lines[1], " ")
			body := lines[2]
			if plain, err := strconv.Unquote(body); err == nil {
				body = plain
			}
			add(routeAt(f, path), contentType, body)
		}
	}
}

// FuzzRequest: what we accept, encoding/json accepts and reads as we do; what
// it refuses, we refuse; and what we refuse as bytes, we refuse for a reason.
func FuzzRequest(f *testing.F) {
	addTranscripts(f, func(rt Route, _, body string) {
		if rt.Kind != KindForm {
			f.Add(uint8(slices.Index(Routes, rt)), []byte(body))
		}
	})
	f.Add(uint8(0), []byte(`{"model":"m","nvex\u0074":{"backend_instance_id":"a","router_config_override":{"router_temperature":1}},"messages":[{"role":"user","content":"hi"}]}`))
	f.Add(uint8(0), []byte(`{"model":"m","router_config_override":{"router_temperature":1,"router_temperature":2},"messages":[{"role":"user","content":"hi"}]}`))
	f.Fuzz(func(t *testing.T, path uint8, body []byte) {
		rt := Routes[int(path)%len(Routes)]
		var r Request
		before := bytes.Clone(body)
		refused := r.Parse(rt, body, []byte("application/json"))
		if !bytes.Equal(before, body) {
			t.Fatal("parse changed the body")
		}
		document := bytes.TrimPrefix(body, []byte(ByteOrderMark))
		if refused != nil {
			checkRefusal(t, &r, refused, document)
			return
		}
		if !json.Valid(document) || !utf8.Valid(document) {
			t.Fatalf("accepted %q", body)
		}
		checkReading(t, &r, document)
		checkCase(t, &r, document)
		checkTexts(t, &r, document)
		checkSending(t, &r, document)
	})
}

var surrogateEscape = regexp.MustCompile(`\\u[dD][89a-fA-F]`)

// depthOf is how deep a valid document nests.
func depthOf(document []byte) (deepest int) {
	d := json.NewDecoder(bytes.NewReader(document))
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return deepest
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		deepest = max(deepest, depth)
	}
}

func checkRefusal(t *testing.T, r *Request, refused *Error, document []byte) {
	if refused.Status != 400 || refused.Type != "invalid_request_error" || refused.Message == "" {
		t.Fatalf("refused with %+v", refused)
	}
	if len(refused.Message) > 2000 || !utf8.ValidString(refused.Message) || strings.ContainsFunc(refused.Message, func(c rune) bool { return c < ' ' }) {
		t.Fatalf("message %q", refused.Message)
	}
	if r.parser.json.check.fault.at < 0 || r.parser.json.check.fault.at > len(r.Body) {
		t.Fatalf("fault at %d of %d", r.parser.json.check.fault.at, len(r.Body))
	}
	if r.parser.json.check.fault.kind != faultSyntax || !json.Valid(document) || !utf8.Valid(document) {
		return
	}
	if surrogateEscape.Match(document) || bytes.TrimLeft(document, " \t\r\n")[0] != '{' || depthOf(document) > maxDepth {
		return
	}
	t.Fatalf("refused without a reason: %s\n%q", refused.Message, document)
}

// checkReading compares what was read with encoding/json, which folds the case
// of keys and takes the last of two: hence by way of pairsOf.
func checkReading(t *testing.T, r *Request, document []byte) {
	seen := uniquePairs(t, string(bytes.TrimSpace(document)))
	var model *string
	var stream *bool
	decode(t, seen["model"], &model)
	decode(t, seen["stream"], &stream)
	if model == nil && len(r.Model) > 0 || model != nil && *model != string(r.Model) {
		t.Fatalf("model %q, want %s", r.Model, seen["model"])
	}
	if r.Stream != (stream != nil && *stream) {
		t.Fatalf("stream %v, want %s", r.Stream, seen["stream"])
	}
	var options struct {
		Include    *bool `json:"include_usage"`
		Continuous *bool `json:"continuous_usage_stats"`
	}
	for _, p := range pairsIfObject(t, seen["stream_options"]) {
		switch p.key {
		case "include_usage":
			decode(t, p.value, &options.Include)
		case "continuous_usage_stats":
			decode(t, p.value, &options.Continuous)
		}
	}
	if r.Usage.Include != (options.Include != nil && *options.Include) || r.Usage.Continuous != (options.Continuous != nil && *options.Continuous) {
		t.Fatalf("usage %+v, want %s", r.Usage, seen["stream_options"])
	}
	for key, at := range map[string]Span{
		"model": r.modelAt, "stream": r.Fields.stream, "stream_options": r.Usage.at, "tools": r.Fields.Tools, "user": r.Fields.user,
		"n": r.Fields.n, "max_tokens": r.Fields.maxTokens, "max_completion_tokens": r.Fields.maxCompletion, "max_output_tokens": r.Fields.maxOutput, "temperature": r.Fields.Temperature, "seed": r.Fields.seed,
		"response_format": r.Fields.responseFormat, "cache_salt": r.Fields.CacheSalt,
	} {
		if got := string(at.Of(r.Body)); got != seen[key] && !(got == "" && seen[key] == "null") {
			t.Fatalf("%s is %q, want %q", key, got, seen[key])
		}
	}
	checkChoice(t, r, seen)
}

// checkChoice: what a request chooses by is found wherever it stands, and names
// nothing twice.
func checkChoice(t *testing.T, r *Request, seen map[string]string) {
	nvext := uniquePairs(t, seen["nvext"])
	for name, got := range map[string]struct {
		want string
		at   Span
	}{
		"nvext":                  {seen["nvext"], r.Choice.Nvext},
		"backend_instance_id":    {nvext["backend_instance_id"], r.Choice.Backend},
		"prefill_worker_id":      {nvext["prefill_worker_id"], r.Choice.Prefill},
		"decode_worker_id":       {nvext["decode_worker_id"], r.Choice.Decode},
		"nvext's weights":        {nvext["router_config_override"], r.Choice.Within.Whole},
		"router_config_override": {seen["router_config_override"], r.Choice.Weights.Whole},
	} {
		if at := string(got.at.Of(r.Body)); at != got.want {
			t.Fatalf("%s is %q, want %q", name, at, got.want)
		}
	}
	for raw, at := range map[string]WeightsAt{nvext["router_config_override"]: r.Choice.Within, seen["router_config_override"]: r.Choice.Weights} {
		weights := uniquePairs(t, raw)
		if string(at.Credit.Of(r.Body)) != weights["overlap_score_credit"] || string(at.Scale.Of(r.Body)) != weights["prefill_load_scale"] ||
			string(at.Temperature.Of(r.Body)) != weights["router_temperature"] {
			t.Fatalf("weights %+v, want %s", at, raw)
		}
	}
}

// asGo is a body as a server written in Go declares it, such as Ollama. encoding/json
// takes names in any case, and of two the last.
type asGo struct {
	Model    json.RawMessage `json:"model"`
	Stream   json.RawMessage `json:"stream"`
	Messages []struct {
		Role    json.RawMessage `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Prompt  json.RawMessage `json:"prompt"`
	Input   json.RawMessage `json:"input"`
	System  json.RawMessage `json:"system"`
	Tools   json.RawMessage `json:"tools"`
	Options json.RawMessage `json:"stream_options"`
}

// checkCase: a reader that knows no case finds what one that knows it does.
func checkCase(t *testing.T, r *Request, document []byte) {
	var loose asGo
	if json.Unmarshal(document, &loose) != nil {
		return // a shape that Go's readers refuse
	}
	exact := uniquePairs(t, string(bytes.TrimSpace(document)))
	for name, got := range map[string]json.RawMessage{
		"model": loose.Model, "stream": loose.Stream, "prompt": loose.Prompt, "input": loose.Input,
		"system": loose.System, "tools": loose.Tools, "stream_options": loose.Options,
	} {
		if string(got) != exact[name] {
			t.Fatalf("%s is %s to a reader that knows no case, and %q here: %q", name, got, exact[name], document)
		}
	}
	if !r.MessagesAt.Given() {
		return // not read message by message on this route
	}
	var messages []json.RawMessage
	decode(t, exact["messages"], &messages)
	for i, message := range messages {
		seen := uniquePairs(t, string(message))
		if string(loose.Messages[i].Role) != seen["role"] || string(loose.Messages[i].Content) != seen["content"] {
			t.Fatalf("message %d is %s to a reader that knows no case: %q", i, loose.Messages[i], document)
		}
	}
}

// uniquePairs are the members of raw, if it is an object; none comes twice.
func uniquePairs(t *testing.T, raw string) map[string]string {
	found := map[string]string{}
	for _, p := range pairsIfObject(t, raw) {
		if _, twice := found[p.key]; twice {
			t.Fatalf("accepted with %q twice: %q", p.key, raw)
		}
		found[p.key] = p.value
	}
	return found
}

func decode(t *testing.T, raw string, into any) {
	if raw == "" {
		return
	}
	if err := json.Unmarshal([]byte(raw), into); err != nil {
		t.Fatalf("accepted %q: %v", raw, err)
	}
}

func pairsIfObject(t *testing.T, raw string) []pair {
	if raw == "" || raw[0] != '{' {
		return nil
	}
	return pairsOf(t, []byte(raw))
}

// checkTexts: every text decodes as encoding/json decodes it, texts are told in
// the body's order, and the plain contents of messages are all among them.
func checkTexts(t *testing.T, r *Request, document []byte) {
	found := map[string]bool{}
	last := int32(0)
	for _, x := range r.Content.Texts {
		var want string
		if x.Bare { // a number
			want = string(x.At.Of(r.Body))
		} else {
			decode(t, string(x.At.Of(r.Body)), &want)
		}
		if got := string(x.AppendTo(nil, r.Body)); got != want || got == "" {
			t.Fatalf("text %q, want %q", got, want)
		}
		if x.At.Start < last {
			t.Fatalf("text at %d behind %d", x.At.Start, last)
		}
		last = x.At.End
		found[strconv.Itoa(int(x.Message))+":"+want] = true
	}
	if !r.MessagesAt.Given() {
		return
	}
	var messages []json.RawMessage
	decode(t, string(r.MessagesAt.Of(r.Body)), &messages)
	for i, message := range messages {
		role := ""
		for _, p := range pairsIfObject(t, string(message)) {
			if p.key == "role" {
				decode(t, p.value, &role)
			}
			if p.key != "content" {
				continue
			}
			for _, want := range contentTexts(t, p.value) {
				if want != "" && !found[strconv.Itoa(i)+":"+want] {
					t.Fatalf("text %q of message %d is missing in %q", want, i, document)
				}
			}
		}
		if role == "" && !bytes.Contains(message, []byte(`""`)) {
			t.Fatalf("accepted a message without role: %s", message)
		}
	}
}

// contentTexts is the slow way to the texts of a message.
func contentTexts(t *testing.T, raw string) (texts []string) {
	switch raw[0] {
	case '"':
		var text string
		decode(t, raw, &text)
		return []string{text}
	case '[':
		var parts []json.RawMessage
		decode(t, raw, &parts)
		for _, part := range parts {
			for _, p := range pairsOf(t, part) {
				if p.key == "text" && p.value[0] == '"' {
					texts = append(texts, contentTexts(t, p.value)...)
				}
			}
		}
		return texts
	case 'n':
		return nil
	}
	t.Fatalf("accepted content %s", raw)
	return nil
}

// checkSending: what is sent has the new model, asks for usage where it should,
// names no hand-over field, and is otherwise the same member for member.
func checkSending(t *testing.T, r *Request, document []byte) {
	var s Splices
	SetModel(&s, r, "new")
	AskUsage(&s, r)
	StripHandover(&s, r)
	sent := spliced(&s, r.Body)
	if !json.Valid(sent) || len(sent) != s.Length(r.Body) {
		t.Fatalf("would send %q, length %d", sent, s.Length(r.Body))
	}
	asks := r.Stream && (r.kind == KindChat || r.kind == KindText)
	var want []pair
	hasModel, hasOptions := false, false
	for _, p := range pairsOf(t, document) {
		switch {
		case p.key == "model":
			p.value, hasModel = `"new"`, true
		case p.key == "stream_options" && asks:
			p.value, hasOptions = "usage", true
		case p.key == "vllm_xargs":
			p.value = "xargs"
		case isRouterField([]byte(p.key)):
			continue
		}
		want = append(want, p)
	}
	if !hasModel {
		want = append(want, pair{"model", `"new"`})
	}
	if asks && !hasOptions {
		want = append(want, pair{"stream_options", "usage"})
	}
	got := pairsOf(t, sent)
	for i, p := range got {
		switch {
		case p.key == "stream_options" && asks:
			var options map[string]any
			decode(t, p.value, &options)
			if options["include_usage"] != true {
				t.Fatalf("would ask for usage with %s", p.value)
			}
			got[i].value = "usage"
		case p.key == "vllm_xargs":
			for _, inner := range pairsIfObject(t, p.value) {
				if isRouterField([]byte(inner.key)) {
					t.Fatalf("would send %s", p.value)
				}
			}
			got[i].value = "xargs"
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("would send %q\nwant %q", got, want)
	}
}

// FuzzForm: a form that we accept, mime/multipart reads to the same model, once.
func FuzzForm(f *testing.F) {
	addTranscripts(f, func(rt Route, contentType, body string) {
		if rt.Kind == KindForm && !IsJSON([]byte(contentType)) {
			f.Add(contentType, []byte(body))
		}
	})
	rt := routeAt(f, "/v1/audio/transcriptions")
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		if IsJSON([]byte(contentType)) {
			return
		}
		var r Request
		if refused := r.Parse(rt, body, []byte(contentType)); refused != nil {
			if refused.Status != 400 || !utf8.Valid(refused.AppendJSON(nil)) || !json.Valid(refused.AppendJSON(nil)) {
				t.Fatalf("refused with %+v", refused)
			}
			return
		}
		checkForm(t, &r, rt, contentType, body)
	})
}

// checkForm: mime/multipart finds one model, ours, in what came and in what is sent,
// and every field that it finds there is a text here or written as a name. What is
// sent is read here as what came was, and sent on as it is.
func checkForm(t *testing.T, r *Request, rt Route, contentType string, body []byte) {
	var heads, s Splices
	RewriteHeads(&heads, r)
	RewriteHeads(&s, r)
	SetModel(&s, r, "new")
	as := strings.TrimSuffix(strings.TrimPrefix(string(r.AppendContentType(nil)), "Content-Type: "), "\r\n")
	sent := spliced(&heads, body)
	for _, form := range []struct{ contentType, body, model string }{
		{contentType, string(body), string(r.Model)}, {as, string(sent), string(r.Model)}, {as, string(spliced(&s, body)), "new"},
	} {
		if models := formModels(t, form.contentType, []byte(form.body)); !slices.Equal(models, []string{form.model}) {
			t.Fatalf("models %q, want %q\n%q", models, form.model, form.body)
		}
	}
	texts := map[string]bool{}
	for _, x := range r.Content.Texts {
		texts[string(x.AppendTo(nil, body))] = true
	}
	for _, f := range formFields(t, as, sent) {
		if f.value != "" && f.name != "model" && !f.file && !isName([]byte(f.value)) && !texts[f.value] {
			t.Fatalf("the field %q with %q is no text here", f.name, f.value)
		}
	}
	var again Request
	if refused := again.Parse(rt, sent, []byte(as)); refused != nil {
		t.Fatalf("what is sent is refused: %s\n%q", refused.Message, sent)
	}
	if len(again.form.heads) != 0 || len(again.Content.Texts) != len(r.Content.Texts) || string(again.AppendContentType(nil)) != string(r.AppendContentType(nil)) {
		t.Fatalf("%d heads of what is sent would be sent otherwise; %d texts of %d\n%q", len(again.form.heads), len(again.Content.Texts), len(r.Content.Texts), sent)
	}
}

type sentField struct {
	name, value string
	file        bool
}

// formFields is what mime/multipart finds in a form.
func formFields(t *testing.T, contentType string, body []byte) (fields []sentField) {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		t.Fatal(err)
	}
	reader := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for {
		part, err := reader.NextRawPart()
		if err != nil {
			return fields
		}
		var value bytes.Buffer
		if _, err := value.ReadFrom(part); err != nil {
			t.Fatal(err)
		}
		_, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
		if err != nil {
			t.Fatal(err)
		}
		_, file := params["filename"]
		fields = append(fields, sentField{params["name"], value.String(), file})
	}
}

// formModels is what mime/multipart finds in the fields named model.
func formModels(t *testing.T, contentType string, body []byte) (models []string) {
	for _, f := range formFields(t, contentType, body) {
		if f.name == "model" {
			models = append(models, f.value)
		}
	}
	return models
}
