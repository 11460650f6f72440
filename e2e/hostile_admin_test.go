// Attacks on the admin listener by web pages: names that lead to it (DNS rebinding), and requests across sites.

package e2e

import (
	"net/http"
	"strings"
	"testing"
)

// askAs sends a request as a browser does for some page. Host goes into the head's Host; "": the listener's address.
func askAs(t *testing.T, method, url, host, body string, headers ...string) reply {
	t.Helper()
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		request.Header.Set(name, value)
	}
	return do(t, request)
}

const adminHeader = "X-Kvasir-Admin: 1"

func serveWithAdminHosts(t *testing.T) *kvasir {
	t.Helper()
	return serve(t, "server: {drain: {delay: 0s}, admin_hosts: [kvasir.monitoring.svc]}\nsimulate: [{name: only}]\n", "sim")
}

// TestHostileAdminByAnotherName: a page whose name leads to the listener's address read metrics, the cache, profiles
// and reasons, dropped the cache and reloaded.
func TestHostileAdminByAnotherName(t *testing.T) {
	t.Parallel()
	k := serveWithAdminHosts(t)
	port := k.admin[strings.LastIndexByte(k.admin, ':'):]
	for _, host := range []string{"evil.example", "evil.example" + port, "localhost.evil.example" + port, "127.0.0.1.nip.io" + port, "kvasir.monitoring.svc.evil.example", "rebind", "EVIL.example.", "evil.local"} {
		for _, route := range []string{"GET /metrics", "GET /cache", "GET /debug/pprof/", "GET /debug/gpu", "GET /readyz", "POST /reload", "DELETE /cache?all=true", "POST /explain", "GET /nothing"} {
			method, path, _ := strings.Cut(route, " ")
			got := askAs(t, method, k.admin+path, host, "", adminHeader)
			if got.status != http.StatusForbidden || !strings.Contains(string(got.body), "admin_hosts") {
				t.Errorf("%s as %s: %d %s", route, host, got.status, tail(string(got.body), 200))
			}
		}
	}
	for _, host := range []string{"", "localhost" + port, "LOCALHOST.", "kvasir.localhost", "127.0.0.1", "127.8.8.8:1", "[::1]" + port, "10.1.2.3:9090", "kvasir.monitoring.svc:9090", "Kvasir.Monitoring.SVC"} {
		if got := askAs(t, http.MethodGet, k.admin+"/metrics", host, ""); got.status != http.StatusOK {
			t.Errorf("GET /metrics as %q: %d %s", host, got.status, got.body)
		}
	}
	for _, path := range []string{"/livez", "/health"} { // probes come by any name, and hear nothing
		if got := askAs(t, http.MethodGet, k.admin+path, "evil.example", ""); got.status != http.StatusOK || string(got.body) != `{"status":"ok"}` {
			t.Errorf("GET %s: %d %s", path, got.status, got.body)
		}
	}
}

// TestHostileAdminAcrossSites: a page elsewhere reloaded by a POST of plain text, which needs no preflight.
func TestHostileAdminAcrossSites(t *testing.T) {
	t.Parallel()
	k := serveWithAdminHosts(t)
	changes := []string{"POST /reload", "DELETE /cache?all=true", "DELETE /cache/0000000000000001"}
	for name, headers := range map[string][]string{
		"a form's POST":                      {"Origin: https://evil.example", "Content-Type: text/plain"},
		"a sandboxed page":                   {"Origin: null", "Content-Type: text/plain"},
		"with the header, which it cannot":   {"Origin: https://evil.example", adminHeader},
		"another port of this host":          {"Origin: http://127.0.0.1:1", adminHeader},
		"without Origin":                     {"Sec-Fetch-Site: cross-site", adminHeader},
		"a page of the same site, no header": {"Sec-Fetch-Site: same-origin"},
		"of the same site, other origin":     {"Sec-Fetch-Site: same-site", adminHeader},
		"nothing of a browser, no header":    nil,
		"an empty header":                    {"X-Kvasir-Admin: "},
	} {
		for _, route := range changes {
			method, path, _ := strings.Cut(route, " ")
			if got := askAs(t, method, k.admin+path, "", "", headers...); got.status != http.StatusForbidden {
				t.Errorf("%s, %s: %d %s", name, route, got.status, got.body)
			}
		}
	}
	for _, headers := range [][]string{{"Origin: https://evil.example"}, {"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"}} {
		for _, path := range []string{"/metrics", "/debug/pprof/profile?seconds=1", "/cache", "/readyz"} {
			if got := askAs(t, http.MethodGet, k.admin+path, "", "", headers...); got.status != http.StatusForbidden {
				t.Errorf("GET %s with %v: %d", path, headers, got.status)
			}
		}
	}
	if n := strings.Count(k.output.String(), "configuration reloaded"); n != 0 {
		t.Errorf("the configuration was reloaded %d times", n)
	}

	for name, headers := range map[string][]string{
		"curl":                      {adminHeader},
		"a page of its own":         {adminHeader, "Origin: " + k.admin, "Sec-Fetch-Site: same-origin"},
		"behind a front's own name": {adminHeader, "Origin: https://kvasir.monitoring.svc"},
	} {
		if got := askAs(t, http.MethodPost, k.admin+"/reload", "", "", headers...); got.status != http.StatusOK {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if got := askAs(t, http.MethodGet, k.admin+"/readyz", "", "", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"); got.status != http.StatusOK {
		t.Errorf("a link from elsewhere: %d", got.status)
	}
	refused := askAs(t, http.MethodPost, k.admin+"/reload", "", "")
	wantError(t, refused, http.StatusForbidden)
	if !strings.Contains(string(refused.body), adminHeader) {
		t.Errorf("the refusal does not say what to send: %s", refused.body)
	}
}
