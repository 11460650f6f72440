// Attacks on an API without keys on loopback, by web pages in a browser of its own host.

package e2e

import (
	"net/http"
	"strings"
	"testing"
)

const pageForm = "--x\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nsim\r\n--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nx\r\n--x--\r\n"

// TestHostilePageAsksTheKeylessAPI: what a page may send across sites without a preflight was answered, and cost tokens.
func TestHostilePageAsksTheKeylessAPI(t *testing.T) {
	t.Parallel()
	k := serve(t, "server: {drain: {delay: 0s}, cors: [\"https://app.example\"]}\nsimulate: [{name: only}]\n", "sim")
	for _, tc := range []struct {
		name, path, body string
		status           int
		headers          []string
	}{
		{"plain text of a page", "/v1/chat/completions", chat(false, 4), 403, []string{"Origin: https://evil.example", "Content-Type: text/plain"}},
		{"a page's form", "/v1/chat/completions", chat(false, 4), 403, []string{"Origin: https://evil.example", "Content-Type: application/x-www-form-urlencoded"}},
		{"a page's multipart", "/v1/chat/completions", chat(false, 4), 403, []string{"Origin: https://evil.example", "Content-Type: multipart/form-data; boundary=x"}},
		{"a page's blob without a type", "/v1/chat/completions", chat(false, 4), 403, []string{"Origin: https://evil.example"}},
		{"a sandboxed page", "/v1/chat/completions", chat(false, 4), 403, []string{"Origin: null", "Content-Type: text/plain"}},
		{"a parameter that names JSON", "/v1/chat/completions", chat(false, 4), 403, []string{"Origin: https://evil.example", "Content-Type: text/plain; application/json"}},
		{"a browser that hides its page", "/v1/chat/completions", chat(false, 4), 415, []string{"Content-Type: text/plain"}},
		{"no type and no page", "/v1/chat/completions", chat(false, 4), 415, nil},
		{"other routes, too", "/tokenize", `{"model":"sim","prompt":"x"}`, 415, []string{"Content-Type: text/plain"}},
		{"a page of an address", "/v1/chat/completions", chat(false, 4), 403, []string{"Origin: http://203.0.113.7", "Content-Type: text/plain"}},
		{"a page of an address in brackets", "/v1/chat/completions", chat(false, 4), 403, []string{"Origin: http://[2001:db8::7]:80", "Content-Type: text/plain"}},
		{"a page of this machine's address", "/v1/chat/completions", chat(false, 4), 0, []string{"Origin: http://127.0.0.1:3000", "Content-Type: text/plain"}},
		{"a page's form on a form route", "/v1/audio/transcriptions", pageForm, 403, []string{"Origin: https://evil.example", "Content-Type: multipart/form-data; boundary=x"}},
		{"a sandboxed page on a form route", "/v1/images/edits", pageForm, 403, []string{"Origin: null", "Content-Type: multipart/form-data; boundary=x"}},

		{"a client", "/v1/chat/completions", chat(false, 4), 200, []string{"Content-Type: application/json"}},
		{"a client that names a charset", "/v1/chat/completions", chat(false, 4), 200, []string{"Content-Type: Application/JSON; charset=utf-8"}},
		{"a page that cors allows", "/v1/chat/completions", chat(false, 4), 0, []string{"Origin: https://app.example", "Content-Type: text/plain"}},
		{"a page of this host", "/v1/chat/completions", chat(false, 4), 0, []string{"Origin: http://localhost:3000", "Content-Type: text/plain"}},
		{"a client's form", "/v1/audio/transcriptions", pageForm, 404, []string{"Content-Type: multipart/form-data; boundary=x"}}, // the engine has no such route
	} {
		got := askAs(t, http.MethodPost, k.url+tc.path, "", tc.body, tc.headers...)
		if tc.status == 0 && (got.status == 403 || got.status == 415) || tc.status != 0 && got.status != tc.status { // 0: what the worker makes of it
			t.Errorf("%s: %d %s, want %d", tc.name, got.status, got.body, tc.status)
		}
		if tc.status == 403 || tc.status == 415 {
			wantError(t, got, tc.status)
		}
	}
}

// TestHostileNameOfTheKeylessAPI: a page whose own name leads to this host (DNS rebinding) asked and read as if it were
// a client.
func TestHostileNameOfTheKeylessAPI(t *testing.T) {
	t.Parallel()
	k := serve(t, "server: {drain: {delay: 0s}, hosts: [api.example.com]}\nsimulate: [{name: only}]\n", "sim")
	ask := func(host string) (chatStatus, listStatus int) {
		return askAs(t, http.MethodPost, k.url+"/v1/chat/completions", host, chat(false, 4), "Content-Type: application/json", "Origin: http://"+host).status,
			askAs(t, http.MethodGet, k.url+"/v1/models", host, "").status
	}
	for _, host := range []string{"evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.nip.io", "api.example.com.evil.example"} {
		if c, l := ask(host); c != http.StatusForbidden || l != http.StatusForbidden {
			t.Errorf("as %s: %d and %d", host, c, l)
		}
	}
	for _, host := range []string{"localhost:8080", "127.0.0.1", "[::1]:8080", "192.168.1.7", "kvasir", "host.docker.internal", "box.local", "API.example.com:443"} {
		if c, l := ask(host); c != http.StatusOK || l != http.StatusOK {
			t.Errorf("as %s: %d and %d", host, c, l)
		}
	}
	keyed := serve(t, "server: {drain: {delay: 0s}}\nsimulate: [{name: only}]\nkeys: [{name: alice, sha256: "+frugalSum+"}]\n")
	eventually(t, patience, "the worker is up", func() bool {
		got := askAs(t, http.MethodPost, keyed.url+"/v1/chat/completions", "api.example.com", chat(false, 4), "Content-Type: application/json", frugalKey)
		return got.status == http.StatusOK // no page has the key
	})
	if got := askAs(t, http.MethodGet, k.url+"/v1/models", "evil.example", ""); !strings.Contains(string(got.body), "server.hosts") {
		t.Errorf("the refusal does not say what to do: %s", got.body)
	}
}
