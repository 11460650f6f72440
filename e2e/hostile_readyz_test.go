// What /readyz tells strangers.

package e2e

import (
	"net/http"
	"os"
	"strings"
	"testing"
)

// TestHostileReadyzTellsNames: the public /readyz named workers, what is wrong with them, and values of configurations
// that were not taken.
func TestHostileReadyzTellsNames(t *testing.T) {
	t.Parallel()
	const config = "server: {drain: {delay: 0s}}\nsimulate: [{name: only}]\n" +
		"workers: [{name: inner-sanctum, url: \"http://127.0.0.1:1\", models: [m]}]\n" +
		"keys: [{name: alice, sha256: " + frugalSum + "}]\n"
	k := serve(t, config)
	bad := strings.Replace(config, "drain: {delay: 0s}", "drain: {delay: hunter2-secret}", 1)
	if err := os.WriteFile(k.file, []byte(bad), 0o600); err != nil {
		t.Fatal(err)
	}
	reasons := []string{"inner-sanctum", "hunter2-secret"}
	eventually(t, patience, "the admin listener names both reasons", func() bool {
		said := string(get(t, k.admin+"/readyz").body)
		return strings.Contains(said, reasons[0]) && strings.Contains(said, reasons[1])
	})
	for name, headers := range map[string][]string{"without a key": nil, "with another's key": {"Authorization: Bearer mallory"}} {
		for _, path := range []string{"/readyz", "/health", "/livez"} {
			got := askAs(t, http.MethodGet, k.url+path, "", "", headers...)
			for _, secret := range append(reasons, "127.0.0.1:1", k.file, "delay") {
				if strings.Contains(string(got.body), secret) {
					t.Errorf("%s %s tells of %q: %s", name, path, secret, got.body)
				}
			}
			if path == "/readyz" && (got.status != http.StatusOK || !strings.HasPrefix(string(got.body), `{"status":"degraded","workers":{"up":1,"all":2},"problems":`)) {
				t.Errorf("%s %s: %d %s", name, path, got.status, got.body)
			}
		}
	}
	if got := askAs(t, http.MethodGet, k.url+"/readyz", "", "", frugalKey); !strings.Contains(string(got.body), reasons[0]) {
		t.Errorf("with a key: %s", got.body)
	}
}
