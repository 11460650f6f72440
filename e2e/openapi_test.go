// /openapi.json of both listeners: linted by redocly, and held against real replies by prism, which
// stands between the client and Kvasir and answers with an error where either breaks the document.

package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// openapiTool is a program of scripts/openapi.
func openapiTool(name string) string { return "../scripts/openapi/node_modules/.bin/" + name }

// described stores the document of a listener.
func described(t *testing.T, listener string) string {
	t.Helper()
	r := get(t, listener+"/openapi.json")
	if r.status != 200 || !json.Valid(r.body) {
		t.Fatalf("%d %s", r.status, r.body)
	}
	file := filepath.Join(t.TempDir(), "openapi.json")
	if err := os.WriteFile(file, r.body, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// lint wants redocly to have nothing against a document.
func lint(t *testing.T, file string) {
	t.Helper()
	cmd := exec.Command(openapiTool("redocly"), "lint", "--format", "json", file)
	cmd.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "CI=true", "NO_COLOR=1")
	out, err := cmd.Output()
	var found struct {
		Totals struct{ Errors, Warnings int }
	}
	_, report, _ := strings.Cut(string(out), "{")
	if errJSON := json.Unmarshal([]byte("{"+report), &found); err != nil || errJSON != nil || found.Totals.Errors+found.Totals.Warnings > 0 {
		t.Errorf("redocly: %v %v\n%s", err, errJSON, tail(string(out), 3000))
	}
}

// validated is the address of a prism before a listener.
func validated(t *testing.T, file, listener string) string {
	t.Helper()
	_, port, _ := strings.Cut(freeAddress(t), ":")
	p := spawn(t, []string{"CI=true"}, "node", openapiTool("prism"), "proxy", "--errors", "--host", "127.0.0.1", "--port", port, file, listener)
	p.mayFail = true // it ends by SIGTERM without a word
	url := "http://127.0.0.1:" + port
	eventually(t, patience, "prism answers", func() bool { return answers(url + "/livez") })
	return url
}

// breakHealth makes a document say of /health what is not so.
func breakHealth(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var d map[string]any
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	at := d
	for _, key := range []string{"paths", "/health", "get", "responses", "200", "content", "application/json", "schema"} {
		at = at[key].(map[string]any)
	}
	at["required"] = []string{"what is never there"}
	if text, err = json.Marshal(d); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// An exchanged is one request through prism and the status that is wanted. One with bad has to be
// refused by prism itself: else nothing is compared.
type exchanged struct {
	method, path, body string
	status             int
	bad                bool
}

func (c *exchanged) check(t *testing.T, url string, headers ...string) {
	t.Helper()
	request, err := http.NewRequest(c.method, url+c.path, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	if c.body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		request.Header.Set(name, value)
	}
	r := do(t, request)
	violated := strings.Contains(string(r.body), "stoplight.io/prism") || strings.Contains(r.header.Get("Content-Type"), "problem+json")
	if violated != c.bad || !c.bad && r.status != c.status {
		t.Errorf("%s %s: %d, want %d; prism objects: %v\n%s", c.method, c.path, r.status, c.status, violated, tail(string(r.body), 1500))
	}
}

func TestOpenAPI(t *testing.T) {
	t.Parallel()
	part(t, "openapi")
	k := asMakeRun(t)
	api, admin := described(t, k.url), described(t, k.admin)
	lint(t, api)
	lint(t, admin)
	const hello = `"messages":[{"role":"user","content":"Hello"}],"max_tokens":4`
	through := validated(t, api, k.url)
	for _, c := range []exchanged{
		{"GET", "/", "", 200, false},
		{"GET", "/livez", "", 200, false},
		{"GET", "/readyz", "", 200, false},
		{"GET", "/v1/models", "", 200, false},
		{"GET", "/v1/models/sim", "", 200, false},
		{"GET", "/v1/models/nobody", "", 404, false},
		{"GET", "/openapi.json", "", 200, false},
		{"POST", "/v1/chat/completions", `{"model":"sim",` + hello + `}`, 200, false},
		{"POST", "/v1/chat/completions", `{"model":"sim",` + hello + `,"stream":true}`, 200, false},
		{"POST", "/v1/chat/completions", `{"model":"nobody",` + hello + `}`, 404, false},
		{"POST", "/v1/chat/completions", `{"model":"sim"}`, 0, true},
		{"POST", "/v1/completions", `{"model":"sim","prompt":"Hello","max_tokens":4}`, 200, false},
		{"POST", "/v1/responses", `{"model":"sim","input":"Hello","max_output_tokens":4}`, 200, false},
		{"POST", "/v1/messages", `{"model":"sim",` + hello + `}`, 200, false},
		{"POST", "/v1/messages", `{"model":"nobody",` + hello + `}`, 404, false},
		{"POST", "/v1/messages/count_tokens", `{"model":"sim",` + hello + `}`, 200, false},
		{"POST", "/v1/embeddings", `{"model":"sim","input":["a","b"]}`, 200, false},
		{"POST", "/v1/rerank", `{"model":"sim","query":"a","documents":["a","b"]}`, 200, false},
		{"POST", "/tokenize", `{"prompt":"Hello"}`, 200, false},
		{"POST", "/v1/audio/speech", `{"model":"sim","input":"Hello","voice":"a"}`, 404, false},
	} {
		c.check(t, through)
	}
	breakHealth(t, admin)
	through = validated(t, admin, k.admin)
	for _, c := range []exchanged{
		{"GET", "/health", "", 0, true}, // which shows that replies are looked at
		{"GET", "/readyz", "", 200, false},
		{"GET", "/metrics", "", 200, false},
		{"GET", "/debug/gpu", "", 200, false},
		{"GET", "/plan", "", 404, false},
		{"GET", "/cache", "", 200, false},
		{"GET", "/cache/0123456789abcdef", "", 404, false},
		{"DELETE", "/cache?all=true", "", 200, false},
		{"DELETE", "/cache", "", 400, false},
		{"POST", "/reload", "", 200, false},
		{"POST", "/explain", `{"model":"sim",` + hello + `}`, 200, false},
		{"POST", "/explain", `{"model":"nobody",` + hello + `}`, 200, false},
		{"POST", "/api/v1/classify/intent", `{"text":"What is 2+2?","options":{"return_probabilities":true}}`, 200, false},
		{"POST", "/api/v1/classify/pii", `{"text":"My card is 4111 1111 1111 1111"}`, 200, false},
		{"POST", "/api/v1/classify/security", `{"text":"Hello"}`, 200, false},
		{"POST", "/api/v1/classify/security", `{"text":""}`, 400, false},
		{"POST", "/api/v1/classify/security", `{"text":1}`, 0, true},
		{"POST", "/api/v1/similarity", `{"text1":"a cat","text2":"a dog"}`, 200, false},
	} {
		c.check(t, through, "X-Kvasir-Admin: 1")
	}
}
