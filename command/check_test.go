// What `kvasir check` warns of.

package command

import (
	"strings"
	"testing"

	"kvasir/config"
)

// TestExposed: what stands open to a network is warned of, and nothing on loopback.
func TestExposed(t *testing.T) {
	open := &config.Config{Server: config.Server{Listen: "0.0.0.0:8080", Admin: ":9090"}, Workers: []config.Worker{{URL: "http://10.0.0.5:8000"}}}
	if got := strings.Join(exposed(open), "\n"); strings.Count(got, "\n") != 3 {
		t.Errorf("an open configuration is warned of by\n%s", got)
	}
	shut := &config.Config{Server: config.Server{Listen: "127.0.0.1:8080", Admin: "unix:/run/a.sock"}, Workers: []config.Worker{{URL: "http://localhost:8000"}, {URL: "https://a:1"}}}
	if got := exposed(shut); len(got) != 0 {
		t.Errorf("a configuration on loopback is warned of: %v", got)
	}
}
