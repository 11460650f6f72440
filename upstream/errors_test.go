// Errors of engines, made up and recorded.

package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"kvasir/openai/answer/answertest"
)

func TestWorkerError(t *testing.T) {
	long := strings.Repeat("wörd ", 1000)
	for _, c := range []struct {
		name   string
		status int
		ct     string
		body   string
		want   string // "": byte for byte; else the JSON
	}{
		{"openai", 400, "application/json", `{"error":{"message":"m","type":"BadRequestError","param":null,"code":400}}`, ""},
		{"openai with a path stays as it is", 500, "", ` {"error": {"message":"in /usr/lib/x.py"}} `, ""},
		{"anthropic", 529, "", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, ""},
		{"llama.cpp", 503, "", `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, ""},

		{"flat", 400, "application/json", `{"object":"error","message":"too long","type":"BadRequestError","param":"input","code":400}`,
			`{"error":{"message":"too long","type":"invalid_request_error","param":"input","code":null}}`},
		{"flat with a word for a code", 400, "", `{"object":"error","message":"m","param":null,"code":"context_length_exceeded"}`,
			`{"error":{"message":"m","type":"invalid_request_error","param":null,"code":"context_length_exceeded"}}`},
		{"dynamo", 404, "", `{"message":"Model not found","type":"Not Found","code":404}`,
			`{"error":{"message":"Model not found","type":"invalid_request_error","param":null,"code":null}}`},
		{"dynamo, all busy", 529, "", `{"message":"Service temporarily unavailable","type":"Overloaded","code":529}`,
			`{"error":{"message":"Service temporarily unavailable","type":"server_error","param":null,"code":"upstream_error"}}`},
		{"fastapi", 404, "", `{"detail":"Not Found"}`,
			`{"error":{"message":"Not Found","type":"invalid_request_error","param":null,"code":null}}`},
		{"fastapi validation", 422, "", `{"detail":[{"loc":["body","messages",0,"role"],"msg":"Field required","type":"missing","input":"secret"},{"loc":["body"],"msg":"bad","type":"x"}]}`,
			`{"error":{"message":"messages.0.role: Field required; bad","type":"invalid_request_error","param":"messages.0.role","code":null}}`},
		{"fastapi object", 403, "", `{"detail":{"message":"no","code":7}}`,
			`{"error":{"message":"no","type":"invalid_request_error","param":null,"code":null}}`},
		{"error is a string", 401, "", `{"error":"Unauthorized"}`,
			`{"error":{"message":"Unauthorized","type":"authentication_error","param":null,"code":null}}`},
		{"error without a message", 429, "", `{"error":{"type":"rate","code":"slow_down"}}`,
			`{"error":{"message":"internal error of the worker; Kvasir's log has the beginning of what it said","type":"rate_limit_error","param":null,"code":"slow_down"}}`},
		{"empty error", 500, "", `{"error":{}}`,
			`{"error":{"message":"the worker answered with status 500 and no message","type":"server_error","param":null,"code":null}}`},
		{"error is null", 500, "", `{"error":null,"message":"m"}`,
			`{"error":{"message":"m","type":"server_error","param":null,"code":null}}`},
		{"unknown object", 500, "", `{"b":1,"a":{"c":"d"}}`,
			`{"error":{"message":"internal error of the worker; Kvasir's log has the beginning of what it said","type":"server_error","param":null,"code":null}}`},
		{"empty object", 500, "", `{}`,
			`{"error":{"message":"the worker answered with status 500 and no message","type":"server_error","param":null,"code":null}}`},
		{"json string", 500, "", `"it \"broke\""`,
			`{"error":{"message":"internal error of the worker; Kvasir's log has the beginning of what it said","type":"server_error","param":null,"code":null}}`},
		{"broken json", 500, "application/json", `{"error":{"message":"m"`,
			`{"error":{"message":"internal error of the worker; Kvasir's log has the beginning of what it said","type":"server_error","param":null,"code":null}}`},
		{"text", 503, "text/plain", "no worker\r\n  is\tfree\n",
			`{"error":{"message":"internal error of the worker; Kvasir's log has the beginning of what it said","type":"server_error","param":null,"code":"upstream_error"}}`},
		{"html", 502, "text/html; charset=utf-8", "<html><head><title>502 Bad Gateway</title><style>a{}</style></head>\n<body><h1>502 &amp; so on</h1><hr>nginx<script>x()</script></body></html>",
			`{"error":{"message":"internal error of the worker; Kvasir's log has the beginning of what it said","type":"server_error","param":null,"code":"upstream_error"}}`},
		{"html without saying so", 500, "", "<p>oops",
			`{"error":{"message":"internal error of the worker; Kvasir's log has the beginning of what it said","type":"server_error","param":null,"code":null}}`},
		{"nothing", 504, "", " \n",
			`{"error":{"message":"the worker answered with status 504 and no message","type":"server_error","param":null,"code":"upstream_error"}}`},
		{"invalid utf-8", 400, "", "{\"error\":{\"message\":\"a\xffb\"}}",
			"{\"error\":{\"message\":\"a\ufffdb\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":null}}"},
		{"control characters", 400, "", `{"message":"a\u0000b\u001b[31m\nc"}`,
			`{"error":{"message":"a b [31m\nc","type":"invalid_request_error","param":null,"code":null}}`},
		{"long text", 500, "text/plain", long,
			`{"error":{"message":"internal error of the worker; Kvasir's log has the beginning of what it said","type":"server_error","param":null,"code":null}}`},
		{"long message", 500, "", `{"message":"` + long + `"}`,
			`{"error":{"message":"` + long[:1997] + `...","type":"server_error","param":null,"code":null}}`},
		{"traceback", 500, "text/plain", "Traceback (most recent call last):\n  File \"/usr/lib/python3/x.py\", line 12, in f\n    secret()\nKeyError: 'a'\n",
			`{"error":{"message":"internal error of the worker; Kvasir's log has the beginning of what it said","type":"server_error","param":null,"code":null}}`},
	} {
		e := readError(c.status, []byte(c.body))
		if c.want == "" {
			if e != nil {
				t.Errorf("%s: %s", c.name, e.AppendJSON(nil))
			}
			continue
		}
		if e == nil {
			t.Errorf("%s: passes as it is", c.name)
		} else if got := string(e.AppendJSON(nil)); got != c.want || e.Status != c.status {
			t.Errorf("%s: %d\n got %s\nwant %s", c.name, e.Status, got, c.want)
		}
	}
}

func TestLacksRoute(t *testing.T) {
	for body, want := range map[string]bool{
		``: true, `404 page not found`: true, `<html>404</html>`: true, `{"detail":"Not Found"}`: true, `{"error":"Not Found"}`: true,
		`{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}`: true,
		`{}`: false, `{"detail":[{"msg":"Not Found"}]}`: false, `{"error":{"message":"The model x does not exist."}}`: false,
		`{"message":"Model not found"}`: false, `Traceback (most recent call last):`: false, `{"detail":`: false,
	} {
		if lacksRoute(404, []byte(body)) != want || lacksRoute(500, []byte(body)) {
			t.Errorf("%q: not %v", body, want)
		}
	}
}

func TestCleanMessage(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"failed in /usr/lib/python3/dist-packages/x.py:12", "failed in [path]"},
		{`File "/opt/vllm/core.py", line 12, in step: boom`, ``},
		{`at "/opt/vllm/core.py", line 12, in step: boom`, `at "[path]: boom`},
		{"see ('/home/user/model/config.json')", "see ('[path]')"},
		{"file:///var/log/x", "[path]"},
		{"~/models/llama is missing", "[path] is missing"},
		{"../secret/x", "[path]"},
		{`C:\Users\me\AppData\x.py: no`, `[path]: no`},
		{`in C:\Program Files\vLLM\core.py:3`, `in [path]`},
		{`\\share\dir\x.txt`, `[path]`},
		{"sglang/srt/server.py:99: bad", "[path]: bad"},
		{"<site-packages>/vllm/x.py", "[path]"},
		{"server.py:99 says no", "[path] says no"},
		{`server.py, line 9, in main`, `[path]`},
		{"/a/b and /c/d,/e/f", "[path] and [path],[path]"},

		{"POST /v1/chat/completions is not there", "POST /v1/chat/completions is not there"},
		{"see https://platform.openai.com/docs/guides", "see https://platform.openai.com/docs/guides"},
		{"The model `meta-llama/Llama-3.1-8B` does not exist", "The model `meta-llama/Llama-3.1-8B` does not exist"},
		{"Only 'application/json' and/or text", "Only 'application/json' and/or text"},
		{"Expecting value: line 1 column 1 (char 0)", "Expecting value: line 1 column 1 (char 0)"},
		{"5 tokens/s, 1/2 of 3 / 4", "5 tokens/s, 1/2 of 3 / 4"},
		{"1 error:\n  {'loc': ('body', 9)}", "1 error:\n  {'loc': ('body', 9)}"},
		{"does not match \\\\d+", "does not match \\\\d+"},
	} {
		if got := cleanMessage(c.in, 2000); got != c.want {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
	}
}

func TestCutText(t *testing.T) {
	for limit, want := range map[int]string{3: "...", 4: "a...", 5: "a...", 6: "aö...", 7: "aööö"} {
		if got := cutText("aööö", limit); got != want {
			t.Errorf("limit %d: %q, want %q", limit, got, want)
		}
	}
}

// Every error of every engine comes out in OpenAI's shape, without a path.
func TestWorkerErrorOfEveryTranscript(t *testing.T) {
	reshaped := map[string]string{}
	for _, tr := range answertest.Transcripts(t) {
		reply, err := http.ReadResponse(newReader(tr.Response), nil)
		if err != nil {
			t.Fatal(err)
		}
		if reply.StatusCode < 400 {
			continue
		}
		body := tr.Body
		if e := readError(reply.StatusCode, tr.Body); e != nil {
			body = e.AppendJSON(nil)
			reshaped[tr.Name] = fmt.Sprintf("%d %s: %s", e.Status, e.Type, e.Message)
		}
		checkOpenAI(t, tr.Name, body)
	}
	for name, want := range map[string]string{
		"vllm/err_bad_utf8":               "400 invalid_request_error: There was an error parsing the body",
		"vllm/err_route_not_found":        "404 invalid_request_error: Not Found",
		"vllm/err_embeddings_unsupported": "404 invalid_request_error: Not Found",
		"vllm/err_method_not_allowed":     "405 invalid_request_error: Method Not Allowed",
		"vllm/auth_missing":               "401 authentication_error: Unauthorized",
		"vllm/auth_models_missing":        "401 authentication_error: Unauthorized",
		"vllm/auth_wrong":                 "401 authentication_error: Unauthorized",
		"sglang/err_bad_temperature":      "400 invalid_request_error: temperature must be a non-negative finite number, got -1.0.",
		"sglang/context_plus_max_tokens":  "400 invalid_request_error: max_completion_tokens is too large: 5000.This model supports at most 4096 completion tokens.",
		"sglang/err_context_too_long":     "400 invalid_request_error: The input (9030 tokens) is longer than the model's context length (4096 tokens).",
		"sglang/err_empty_messages":       "400 invalid_request_error: Messages cannot be empty.",
		"sglang/err_malformed_json": "400 invalid_request_error: 1 validation error:\n  {'type': 'json_invalid', 'loc': ('body', 9), 'msg': 'JSON decode error', " +
			"'input': {}, 'ctx': {'error': 'unexpected end of data'}}",
		"sglang/err_missing_messages": "400 invalid_request_error: 1 validation error:\n  {'type': 'missing', 'loc': ('body', 'messages'), 'msg': 'Field required', " +
			"'input': {'model': 'tiny-qwen', 'tool_choice': 'none'}}",
		"sglang/err_wrong_content_type": "400 invalid_request_error: 1 validation error:\n  {'loc': ['header', 'content-type'], 'msg': \"Unsupported Media Type: Only 'application/json' is allowed\", 'type': 'value_error'} " +
			"[{'loc': ['header', 'content-type'], 'msg': \"Unsupported Media Type: Only 'application/json' is allowed\", 'type': 'value_error'}]",
		"sglang/err_method_not_allowed": "405 invalid_request_error: Method Not Allowed",
		"sglang/err_route_not_found":    "404 invalid_request_error: Not Found",
		"sglang/get_load":               "404 invalid_request_error: Not Found",
		"sglang/version":                "404 invalid_request_error: Not Found",
	} {
		if reshaped[name] != want {
			t.Errorf("%s:\n got %q\nwant %q", name, reshaped[name], want)
		}
		delete(reshaped, name)
	}
	for name, got := range reshaped {
		t.Errorf("%s was put into another shape: %q", name, got)
	}
}

// checkOpenAI checks the shape that OpenAI's clients read.
func checkOpenAI(t *testing.T, name string, body []byte) {
	t.Helper()
	var shape struct {
		Error *struct {
			Message string  `json:"message"`
			Type    string  `json:"type"`
			Param   *string `json:"param"`
			Code    any     `json:"code"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &shape); err != nil || shape.Error == nil || shape.Error.Message == "" {
		t.Errorf("%s: %s: %v", name, body, err)
	}
	for _, trace := range []string{".py", "site-packages", "File "} {
		if bytes.Contains(body, []byte(trace)) {
			t.Errorf("%s shows %q: %s", name, trace, body)
		}
	}
}

// FuzzWorkerError: whatever a worker sends, a client gets valid JSON in
// OpenAI's shape of bounded length.
func FuzzWorkerError(f *testing.F) {
	f.Add([]byte(`{"detail":[{"loc":["body",1],"msg":"m"}]}`), uint16(422))
	f.Fuzz(func(t *testing.T, body []byte, status uint16) {
		e := readError(400+int(status%200), body)
		out := body
		if e != nil {
			if len(e.Message) > maxErrorMessage || !utf8.ValidString(e.Message) || len(e.Param) > 200 {
				t.Fatalf("%q: message %q", body, e.Message)
			}
			out = e.AppendJSON(nil)
		}
		var shape struct {
			Error struct{ Message any }
		}
		if !utf8.Valid(out) || json.Unmarshal(out, &shape) != nil || shape.Error.Message == nil {
			t.Fatalf("%q gives %q", body, out)
		}
	})
}
