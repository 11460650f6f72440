// Tests of `kvasir replay`.

package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kvasir/kvroute/replay"
)

const replayTrace = "../sim/testdata/twin_conversation.jsonl"

// replayed runs the command and returns what it writes.
func replayed(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := command(t, nil, append([]string{"replay"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// Scripts read these names; a name more or less is a change for them.
func TestReplayJSON(t *testing.T) {
	t.Parallel()
	args := []string{"--trace", replayTrace, "--workers", "4", "--speed", "3", "--policy", "round_robin", "--json"}
	out, errs, code := replayed(t, args...)
	if code != 0 || errs != "" {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if again, _, _ := replayed(t, args...); again != out {
		t.Errorf("the same command gives other bytes:\n%s", again)
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	want := []string{"e2e_ms", "imbalance", "itl_ms", "output_tokens_per_s", "per_worker", "policy", "preemptions", "requests", "reuse", "speed", "ttft_ms", "workers"}
	var names []string
	for name := range got {
		names = append(names, name)
	}
	if slices.Sort(names); !slices.Equal(names, want) {
		t.Errorf("names %v", names)
	}
	var values struct {
		Policy            string
		Workers, Requests int
		Speed             float64
		TTFT              struct{ Mean, P50, P90, P99 float64 } `json:"ttft_ms"`
		PerWorker         []struct{ Requests int }              `json:"per_worker"`
	}
	if err := json.Unmarshal([]byte(out), &values); err != nil {
		t.Fatal(err)
	}
	s := values.TTFT
	if values.Policy != "round_robin" || values.Workers != 4 || values.Speed != 3 || values.Requests != 300 || len(values.PerWorker) != 4 ||
		values.PerWorker[3].Requests != 75 || !(0 < s.P50 && s.P50 < s.P90 && s.P90 < s.P99) || s.Mean <= 0 {
		t.Errorf("values %+v", values)
	}
}

func TestReplayTable(t *testing.T) {
	t.Parallel()
	out, errs, code := replayed(t, "--trace", replayTrace, "--prefill", "2", "--decode", "1", "--policy", "kv", "--prefill-load-scale", "40", "--overlap-credit", "7")
	if code != 0 || errs != "" { // a pipe gets no progress bar
		t.Fatalf("exit code %d: %q", code, errs)
	}
	for _, want := range []string{
		`^twin_conversation\.jsonl: 300 requests in \d+\.\d s at speed 1, 3 workers, policy kv\n`,
		`\n +ms +mean +p50 +p90 +p99\n +first token( +\d+\.\d){4}\n +between tokens( +\d+\.\d){4}\n +end to end( +\d+\.\d){4}\n`,
		`\nprompt tokens cached  \d+\.\d % \(one cache without bounds: 8\.1 %\)\n`,
		`\n +0 +prefill +\d+ +\d+ +\d+\.\d % +0 +\d+ % +0\n(.*\n)* +2 +decode +300 +0 +0\.0 % +\d+ +\d+ % +0\n$`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no match for %s in\n%s", want, out)
		}
	}
}

func TestReplayTroubles(t *testing.T) {
	t.Parallel()
	bad := filepath.Join(t.TempDir(), "bad.jsonl")
	if err := os.WriteFile(bad, []byte(`{"timestamp": 0, "input_length": 10, "output_length": 1, "hash_ids": []}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"", "kvasir: --trace is missing: name the file to play\n", 2},
		{"--trace x --policy kw", `kvasir: --policy: "kw" is not kv, least_loaded, p2c, predict, random or round_robin, did you mean "kv"?`, 2},
		{"--trace x --queue on", `kvasir: --queue: "on" is not auto or off`, 2},
		{"--trace x --engine sglang", `kvasir: --engine: "sglang" is not vllm`, 2},
		{"--trace x --overlap-credit 7", "kvasir: --overlap-credit is a weight of policy kv: add --policy kv\n", 2},
		{"--trace x --policy kv --overlap-credit inf", "kvasir: --overlap-credit: +Inf is more than 1e+09\n", 2},
		{"--trace x --policy kv --prefill-load-scale NaN", "kvasir: --prefill-load-scale: NaN is less than 0\n", 2},
		{"--trace x --policy p2c --temperature 1", "kvasir: --temperature is of the choice by price, policy p2c has none: add --policy kv or predict\n", 2},
		{"--trace x --disaggregate always", "kvasir: --disaggregate is of prompts computed by other workers: add --prefill and --decode\n", 2},
		{"--trace x --kv-bandwidth 25", "kvasir: --kv-bandwidth is of prompts computed by other workers: add --prefill and --decode\n", 2},
		{"--trace x y", "kvasir: replay takes no argument \"y\"\n", 2},
		{"--trace x --workers 0", "kvasir: --workers: it takes at least 1\n", 2},
		{"--trace x --workers 3 --prefill 1 --decode 1", "kvasir: --workers beside --prefill and --decode: give one or the other\n", 2},
		{"--trace x --decode 1", "kvasir: 0 prefill and 1 decode workers: it takes both\n", 2},
		{"--trace x --speed 0", "kvasir: --speed: 0 is less than 1e-06\n", 2},
		{"--trace x --blocks 0", "kvasir: --blocks: 0 is less than 1\n", 2},
		{"--trace x --slow 0:60s-180s", `kvasir: --slow "0:60s-180s": 2 parts between colons, not 3: want a worker, a time and a factor, such as 0:60s-180s:3`, 2},
		{"--trace x --slow 0:60s:3", `kvasir: --slow "0:60s:3": "60s" is not from when to when: want`, 2},
		{"--trace x --slow a:60s-180s:3", `kvasir: --slow "a:60s-180s:3": "a" is not the number of a worker: want`, 2},
		{"--trace x --slow 0:60-180s:3", `kvasir: --slow "0:60-180s:3": "60" is not a time: want`, 2},
		{"--trace x --slow 0:60s-180:3", `kvasir: --slow "0:60s-180:3": "180" is not a time: want`, 2},
		{"--trace x --slow 0:60s-180s:x", `kvasir: --slow "0:60s-180s:x": "x" is not a number: want`, 2},
		{"--trace x --slow 0:60s-180s:1", `kvasir: --slow "0:60s-180s:1": want a factor above 1 and at most 1000, such as 0:60s-180s:3`, 2},
		{"--trace x --slow 0:60s-180s:NaN", `kvasir: --slow "0:60s-180s:NaN": want a factor above 1`, 2},
		{"--trace x --neighbour 1:30s-90s:1", `kvasir: --neighbour "1:30s-90s:1": want a share above 0 and at most 0.99, such as 1:30s-90s:0.5`, 2},
		{"--trace x --neighbour 1:30s-90s", `kvasir: --neighbour "1:30s-90s": 2 parts between colons, not 3: want a worker, a time and a share, such as 1:30s-90s:0.5`, 2},
		{"--trace x --neighbour 4:30s-90s:0.5", "kvasir: trouble of worker 4: there are workers 0 to 3\n", 2},
		{"--trace x --slow 0:90s-30s:2", "kvasir: trouble of worker 0 from 1m30s to 30s: it must begin at 0s or later and end after that\n", 2},
		{"--trace x --telemetry of", `kvasir: --telemetry: "of" is not on or off, did you mean "on"?`, 2},
		{"--trace nowhere.jsonl", "kvasir: cannot read the trace: open nowhere.jsonl: no such file or directory\n", 1},
		{"--trace " + bad, "kvasir: cannot read the trace: bad.jsonl:1: 0 hash_ids for a prompt of 10 tokens: it must have one for each 512 tokens\n", 1},
		{"--trace " + replayTrace + " --blocks 10 --policy random", "kvasir: cannot replay the request of twin_conversation.jsonl:1: cannot take a prompt of 6758 tokens: more tokens than the KV pool holds (640): give its workers more blocks\n", 1},
	} {
		out, errs, code := replayed(t, strings.Fields(c.args)...)
		if code != c.code || out != "" || !strings.HasPrefix(errs, c.want) {
			t.Errorf("%s: exit code %d, %s%s", c.args, code, out, errs)
		}
	}
}

// A hot GPU and a neighbour are told of by the judge that the proxy has; without telemetry nobody knows.
func TestReplayOfTroubles(t *testing.T) {
	t.Parallel()
	mean := func(args ...string) float64 {
		out, errs, code := replayed(t, append([]string{"--trace", replayTrace, "--workers", "4", "--speed", "1.5", "--json"}, args...)...)
		var r struct {
			TTFT struct{ Mean float64 } `json:"ttft_ms"`
		}
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
			t.Fatalf("%v: exit code %d: %v %s", args, code, err, errs)
		}
		return r.TTFT.Mean
	}
	if on, off := mean(), mean("--telemetry", "off"); on != off {
		t.Errorf("without troubles telemetry changes %v to %v", off, on)
	}
	for _, c := range []struct {
		flag, how string
		seconds   int   // until others are in trouble
		first     []int // who is in trouble then, as many places on each time
	}{
		{"--slow", "4", 10, []int{0, 2}},
		{"--slow", "4", 30, []int{0}},
		{"--neighbour", "0.75", 10, []int{0, 2}},
		{"--neighbour", "0.75", 30, []int{0}},
	} {
		var troubles []string
		for i := range 400 / c.seconds {
			for _, first := range c.first {
				troubles = append(troubles, c.flag, fmt.Sprintf("%d:%ds-%ds:%s", (first+i)%4, c.seconds*i, c.seconds*(i+1), c.how))
			}
		}
		on, off := mean(troubles...), mean(append(troubles, "--telemetry", "off")...)
		what := fmt.Sprintf("%s %s for %d of 4, others each %d s", c.flag, c.how, len(c.first), c.seconds)
		t.Logf("%s: %.0f ms without, %.0f with: %.2f x", what, off, on, off/on)
		if off/on < 1.3 {
			t.Errorf("%s: %.0f ms to the first token without telemetry, %.0f with it: %.2f x, want 1.3 x", what, off, on, off/on)
		}
	}
	out, _, _ := replayed(t, "--trace", replayTrace, "--slow", "0:60s-180s:3", "--neighbour", "1:30s-90s:0.5", "--telemetry", "off", "--policy", "p2c")
	if want := "\nworker 0 takes 3 times as long from 1m0s to 3m0s, worker 1 takes 2 times as long from 30s to 1m30s; telemetry off\n"; !strings.Contains(out, want) {
		t.Errorf("the table does not say %q:\n%s", want, out)
	}
}

// What is made up of a GPU is read by the judge as what it is.
func TestMadeUpTelemetry(t *testing.T) {
	hot, err := slowSpan("0:10s-20s:4")
	if err != nil {
		t.Fatal(err)
	}
	shared, err := neighbourSpan("1:10s-20s:0.8")
	if err != nil {
		t.Fatal(err)
	}
	m := newMadeUp([]troubleSpan{hot, shared})
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 200 {
		at := time.Duration(i) * replay.TelemetryEvery
		for worker, want := range []float64{4, 5, 1} {
			h := m.hardware(begin.Add(at), worker, i%3)
			during := at >= 10*time.Second && at < 20*time.Second
			if !during {
				want = 1
			}
			if held := at >= 20*time.Second && at < 25*time.Second; !held && math.Abs(h.Slow/want-1) > 0.03 || h.Aside {
				t.Errorf("worker %d after %v: %+v, want %v times slower", worker, at, h, want)
			}
			if (h.Why != "") != (h.Slow > 1) {
				t.Errorf("worker %d after %v: %+v", worker, at, h)
			}
		}
	}
}

// What a running Kvasir logs of its requests is a trace.
func TestReplayOfOwnLog(t *testing.T) {
	t.Parallel()
	p := run(t, nil, "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--log-format", "json")
	for _, body := range []string{
		`{"model":"sim","max_tokens":8,"messages":[{"role":"user","content":"What is a trace?"}]}`,
		`{"model":"sim","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"And what is a replay of one?"}]}`,
	} {
		reply, err := http.Post(p.api+"/v1/chat/completions", "application/json", strings.NewReader(body))
		do(t, err)
		_, err = io.Copy(io.Discard, reply.Body)
		do(t, err)
		do(t, reply.Body.Close())
		if reply.StatusCode != http.StatusOK {
			t.Fatalf("status %d", reply.StatusCode)
		}
	}
	p.until("two lines of requests", func() bool { return strings.Count(p.log.String(), `"completion_tokens":`) == 2 })
	path := filepath.Join(t.TempDir(), "kvasir.log")
	do(t, os.WriteFile(path, []byte(p.log.String()), 0o600))
	out, errs, code := replayed(t, "--trace", path, "--workers", "2")
	if code != 0 || !strings.HasPrefix(out, "kvasir.log: 2 requests in ") || !strings.Contains(out, " lines left out: no served request whose tokens were counted\n") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

// TestReplayPlot: the picture has a line of each policy in each panel, and the figures on stdout stay as they are.
func TestReplayPlot(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "out.svg")
	args := []string{"--trace", replayTrace, "--workers", "4", "--speed", "3"}
	plain, _, _ := replayed(t, args...)
	out, errs, code := replayed(t, append(args, "--plot", file, "--beside", "round_robin,kv")...)
	if code != 0 || errs != "" || out != plain {
		t.Fatalf("exit code %d: %s\n%s", code, errs, out)
	}
	svg, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, policy := range []string{"predict", "round_robin", "kv"} {
		lines := strings.Count(string(svg), fmt.Sprintf("<path class=\"p%d\"", i))
		if lines != 3 || !strings.Contains(string(svg), ">"+policy+"</text>") {
			t.Errorf("%d lines of %s", lines, policy)
		}
	}
	if strings.Contains(string(svg), "<path class=\"p3") || !strings.Contains(string(svg), "twin_conversation.jsonl at speed 3, 4 workers") {
		t.Errorf("the picture is\n%s", svg)
	}
}

// TestPlotLines: requests count in the part of the time that they came in, and are under way until they end.
func TestPlotLines(t *testing.T) {
	t.Parallel()
	trace := &replay.Trace{Requests: []replay.Request{{Arrival: 10 * time.Second}, {Arrival: 11 * time.Second}, {Arrival: 16 * time.Second}}}
	r := &replay.Result{Speed: 2, Duration: 5 * time.Second, Each: []replay.RequestResult{
		{TTFT: 100 * time.Millisecond, E2E: time.Second}, {TTFT: 300 * time.Millisecond, E2E: 2500 * time.Millisecond}, {TTFT: time.Second, E2E: 2 * time.Second},
	}}
	got := linesOf(trace, r, time.Second)
	want := [3]string{"0.5:200 1.5:NaN 2.5:NaN 3.5:1000 4.5:NaN 5.5:NaN ", "0.5:300 1.5:NaN 2.5:NaN 3.5:1000 4.5:NaN 5.5:NaN ", "0.5:1.5 1.5:1 2.5:1 3.5:1 4.5:1 5.5:0 "}
	for i, line := range got {
		text := ""
		for _, p := range line {
			text += fmt.Sprintf("%v:%v ", p.X, p.Y)
		}
		if text != want[i] {
			t.Errorf("line %d is %s, want %s", i, text, want[i])
		}
	}
}

func TestPlotFlags(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--beside kv":                             "--beside is of the picture: add --plot",
		"--plot x.svg --beside kw":                "--beside: \"kw\" is not kv, least_loaded, p2c, predict, random or round_robin, did you mean \"kv\"?",
		"--plot x.svg --beside predict":           "--beside: predict is drawn already",
		"--plot x.svg --beside kv,round_robin,kv": "--beside: kv is drawn already",
	} {
		if _, errs, code := replayed(t, append([]string{"--trace", replayTrace}, strings.Fields(args)...)...); code != 2 || !strings.HasPrefix(errs, "kvasir: "+want+"\n") {
			t.Errorf("%s: exit code %d: %s", args, code, errs)
		}
	}
	// Before anything is played.
	if out, errs, code := replayed(t, "--trace", replayTrace, "--plot", "/nowhere/x.svg"); code != 1 || out != "" || errs != "kvasir: cannot write the picture: stat /nowhere: no such file or directory\n" {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
