// Tests of `kvasir plan`.

package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// kvasirSays runs a command line and returns what it writes.
func kvasirSays(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := command(t, nil, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// Each fleet that a plan names keeps what it says when kvasir replay plays it, by the command that the plan prints.
func TestPlanIsConfirmed(t *testing.T) {
	t.Parallel()
	for _, more := range []string{"", "--apart --max 5 --block-size 128 --speed 1.5"} {
		args := append([]string{"plan", "--trace", replayTrace, "--target-ttft", "900ms", "--window", "20s", "--interval", "5s", "--start-time", "5s", "--down-after", "10s",
			"--speed", "2", "--json"}, strings.Fields(more)...)
		out, errs, code := kvasirSays(t, args...)
		if code != 0 || errs != "" {
			t.Fatalf("exit code %d: %s", code, errs)
		}
		if more == "" {
			if again, _, _ := kvasirSays(t, args...); again != out {
				t.Errorf("the same command gives other bytes:\n%s", again)
			}
		}
		var p planned
		if err := json.Unmarshal([]byte(out), &p); err != nil {
			t.Fatal(err)
		}
		if p.Requests != 300 || len(p.Windows) < 3 || len(p.Fleets) < 3 || !p.Whole.Enough || p.Whole.Kept.Share < p.Whole.Goal {
			t.Fatalf("%s", out)
		}
		changed := false
		for _, c := range append(p.Fleets, planFleet{Name: "whole", Kept: p.Whole.Kept, Confirm: p.Whole.Confirm}) {
			says, errs, code := kvasirSays(t, append(strings.Fields(strings.TrimPrefix(c.Confirm, "kvasir ")), "--json")...)
			var r struct {
				Targets struct {
					Requests   int
					Share      float64
					TTFT, ITL  float64 `json:"-"`
					ShareTTFT  float64 `json:"share_ttft"`
					ShareITL   float64 `json:"share_itl"`
					TTFTMillis float64 `json:"ttft_ms"`
					ITLMillis  float64 `json:"itl_ms"`
				}
			}
			if err := json.Unmarshal([]byte(says), &r); err != nil || code != 0 {
				t.Fatalf("%s: exit code %d: %v %s", c.Confirm, code, err, errs)
			}
			changed = changed || strings.Contains(c.Confirm, "--scale")
			if k := r.Targets; k.Requests != c.Kept.Requests || k.Share != c.Kept.Share || k.TTFTMillis != c.Kept.TTFT || k.ITLMillis != c.Kept.ITL {
				t.Errorf("%s %s: the replay says %+v, the plan %+v", c.Name, c.Confirm, k, c.Kept)
			}
		}
		if !changed {
			t.Errorf("no fleet changed: %s", out)
		}
	}
}

func TestPlanTable(t *testing.T) {
	t.Parallel()
	out, errs, code := kvasirSays(t, "plan", "--trace", replayTrace, "--window", "20s", "--interval", "10s", "--start-time", "5s", "--speed", "2")
	if code != 0 || errs != "" { // a pipe gets no progress bar
		t.Fatalf("exit code %d: %q", code, errs)
	}
	for _, want := range []string{
		`^twin_conversation\.jsonl: 300 requests in \d+\.\d s at speed 2\ntargets: first token within 500ms, 50ms between tokens, for 95 % of the requests\n`,
		`\n\d+\.\d % of the requests take longer than that by themselves: the goal is 95 % of the others, \d+\.\d % of all\n`,
		`\nthe whole trace without a change: \d+ workers keep the goal: \d+\.\d+ % \(first token \d+\.\d ms, between tokens \d+\.\d ms\)\n`,
		`\nthe formula says \d+ \(prefill \d+\.\d+, decode \d+\.\d+, by means of \d+ and \d+ tokens\)\nconfirmed by kvasir replay --trace \S+ --workers \d+ --target-ttft 500ms --target-itl 50ms --share 0\.95 --speed 2\n`,
		`\n +at +arrivals +forecast +formula +replay +first token +between +predicted +fleet +wanted +kept why\n +20s +\d`,
		`\n +fleet +kept +first token +between +GPU hours +mean +changes\n +planned +\d+\.\d+ %`,
		`\n +formula +\d+\.\d+ %`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no match for %s in\n%s", want, out)
		}
	}
	short, _, code := kvasirSays(t, "plan", "--trace", replayTrace, "--window", "20h")
	if want := "the trace is too short to be planned by its past: it lasts"; code != 0 || !strings.Contains(short, want) {
		t.Errorf("exit code %d: %s", code, short)
	}
	whole, _, code := kvasirSays(t, "plan", "--trace", replayTrace, "--whole-only", "--json", "--max", "2", "--target-ttft", "10ms")
	if code != 0 || !strings.Contains(whole, `"windows": []`) || !strings.Contains(whole, `"reachable": 0,`) || !strings.Contains(whole, `"enough": false,`) {
		t.Errorf("exit code %d: %s", code, whole)
	}
}

func TestPlanTroubles(t *testing.T) {
	t.Parallel()
	bad := filepath.Join(t.TempDir(), "bad.jsonl")
	do(t, os.WriteFile(bad, []byte(`{"timestamp": 0, "input_length": 10, "output_length": 1, "hash_ids": []}`), 0o600))
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"plan", "kvasir: --trace is missing: name the file to play\n", 2},
		{"plan --trace x --share 1", "kvasir: --share: 1 is not above 0 and below 1\n", 2},
		{"plan --trace x --share NaN", "kvasir: --share: NaN is not above 0 and below 1\n", 2},
		{"plan --trace x --target-ttft -1s", "kvasir: --target-ttft and --target-itl must be above 0", 2},
		{"plan --trace x --target-ttft 2h", "kvasir: target of the first token 2h0m0s is not between 1ms and 1h0m0s\n", 2},
		{"plan --trace x --window 0s", "kvasir: --window: 0s is not above 0\n", 2},
		{"plan --trace x --window 1s", "kvasir: window 1s is not between 10s and 24h0m0s\n", 2},
		{"plan --trace x --min 0", "kvasir: --min, --max and --most-played must be at least 1\n", 2},
		{"plan --trace x --min 5 --max 4", "kvasir: between 5 and 4 workers: at least 1, and at most 4096 together\n", 2},
		{"plan --trace x --gpus NaN", "kvasir: --gpus: NaN is not above 0 and at most 1024\n", 2},
		{"plan --trace x --pace 0", "kvasir: --pace: 0 is less than 0.001\n", 2},
		{"plan --trace x --policy kw", `kvasir: --policy: "kw" is not kv, least_loaded, p2c, predict, random or round_robin, did you mean "kv"?`, 2},
		{"plan --trace x --disaggregate always", "kvasir: --disaggregate is of prompts computed by other workers: add --apart\n", 2},
		{"plan --trace x --workers 3", `kvasir: unknown flag: --workers`, 2},
		{"plan --trace nowhere.jsonl", "kvasir: cannot read the trace: open nowhere.jsonl: no such file or directory\n", 1},
		{"plan --trace " + bad, "kvasir: cannot read the trace: bad.jsonl:1: 0 hash_ids for a prompt of 10 tokens: it must have one for each 512 tokens\n", 1},
		{"plan --trace " + replayTrace + " --blocks 10 --policy random", "kvasir: cannot play the last requests: cannot replay the request of twin_conversation.jsonl:1: cannot take a prompt of 6758 tokens: more tokens than the KV pool holds (640): give its workers more blocks\n", 1},
		{"replay --trace x --scale 10m", `kvasir: --scale: "10m": want a number of workers such as 10m:6`, 2},
		{"replay --trace x --scale 10:6", `kvasir: --scale: "10:6": want a time and a number of workers, such as 10m:6`, 2},
		{"replay --trace x --scale 10m:6,10m:7", `kvasir: --scale: "10m:7": times must rise`, 2},
		{"replay --trace x --scale 10m:0", `kvasir: --scale: "10m:0": want a number of workers`, 2},
		{"replay --trace x --scale 10m:5000", `kvasir: --scale: "10m:5000": want a number of workers`, 2},
		{"replay --trace x --scale 10m:1+2", `kvasir: --scale: 1+2 workers: it must keep the roles that there are`, 2},
		{"replay --trace x --start-time 1m", `kvasir: --start-time is of workers that are added: add --scale`, 2},
	} {
		out, errs, code := kvasirSays(t, strings.Fields(c.args)...)
		if code != c.code || out != "" || !strings.HasPrefix(errs, c.want) {
			t.Errorf("%s: exit code %d, %s%s", c.args, code, out, errs)
		}
	}
}
