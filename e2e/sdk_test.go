// The official SDKs for Python and Node, unmodified, through Kvasir to simulated workers.

package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A target is what an SDK is pointed at.
type target struct {
	baseURL string
	model   string
	workers []string // their URLs, for /metrics
	faults  bool     // the workers take x-sim-fault
}

// twoWorkers is the configuration of the SDK checks.
func twoWorkers(a, b *worker) string {
	return `
server: {drain: {delay: 0s, timeout: 5s}}
workers:
  - {name: a, url: "` + a.url() + `"}
  - {name: b, url: "` + b.url() + `"}
routing: {policy: round_robin}
log: {level: debug, format: json}
`
}

func simTarget(t *testing.T) target {
	a, b := simulate(t), simulate(t)
	k := serve(t, twoWorkers(a, b), "sim")
	return target{k.url + "/v1", "sim", []string{a.url(), b.url()}, true}
}

func TestPythonSDK(t *testing.T) {
	t.Parallel()
	part(t, "python-sdk")
	python(t, simTarget(t))
}

func TestNodeSDK(t *testing.T) {
	t.Parallel()
	part(t, "node-sdk")
	node(t, simTarget(t))
}

// Every route of the README beside chats, with the SDKs that ask it by default, against what `make run`
// serves: two simulated workers, one of them for prefill.
func TestPythonClients(t *testing.T) {
	t.Parallel()
	part(t, "python-clients")
	checkSDK(t, builtInTarget(t), "../.cache/sdk-clients/bin/python", "../scripts/sdk/clients/check.py")
}

func TestNodeClients(t *testing.T) {
	t.Parallel()
	part(t, "node-clients")
	checkSDK(t, builtInTarget(t), "node", "../scripts/sdk/clients/check.mjs")
}

func builtInTarget(t *testing.T) target {
	return target{baseURL: asMakeRun(t).url + "/v1", model: "sim"}
}

func python(t *testing.T, to target) {
	checkSDK(t, to, "../.cache/sdk-python/bin/python", "../scripts/sdk/python/check.py")
}

func node(t *testing.T, to target) {
	checkSDK(t, to, "node", "../scripts/sdk/node/check.mjs")
}

// part skips the test where scripts/parts.sh could not have this real part; it has said so itself,
// or failed, when every part is required.
func part(t *testing.T, name string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join("../.cache/parts", name)); err == nil {
		return
	}
	if os.Getenv("KVASIR_REAL") == "required" {
		t.Fatalf("the real part %s is missing: scripts/parts.sh %s", name, name)
	}
	t.Skipf("SKIP real part: %s: scripts/parts.sh %s brings it", name, name)
}

// checkSDK runs a script of scripts/sdk and makes a subtest of each line that it prints.
func checkSDK(t *testing.T, to target, program, script string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, script)
	cmd.Env = append(os.Environ(), "KVASIR_BASE_URL="+to.baseURL, "MODEL="+to.model, "WORKER_URL="+strings.Join(to.workers, ","))
	if to.faults {
		cmd.Env = append(cmd.Env, "FAULTS=1")
	}
	checks(t, cmd, func(t *testing.T, verdict, why string) {
		if verdict != "SKIP" || to.faults { // with faults there is nothing to skip
			t.Errorf("%s %s", verdict, why)
			return
		}
		t.Skip(why)
	})
}

// checks runs a program and makes a subtest of each line that it prints, "ok NAME" or another verdict
// with "NAME: WHY". otherwise judges all that is not ok.
func checks(t *testing.T, cmd *exec.Cmd, otherwise func(t *testing.T, verdict, why string)) {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()

	passed := 0
	for line := range strings.Lines(string(stdout)) {
		verdict, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, why, _ := strings.Cut(strings.TrimSpace(rest), ": ")
		t.Run(name, func(t *testing.T) {
			if verdict == "ok" {
				passed++
				return
			}
			otherwise(t, verdict, why)
		})
	}
	if err != nil || passed == 0 {
		t.Errorf("%s: %v, %d checks passed\n%s", cmd, err, passed, tail(stderr.String(), 6000))
	}
}
