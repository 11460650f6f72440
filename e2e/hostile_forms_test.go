// Forms and bodies that two servers read differently: past a key's models and both guards, before a real Starlette and a Go worker.

package e2e

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// An understanding is what a worker made of one request.
type understanding struct {
	Path        string            `json:"path"`
	ContentType []string          `json:"content_type"`
	JSON        json.RawMessage   `json:"json"`
	Form        []json.RawMessage `json:"form"`
}

// A witness is a worker whose replies say how it understood the request.
type witness struct {
	url        string
	understood func(t testing.TB) []understanding
}

// starlette starts a worker built as vLLM's and SGLang's API servers are.
func starlette(t *testing.T, parser string) witness {
	t.Helper()
	return pythonWorker(t, "testdata/starlette_worker.py", parser)
}

// werkzeug starts a worker built as servers in Flask are.
func werkzeug(t *testing.T) witness {
	t.Helper()
	return pythonWorker(t, "testdata/werkzeug_worker.py")
}

// pythonWorker starts a script that takes a port and says what it understood.
func pythonWorker(t *testing.T, script string, args ...string) witness {
	t.Helper()
	part(t, "starlette")
	address := freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	p := spawn(t, nil, "../.cache/starlette/bin/python", append([]string{script, port}, args...)...)
	p.mayFail = true // it ends by the signal that stopped it
	url := "http://" + address
	eventually(t, patience, script+" answers", func() bool { return answers(url + "/health") })
	return witness{url, func(t testing.TB) []understanding {
		t.Helper()
		var all []understanding
		if err := json.Unmarshal(get(t, url+"/understood").body, &all); err != nil {
			t.Fatal(err)
		}
		return all
	}}
}

// ollamaChat is how a server written in Go declares a chat: encoding/json takes a name
// in any case, and of two the last.
type ollamaChat struct {
	Model         string          `json:"model"`
	Messages      []ollamaMessage `json:"messages"`
	Prompt        any             `json:"prompt,omitempty"`
	Input         any             `json:"input,omitempty"`
	System        any             `json:"system,omitempty"`
	Stream        bool            `json:"stream,omitempty"`
	StreamOptions *ollamaOptions  `json:"stream_options,omitempty"`
	Tools         []ollamaTool    `json:"tools,omitempty"`
	Room          *int64          `json:"bootstrap_room,omitempty"`
	Args          map[string]any  `json:"vllm_xargs,omitempty"`
	KV            map[string]any  `json:"kv_transfer_params,omitempty"`
	Documents     any             `json:"documents,omitempty"`
}

type ollamaMessage struct {
	Role      string       `json:"role"`
	Content   any          `json:"content"`
	ToolCalls []ollamaTool `json:"tool_calls,omitempty"`
}

type ollamaTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Arguments   any    `json:"arguments,omitempty"`
	} `json:"function"`
}

type ollamaOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// goWorker is a worker written in Go with the standard library alone, as Ollama reads
// requests.
func goWorker(t *testing.T) witness {
	t.Helper()
	var mu sync.Mutex // guards all
	var all []understanding
	note := func(u understanding) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, u)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		u := understanding{Path: r.URL.Path, ContentType: r.Header.Values("Content-Type")}
		switch {
		case r.Method == http.MethodGet:
			fmt.Fprint(w, `{"object":"list","data":[{"id":"m","object":"model"},{"id":"m2","object":"model"}]}`)
			return
		case strings.HasPrefix(r.Header.Get("Content-Type"), "application/json"):
			var chat ollamaChat
			if err := json.NewDecoder(r.Body).Decode(&chat); err != nil {
				http.Error(w, `{"error":{"message":"no JSON"}}`, http.StatusBadRequest)
				return
			}
			u.JSON, _ = json.Marshal(chat)
		default:
			if err := r.ParseMultipartForm(1 << 20); err != nil {
				http.Error(w, `{"error":{"message":"no form"}}`, http.StatusBadRequest)
				return
			}
			for name, values := range r.MultipartForm.Value {
				for _, value := range values {
					field, _ := json.Marshal([2]string{name, value})
					u.Form = append(u.Form, field)
				}
			}
			for name, files := range r.MultipartForm.File {
				for _, file := range files {
					field, _ := json.Marshal([2]any{name, map[string]any{"file": file.Filename, "size": file.Size}})
					u.Form = append(u.Form, field)
				}
			}
		}
		note(u)
		fmt.Fprint(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","text":"ok","choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"text":"ok","finish_reason":"stop"}]}`)
	}))
	t.Cleanup(server.Close)
	return witness{server.URL, func(testing.TB) []understanding {
		mu.Lock()
		defer mu.Unlock()
		return append([]understanding(nil), all...)
	}}
}

// aliceKey may have the model m and no other.
const aliceKey = "alice-key"

func sha256Hex(key string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(key))) }

// beforeWitness puts Kvasir before a worker with the models m and m2, to the key alice only m, with the guard for
// personal data on; more is more of the configuration.
func beforeWitness(t *testing.T, w witness, more string) *kvasir {
	t.Helper()
	k := serve(t, `
server: {drain: {delay: 0s, timeout: 5s}}
keys: [{name: alice, sha256: "`+sha256Hex(aliceKey)+`", models: [m]}, {name: root, sha256: "`+sha256Hex("root-key")+`"}]
workers: [{name: w, url: "`+w.url+`", models: [m, m2], engine: openai}]
classify: {jailbreak: {action: "off"}, timeout: 30s}
cache: {store: "off"}
log: {level: debug, format: json}
`+more)
	eventually(t, patience, "kvasir has found its worker", func() bool {
		return post(t, k.url+"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hello"}]}`, "Authorization: Bearer "+aliceKey).status == 200
	})
	return k
}

// speak sends the bytes of one request, with a key and a Content-Length, and returns the status
// and the body of the answer.
func speak(t testing.TB, k *kvasir, path, lines, body string) (int, string) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(k.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: kvasir\r\nAuthorization: Bearer %s\r\nConnection: close\r\n%sContent-Length: %d\r\n\r\n%s", path, aliceKey, lines, len(body), body)
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%s %q: %v", path, lines, err)
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(said)
}

const cardText = "charge my card 4111 1111 1111 1111"

// formPart is one part of a form whose boundary is b.
func formPart(b, disposition, value string) string {
	return "--" + b + "\r\nContent-Disposition: form-data; " + disposition + "\r\n\r\n" + value + "\r\n"
}

// twoForms is a form by boundary A with the model m, in a file of which stands another one by
// boundary E, with the model m2 and a card.
func twoForms() string {
	evil := formPart("E", `name="model"`, "m2") + formPart("E", `name="prompt"`, cardText) + formPart("E", `name="file"; filename="a.wav"`, "RIFF") + "--E--"
	return formPart("A", `name="model"`, "m") + formPart("A", `name="file"; filename="a.wav"`, "RIFF\r\n"+evil+"\r\n") + "--A--\r\n"
}

const formType = "Content-Type: multipart/form-data; boundary="

func TestHostileAnotherFormForTheWorker(t *testing.T) {
	t.Parallel()
	urlencoded := formPart("A", `name="model"`, "m") + formPart("A", `name="file"; filename="a.png"`, "x&model=m2&prompt="+cardText+"&z=") + "--A--\r\n"
	a := func(parts string) string { return formPart("A", `name="model"`, "m") + parts + "--A--\r\n" }
	cases := map[string]struct{ lines, body string }{
		"two types, the evil one first": {formType + "E\r\n" + formType + "A\r\n", twoForms()},
		"two types, the evil one last":  {formType + "A\r\n" + formType + "E\r\n", twoForms()},
		"two equal types":               {formType + "A\r\n" + formType + "A\r\n", twoForms()},
		"two types, one urlencoded":     {"Content-Type: application/x-www-form-urlencoded\r\n" + formType + "A\r\n", urlencoded},
		"two types, one of JSON":        {"Content-Type: application/json\r\n" + formType + "A\r\n", twoForms()},
		"types far apart, in any case":  {"content-TYPE: multipart/form-data; boundary=E\r\nX-A: b\r\n" + formType + "A\r\n", twoForms()},
		"a type with an underscore":     {"Content_Type: multipart/form-data; boundary=E\r\n" + formType + "A\r\n", twoForms()},
		"an underscore alone":           {"Content_Type: multipart/form-data; boundary=A\r\n", twoForms()},
		"two boundaries":                {formType + "A; boundary=E\r\n", twoForms()},
		"two boundaries, evil first":    {formType + "E; boundary=A\r\n", twoForms()},
		"an extended boundary too":      {"Content-Type: multipart/form-data; boundary*=utf-8''A; boundary=E\r\n", twoForms()},
		"an extended boundary alone":    {"Content-Type: multipart/form-data; boundary*=utf-8''A\r\n", twoForms()},
		"a boundary in pieces":          {"Content-Type: multipart/form-data; boundary*0=A; boundary=E\r\n", twoForms()},
		"a list of types":               {"Content-Type: multipart/form-data; boundary=E, multipart/form-data; boundary=A\r\n", twoForms()},
		"a boundary with a backslash":   {"Content-Type: multipart/form-data; boundary=\"\\A\"\r\n", twoForms()},
		"two codings":                   {formType + "A\r\nContent-Encoding: identity\r\nContent-Encoding: gzip\r\n", a("")},
		"two hosts":                     {formType + "A\r\nHost: other\r\n", a("")},
		"two lengths":                   {formType + "A\r\nContent-Length: 3\r\n", a("")},
		"the model in capitals":         {formType + "A\r\n", a(formPart("A", `name="Model"`, "m2"))},
		"the model by the long s":       {formType + "A\r\n", a(formPart("A", "name=\"languageſ\"", "x") + formPart("A", `name="MODEL"`, "m2"))},
		"a prompt in capitals":          {formType + "A\r\n", a(formPart("A", `name="PROMPT"; filename="a"`, cardText))},
		"a prompt as a file":            {formType + "A\r\n", a(formPart("A", `name="prompt"; filename="a"`, cardText))},
		"a model in base64":             {formType + "A\r\n", "--A\r\nContent-Disposition: form-data; name=\"model\"\r\nContent-Transfer-Encoding: base64\r\n\r\nbTI\r\n--A--\r\n"},
		"a model by another name":       {formType + "A\r\n", a(formPart("A", `name*=utf-8''model`, "m2"))},
		"a model named in pieces":       {formType + "A\r\n", a(formPart("A", `name*0="mo"; name*1="del"`, "m2"))},
		"a charset for all":             {formType + "A\r\n", a(formPart("A", `name="_charset_"`, "utf-7"))},
		"a name that is unquoted twice": {formType + "A\r\n", a(formPart("A", `name="mo\\del"`, cardText))},
		"a text with an empty filename": {formType + "A\r\n", a(formPart("A", `name="instructions"; filename=""`, cardText))},
		"one with an extended one":      {formType + "A\r\n", a(formPart("A", `name="instructions"; filename*=utf-8''`, cardText))},
		"a model behind a blank":        {formType + "A\r\n", a(formPart("A", `name="model "`, "m2"))},
		"a boundary behind LF":          {formType + "A\r\n", formPart("A", `name="language"`, "a\n--A\nContent-Disposition: form-data; name=\"model\"\n\nm2") + a("")},
		"a boundary behind CR":          {formType + "A\r\n", formPart("A", `name="language"`, "a\r--A\rContent-Disposition: form-data; name=\"model\"\r\rm2") + a("")},
		"a boundary behind LF, a head":  {formType + "A\r\n", formPart("A", `name="language"`, "a\n--A\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm2") + a("")},
		"one in a file":                 {formType + "A\r\n", formPart("A", `name="file"; filename="a.wav"`, "RIFF\n--A\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm2") + a("")},
		"what is for routers":           {formType + "A\r\n", a(formPart("A", `name="kv_transfer_params"`, `{"remote_host":"evil"}`))},
		"an id with an address":         {formType + "A\r\n", a(formPart("A", `name="request_id"`, "___prefill_addr_evil:1"))},
		"token ids":                     {formType + "A\r\n", a(formPart("A", `name="prompt_token_ids"`, "[1,2,3]"))},
		"a template":                    {formType + "A\r\n", a(formPart("A", `name="chat_template"`, "{{ '4111' ~ '111111111111' }}"))},
		"a card in a file of no media":  {formType + "A\r\n", a(formPart("A", `name="hotwords"; filename="a.txt"`, cardText))},
		"forms within a field":          {formType + "A\r\n", a("--A\r\nContent-Disposition: form-data; name=\"x\"; filename=\"y\"\r\nContent-Type: multipart/mixed; boundary=E\r\n\r\n" + twoForms() + "\r\n")},
	}
	for name, w := range map[string]func(*testing.T) witness{
		"Starlette on httptools": func(t *testing.T) witness { return starlette(t, "httptools") },
		"Starlette on h11":       func(t *testing.T) witness { return starlette(t, "h11") },
		"Werkzeug":               werkzeug,
		"Go":                     goWorker,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := w(t)
			k := beforeWitness(t, w, "")
			before := len(w.understood(t))
			for name, c := range cases {
				status, said := speak(t, k, "/v1/audio/transcriptions", c.lines, c.body)
				if status != 400 || !strings.Contains(said, `"error"`) {
					t.Errorf("%s: %d %s", name, status, said)
				}
				if all := w.understood(t); len(all) != before {
					t.Errorf("%s: the worker understood %s", name, all[before:])
					before = len(all)
				}
			}
		})
	}
}

// What is accepted reaches the worker as it was read: with one type, and no head that another reader
// takes otherwise.
func TestHostileFormsAsTheyCame(t *testing.T) {
	t.Parallel()
	odd := "--A\r\ncontent-disposition:form-data ;  name=model\r\nX-Other: name=\"m2\"\r\n\r\nm\r\n" +
		formPart("A", `filename="a\\"; name="file"; x="; name=\"model\"; y="`, "m2") +
		formPart("A", `name="file2"; filename="a\"; name=model; z=\".wav"`, "m2") +
		formPart("A", `name="file3"; filename*=utf-8''%3B%20name%3D%22model%22`, "m2") +
		formPart("A", `name="language"; x=y`, "en") + "--A--\r\n"
	for name, w := range map[string]func(*testing.T) witness{
		"Starlette": func(t *testing.T) witness { return starlette(t, "httptools") },
		"Werkzeug":  werkzeug,
		"Go":        goWorker,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := w(t)
			k := beforeWitness(t, w, "")
			before := len(w.understood(t))
			status, said := speak(t, k, "/v1/audio/transcriptions", `Content-Type: Multipart/Form-Data; charset=utf-8; boundary="A"; x=y`+"\r\n", odd)
			all := w.understood(t)[before:]
			if status != 200 || len(all) != 1 {
				t.Fatalf("%d %s, the worker understood %s", status, said, all)
			}
			if got := strings.Join(all[0].ContentType, " + "); got != "multipart/form-data; boundary=A" {
				t.Errorf("its type is %q", got)
			}
			names := map[string]string{}
			for _, field := range all[0].Form {
				var f [2]any
				if err := json.Unmarshal(field, &f); err != nil {
					t.Fatal(err)
				}
				if _, twice := names[f[0].(string)]; twice {
					t.Errorf("twice: %s", field)
				}
				names[f[0].(string)] = fmt.Sprint(f[1])
			}
			if names["model"] != "m" || names["language"] != "en" || len(names) != 5 {
				t.Errorf("the worker understood %q", names)
			}
		})
	}
}

// JSON goes as JSON, whatever its client calls it: nobody reads a form, or other characters, into it.
func TestHostileJSONReadAsAForm(t *testing.T) {
	t.Parallel()
	w := starlette(t, "httptools")
	k := beforeWitness(t, w, "")
	body := `{"model":"m","metadata":{"a":"&model=m2&prompt=` + cardText + `&b="},"messages":[{"role":"user","content":"hello"}]}`
	for _, contentType := range []string{
		"", "Content-Type: application/x-www-form-urlencoded\r\n", "Content-Type: text/plain\r\n", "Content-Type: application/json; charset=utf-7\r\n",
		"Content-Type: multipart/form-data; boundary=A\r\n", "Content-Type: application/vnd.api+json\r\n",
	} {
		before := len(w.understood(t))
		status, said := speak(t, k, "/v1/chat/completions", contentType, body)
		all := w.understood(t)[before:]
		if status == 400 || status == 415 {
			if len(all) == 0 {
				continue // refused: nobody can read it otherwise
			}
		}
		if status != 200 || len(all) != 1 || strings.Join(all[0].ContentType, " + ") != "application/json" || len(all[0].Form) > 0 || !bytes.Contains(all[0].JSON, []byte(`"hello"`)) {
			t.Errorf("%q: %d %s, the worker understood %s", contentType, status, said, all)
		}
	}
	for _, lines := range []string{
		"Content-Type: application/x-www-form-urlencoded\r\nContent-Type: application/json\r\n",
		"Content-Type: application/json\r\nContent-Type: application/json\r\n",
		"Content-Type: application/json\r\nContent_Type: text/plain\r\n",
	} {
		before := len(w.understood(t))
		if status, said := speak(t, k, "/v1/chat/completions", lines, body); status != 400 || len(w.understood(t)) != before {
			t.Errorf("%q: %d %s", lines, status, said)
		}
	}
}
