// Bodies of any bytes, read side by side with the standard library.
package proxy

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
func addTranscripts(f *testing.F, add func(rt route, contentType, body string)) {
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
	addTranscripts(f, func(rt route, _, body string) {
		if rt.kind != kindForm {
			f.Add(uint8(slices.Index(routes, rt)), []byte(body))
		}
	})
	f.Add(uint8(0), []byte(`{"model":"m","nvex\u0074":{"backend_instance_id":"a","router_config_override":{"router_temperature":1}},"messages":[{"role":"user","content":"hi"}]}`))
	f.Add(uint8(0), []byte(`{"model":"m","router_config_override":{"router_temperature":1,"router_temperature":2},"messages":[{"role":"user","content":"hi"}]}`))
	f.Fuzz(func(t *testing.T, path uint8, body []byte) {
		rt := routes[int(path)%len(routes)]
		var r request
		before := bytes.Clone(body)
		refused := r.parse(rt, body, []byte("application/json"))
		if !bytes.Equal(before, body) {
			t.Fatal("parse changed the body")
		}
		document := bytes.TrimPrefix(body, []byte(byteOrderMark))
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

func checkRefusal(t *testing.T, r *request, refused *apiError, document []byte) {
	if refused.status != 400 || refused.kind != "invalid_request_error" || refused.message == "" {
		t.Fatalf("refused with %+v", refused)
	}
	if len(refused.message) > 2000 || !utf8.ValidString(refused.message) || strings.ContainsFunc(refused.message, func(c rune) bool { return c < ' ' }) {
		t.Fatalf("message %q", refused.message)
	}
	if r.fault.at < 0 || r.fault.at > len(r.body) {
		t.Fatalf("fault at %d of %d", r.fault.at, len(r.body))
	}
	if r.fault.kind != faultSyntax || !json.Valid(document) || !utf8.Valid(document) {
		return
	}
	if surrogateEscape.Match(document) || bytes.TrimLeft(document, " \t\r\n")[0] != '{' || depthOf(document) > maxDepth {
		return
	}
	t.Fatalf("refused without a reason: %s\n%q", refused.message, document)
}

// checkReading compares what was read with encoding/json, which folds the case
// of keys and takes the last of two: hence by way of pairsOf.
func checkReading(t *testing.T, r *request, document []byte) {
	seen := uniquePairs(t, string(bytes.TrimSpace(document)))
	var model *string
	var stream *bool
	decode(t, seen["model"], &model)
	decode(t, seen["stream"], &stream)
	if model == nil && len(r.model) > 0 || model != nil && *model != string(r.model) {
		t.Fatalf("model %q, want %s", r.model, seen["model"])
	}
	if r.stream != (stream != nil && *stream) {
		t.Fatalf("stream %v, want %s", r.stream, seen["stream"])
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
	if r.usage.include != (options.Include != nil && *options.Include) || r.usage.continuous != (options.Continuous != nil && *options.Continuous) {
		t.Fatalf("usage %+v, want %s", r.usage, seen["stream_options"])
	}
	for key, at := range map[string]span{
		"model": r.modelAt, "stream": r.streamAt, "stream_options": r.usage.at, "tools": r.fields.tools, "user": r.fields.user,
		"n": r.fields.n, "max_tokens": r.fields.maxTokens, "max_completion_tokens": r.fields.maxCompletion, "max_output_tokens": r.fields.maxOutput, "temperature": r.fields.temperature, "seed": r.fields.seed,
		"response_format": r.fields.responseFormat, "cache_salt": r.fields.cacheSalt,
	} {
		if got := string(at.of(r.body)); got != seen[key] && !(got == "" && seen[key] == "null") {
			t.Fatalf("%s is %q, want %q", key, got, seen[key])
		}
	}
	checkChoice(t, r, seen)
}

// checkChoice: what a request chooses by is found wherever it stands, and names
// nothing twice.
func checkChoice(t *testing.T, r *request, seen map[string]string) {
	nvext := uniquePairs(t, seen["nvext"])
	for name, got := range map[string]struct {
		want string
		at   span
	}{
		"nvext":                  {seen["nvext"], r.choice.nvext},
		"backend_instance_id":    {nvext["backend_instance_id"], r.choice.backend},
		"prefill_worker_id":      {nvext["prefill_worker_id"], r.choice.prefill},
		"decode_worker_id":       {nvext["decode_worker_id"], r.choice.decode},
		"nvext's weights":        {nvext["router_config_override"], r.choice.within.whole},
		"router_config_override": {seen["router_config_override"], r.choice.weights.whole},
	} {
		if at := string(got.at.of(r.body)); at != got.want {
			t.Fatalf("%s is %q, want %q", name, at, got.want)
		}
	}
	for raw, at := range map[string]weightsAt{nvext["router_config_override"]: r.choice.within, seen["router_config_override"]: r.choice.weights} {
		weights := uniquePairs(t, raw)
		if string(at.credit.of(r.body)) != weights["overlap_score_credit"] || string(at.scale.of(r.body)) != weights["prefill_load_scale"] ||
			string(at.temperature.of(r.body)) != weights["router_temperature"] {
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
func checkCase(t *testing.T, r *request, document []byte) {
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
	if !r.messagesAt.given() {
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
func checkTexts(t *testing.T, r *request, document []byte) {
	found := map[string]bool{}
	last := int32(0)
	for _, x := range r.texts {
		var want string
		if x.bare { // a number
			want = string(x.at.of(r.body))
		} else {
			decode(t, string(x.at.of(r.body)), &want)
		}
		if got := string(x.appendTo(nil, r.body)); got != want || got == "" {
			t.Fatalf("text %q, want %q", got, want)
		}
		if x.at.start < last {
			t.Fatalf("text at %d behind %d", x.at.start, last)
		}
		last = x.at.end
		found[strconv.Itoa(int(x.message))+":"+want] = true
	}
	if !r.messagesAt.given() {
		return
	}
	var messages []json.RawMessage
	decode(t, string(r.messagesAt.of(r.body)), &messages)
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
func checkSending(t *testing.T, r *request, document []byte) {
	var s splices
	r.setModel(&s, "new")
	r.askUsage(&s)
	r.stripHandover(&s)
	sent := spliced(&s, r.body)
	if !json.Valid(sent) || len(sent) != s.length(r.body) {
		t.Fatalf("would send %q, length %d", sent, s.length(r.body))
	}
	asks := r.stream && (r.kind == kindChat || r.kind == kindText)
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
		case handoverMember([]byte(p.key)):
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
				if handoverMember([]byte(inner.key)) {
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
	addTranscripts(f, func(rt route, contentType, body string) {
		if rt.kind == kindForm && !isJSON([]byte(contentType)) {
			f.Add(contentType, []byte(body))
		}
	})
	rt := routeAt(f, "/v1/audio/transcriptions")
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		if isJSON([]byte(contentType)) {
			return
		}
		var r request
		if refused := r.parse(rt, body, []byte(contentType)); refused != nil {
			if refused.status != 400 || !utf8.Valid(refused.appendJSON(nil)) || !json.Valid(refused.appendJSON(nil)) {
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
func checkForm(t *testing.T, r *request, rt route, contentType string, body []byte) {
	var heads, s splices
	r.rewriteHeads(&heads)
	r.rewriteHeads(&s)
	r.setModel(&s, "new")
	as := strings.TrimSuffix(strings.TrimPrefix(string(r.appendContentType(nil)), "Content-Type: "), "\r\n")
	sent := spliced(&heads, body)
	for _, form := range []struct{ contentType, body, model string }{
		{contentType, string(body), string(r.model)}, {as, string(sent), string(r.model)}, {as, string(spliced(&s, body)), "new"},
	} {
		if models := formModels(t, form.contentType, []byte(form.body)); !slices.Equal(models, []string{form.model}) {
			t.Fatalf("models %q, want %q\n%q", models, form.model, form.body)
		}
	}
	texts := map[string]bool{}
	for _, x := range r.texts {
		texts[string(x.appendTo(nil, body))] = true
	}
	for _, f := range formFields(t, as, sent) {
		if f.value != "" && f.name != "model" && !f.file && !isName([]byte(f.value)) && !texts[f.value] {
			t.Fatalf("the field %q with %q is no text here", f.name, f.value)
		}
	}
	var again request
	if refused := again.parse(rt, sent, []byte(as)); refused != nil {
		t.Fatalf("what is sent is refused: %s\n%q", refused.message, sent)
	}
	if len(again.heads) != 0 || len(again.texts) != len(r.texts) || string(again.appendContentType(nil)) != string(r.appendContentType(nil)) {
		t.Fatalf("%d heads of what is sent would be sent otherwise; %d texts of %d\n%q", len(again.heads), len(again.texts), len(r.texts), sent)
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
