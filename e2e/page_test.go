// The page in a real Chromium: before a real Kvasir with simulated workers, and before a listener of
// the same shapes with what these have not.

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

func TestPage(t *testing.T) {
	t.Parallel()
	part(t, "chromium")
	a, b := simulate(t), simulate(t)
	b.mayFail = true // the script kills it
	k := serve(t, `
server: {drain: {delay: 0s, timeout: 5s}}
workers:
  - {name: a, url: "`+a.url()+`"}
  - {name: b, url: "`+b.url()+`"}
decisions:
  - {name: maths, when: {category: [math, physics]}, system_prompt: You are a mathematician.}
  - {name: code, when: {category: computer science}}
`, "sim")
	dir := t.TempDir()
	for name, key := range map[string]string{"admin": "the-admin-key", "alice": "alices-key"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(key), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	locked := serve(t, `
server: {drain: {delay: 0s, timeout: 5s}, admin_key_file: "`+filepath.Join(dir, "admin")+`"}
keys: [{name: alice, key_file: "`+filepath.Join(dir, "alice")+`"}]
workers: [{name: a, url: "`+a.url()+`"}]
`)
	inChromium(t, "../scripts/page/check.mjs", nil, "KVASIR_LOCKED="+locked.admin,
		"KVASIR_API="+k.url, "KVASIR_ADMIN="+k.admin, "KVASIR_CONFIG="+k.file, "KVASIR_DOOMED="+strconv.Itoa(b.cmd.Process.Pid))
}

func TestPageOfOddThings(t *testing.T) {
	t.Parallel()
	part(t, "chromium")
	inChromium(t, "../scripts/page/odd.mjs", nil)
}

// inChromium runs a script of scripts/page.
func inChromium(t *testing.T, script string, args []string, env ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{script}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = 5 * time.Second // for a process of the script's own that outlives it
	checks(t, cmd, func(t *testing.T, verdict, why string) { t.Errorf("%s %s", verdict, why) })
}
