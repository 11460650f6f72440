// Tests of the planner of a running Kvasir.

package command

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"kvasir/config/certtest"
)

// report is what /plan says, as far as tests look at it.
type report struct {
	Mode, State, Problem string
	Apart                bool
	Wanted, Up, Applied  struct{ Workers, Prefill, Decode int }
	Replay               *struct{ Workers int }
	Forecast             struct{ Rate float64 }
	Measured             struct{ Requests int }
	Predicted            struct{ Share float64 }
	Played               int
	Pace                 float64
}

func (p *process) plan(t *testing.T) (r report) {
	t.Helper()
	code, body := get(plainClient, p.admin+"/plan")
	if code != http.StatusOK {
		t.Fatalf("/plan: %d %s", code, body)
	}
	do(t, json.Unmarshal([]byte(body), &r))
	return r
}

// Requests that are served become a plan: how many came, how long they were, and what that takes.
func TestPlanOfServe(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "kvasir.yaml")
	do(t, os.WriteFile(config, []byte(`
simulate: [{name: a, model: sim, speedup: 20}, {name: b, model: sim, speedup: 20}]
models: [{name: sim, default: true}]
cache: {store: off}
planner: {mode: advise, interval: 1s, window: 30s, start_time: 1s, down_after: 1s}
`), 0o600))
	p := run(t, nil, append(anywhere, "--config", config, "--log-format", "json")...)
	p.until("a first plan", func() bool { return p.plan(t).State == "as many as are needed" || p.plan(t).Wanted.Workers > 0 })
	ask := func(n int, stream bool) {
		body := fmt.Sprintf(`{"model":"sim","max_tokens":8,"stream":%v,"messages":[{"role":"user","content":"%s Number %d"}]}`, stream, strings.Repeat("What do these prompts have in common? ", 200), n)
		reply, err := http.Post(p.api+"/v1/chat/completions", "application/json", strings.NewReader(body))
		do(t, err)
		_, err = io.Copy(io.Discard, reply.Body)
		do(t, err)
		do(t, reply.Body.Close())
		if reply.StatusCode != http.StatusOK {
			t.Fatalf("status %d", reply.StatusCode)
		}
	}
	n := 0
	p.until("a plan of what came", func() bool {
		ask(n, n%2 == 0)
		n++
		r := p.plan(t)
		return r.Forecast.Rate > 0 && r.Replay != nil && r.Played > 0 && r.Measured.Requests > 0
	})
	r := p.plan(t)
	if r.Mode != "advise" || r.Apart || r.Up.Workers != 2 || r.Problem != "" || r.Pace <= 0 || r.Played > n {
		t.Errorf("after %d requests: %+v", n, r)
	}
	_, metrics := get(plainClient, p.admin+"/metrics")
	for _, want := range []string{
		`(?m)^kvasir_planner_workers\{kind="up",role="both"\} 2$`, `(?m)^kvasir_planner_workers\{kind="wanted",role="both"\} [12]$`,
		`(?m)^kvasir_planner_workers\{kind="replay",role="both"\} \d+$`, `(?m)^kvasir_planner_arrivals_per_second\{by="window"\} [\d.]+$`,
		`(?m)^kvasir_planner_predicted_share 1$`, `(?m)^kvasir_planner_decisions_total\{decision="waits"\} \d+$`, `(?m)^kvasir_planner_failures_total\{what="plan"\} 0$`,
	} {
		if !regexp.MustCompile(want).MatchString(metrics) {
			t.Errorf("no match for %s in /metrics", want)
		}
	}
	// One is enough for the little that came.
	p.until("the log says that one is wanted", func() bool {
		return strings.Contains(p.log.String(), `"message":"another number of workers is wanted"`)
	})
	if !strings.Contains(p.log.String(), `"wanted":"1","before":"2","up":"2"`) {
		t.Error("the log does not say what is wanted")
	}
	if code, body := get(plainClient, p.api+"/plan"); code == http.StatusOK {
		t.Errorf("clients see the plan: %s", body)
	}
}

// The command is run until it succeeds, with what is wanted in its environment.
func TestPlanIsApplied(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config, said := filepath.Join(dir, "kvasir.yaml"), filepath.Join(dir, "said")
	do(t, os.WriteFile(config, []byte(`
simulate: [{name: a, model: sim, role: prefill}, {name: b, model: sim, role: decode}]
models: [{name: sim, default: true}]
planner:
  mode: apply
  interval: 1s
  min_workers: 2
  command: [sh, -c, 'echo scaling; test -e `+said+` || { touch `+said+`; exit 3; }; echo $KVASIR_PLAN_WORKERS $KVASIR_PLAN_PREFILL $KVASIR_PLAN_DECODE >> `+said+`']
`), 0o600))
	p := run(t, nil, append(anywhere, "--config", config, "--log-format", "json")...)
	p.until("the command", func() bool { return p.plan(t).Applied.Prefill == 2 })
	if r := p.plan(t); r.Mode != "apply" || !r.Apart || r.Wanted.Prefill != 2 || r.Wanted.Decode != 2 || r.Wanted.Workers != 0 || r.Problem != "" {
		t.Errorf("%+v", r)
	}
	if b, err := os.ReadFile(said); err != nil || string(b) != "0 2 2\n" {
		t.Errorf("the command was told %q: %v", b, err)
	}
	for _, want := range []string{`planner.command did not succeed; it is run again with the next plan`, `exit status 3`, `"output":"scaling"`, `planner.command was run`} {
		p.until(want, func() bool { return strings.Contains(p.log.String(), want) })
	}
	if _, metrics := get(plainClient, p.admin+"/metrics"); !strings.Contains(metrics, `kvasir_planner_failures_total{what="command"} 1`) {
		t.Error("the failure of the command is not counted")
	}
}

func TestNoPlan(t *testing.T) {
	t.Parallel()
	p := run(t, nil, anywhere...)
	if code, body := get(plainClient, p.admin+"/plan"); code != http.StatusNotFound || !strings.Contains(body, "set planner.mode to advise") {
		t.Errorf("%d %s", code, body)
	}
	if _, metrics := get(plainClient, p.admin+"/metrics"); strings.Contains(metrics, "kvasir_planner") {
		t.Error("metrics of a planner that there is not")
	}
}

// KEDA is answered over TLS by what is planned, and the listener ends with the program.
func TestKEDAOfServe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config, cert, key := filepath.Join(dir, "kvasir.yaml"), filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	certtest.Write(t, cert, key, "kvasir-keda", nil)
	do(t, os.WriteFile(config, []byte(`
simulate: [{name: a, model: sim}]
models: [{name: sim, default: true}]
cache: {store: off}
planner: {interval: 1s, min_workers: 3, keda: {listen: "127.0.0.1:0", tls: {cert: tls.crt, key: tls.key}}}
`), 0o600))
	p := run(t, nil, append(anywhere, "--config", config, "--log-format", "json")...)
	said := regexp.MustCompile(`"listen":"([^"]+)","tls":true[^\n]*"answering KEDA"`)
	p.until("the listener", func() bool { return said.MatchString(p.log.String()) })
	authority, err := credentials.NewClientTLSFromFile(cert, "")
	do(t, err)
	conn, err := grpc.NewClient(said.FindStringSubmatch(p.log.String())[1], grpc.WithTransportCredentials(authority))
	do(t, err)
	t.Cleanup(func() { do(t, conn.Close()) })
	// A GetMetricsRequest without metadata, and its answer: kvasir-workers-both, 3 as an integer and as a double.
	const want = "\n\x20\n\x13kvasir-workers-both\x10\x03\x19\x00\x00\x00\x00\x00\x00\x08@"
	var got []byte
	p.until("an answer", func() bool {
		err = conn.Invoke(t.Context(), "/externalscaler.ExternalScaler/GetMetrics", []byte{}, &got, grpc.ForceCodec(rawCodec{}))
		return err == nil
	})
	if string(got) != want {
		t.Errorf("it answers %q, want %q", got, want)
	}
}

// rawCodec sends and takes bytes as they are.
type rawCodec struct{}

func (rawCodec) Name() string                  { return "proto" }
func (rawCodec) Marshal(v any) ([]byte, error) { return v.([]byte), nil }
func (rawCodec) Unmarshal(b []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), b...)
	return nil
}
