//go:build real

// Real vLLM on CPU behind Kvasir (make test-real): what a simulated engine can only promise.

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Loading the model takes half a minute on an idle machine and more on a busy one.
const startPatience = 4 * time.Minute

// A vllm is one real server, started by scripts/real-vllm/serve.sh.
type vllm struct {
	*process
	url string
	pid int // of the API server; the engine core is its child
}

// startVLLM starts a server and waits until it is ready. It may end in any way: some tests kill it.
func startVLLM(t *testing.T, address string) *vllm {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"EXTRA_ARGS=--enable-auto-tool-choice --tool-call-parser hermes", "KV_EVENTS=0"}
	v := &vllm{process: spawn(t, env, "../scripts/real-vllm/serve.sh", port), url: "http://" + address}
	v.mayFail = true
	eventually(t, startPatience, "vLLM is ready", func() bool {
		select {
		case <-v.exited:
			t.Fatalf("vLLM ended: %v\n%s", v.state, v.output.String())
		default:
		}
		return strings.Contains(v.output.String(), "READY\n")
	})
	up := serverUp.FindStringSubmatch(v.output.String())
	if v.pid, err = strconv.Atoi(up[1]); err != nil {
		t.Fatal(err)
	}
	return v
}

func (v *vllm) running(t *testing.T) float64 {
	t.Helper()
	return metric(t, v.url+"/metrics", "vllm:num_requests_running")
}

// engineCore finds the process that computes, by its parent and its title.
func (v *vllm) engineCore(t *testing.T) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended meanwhile
		}
		after := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		title, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if err == nil && after[1] == strconv.Itoa(v.pid) && bytes.Contains(title, []byte("EngineCore")) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatalf("vLLM %d has no engine core", v.pid)
	return 0
}

// TestRealVLLM starts servers one after another, as one alone takes 2.4 GB and half a minute.
func TestRealVLLM(t *testing.T) {
	address := freeAddress(t)
	v := startVLLM(t, address)
	k := serve(t, behind(map[string]string{"real": v.url}), "tiny-qwen")
	to := target{k.url + "/v1", "tiny-qwen", []string{v.url}, false}

	t.Run("python SDK", func(t *testing.T) { part(t, "python-sdk"); python(t, to) })
	t.Run("node SDK", func(t *testing.T) { part(t, "node-sdk"); node(t, to) })
	t.Run("go SDK", func(t *testing.T) { goSDK(t, to) })
	t.Run("the same answer", func(t *testing.T) { sameAnswer(t, k, v) })
	t.Run("a lost client frees the engine", func(t *testing.T) { lostClient(t, k, v) })
	t.Run("SIGTERM to Kvasir in mid-stream", func(t *testing.T) { drainInMidStream(t, v) })
	t.Run("SIGTERM in mid-stream", func(t *testing.T) { sigtermInMidStream(t, k, v) })

	again := startVLLM(t, address)
	t.Run("it is used again", func(t *testing.T) { usedAgain(t, k) })
	t.Run("engine killed in mid-stream", func(t *testing.T) { engineKilled(t, k, again) })
}

func ask(stream bool, maxTokens int) string {
	return fmt.Sprintf(`{"model":"tiny-qwen","messages":[{"role":"user","content":"Name three colours."}],`+
		`"max_tokens":%d,"temperature":0,"seed":1,"ignore_eos":true,"stream":%t}`, maxTokens, stream)
}

const chatRoute = "/v1/chat/completions"

// sameAnswer compares with the engine asked directly, after a warm-up, so that both find the same
// prefix cache.
func sameAnswer(t *testing.T, k *kvasir, v *vllm) {
	post(t, v.url+chatRoute, ask(false, 64))
	for _, stream := range []bool{false, true} {
		direct, through := post(t, v.url+chatRoute, ask(stream, 64)), post(t, k.url+chatRoute, ask(stream, 64))
		if want, got := content(t, direct), content(t, through); want == "" || got != want {
			t.Errorf("stream %t: through Kvasir %q, directly %q", stream, got, want)
		}
		if !stream {
			sameReply(t, direct, through)
		}
	}
}

// sameReply: not only the text is the engine's, but every byte of a reply that is not streamed,
// apart from what is new in each. (Events may hold one token or several, as the engine's clock has it.)
func sameReply(t *testing.T, direct, through reply) {
	t.Helper()
	own := regexp.MustCompile(`"id":"[^"]*"|"created":\d+`)
	want, got := own.ReplaceAllString(string(direct.body), ""), own.ReplaceAllString(string(through.body), "")
	if got != want || through.header.Get("Content-Type") != direct.header.Get("Content-Type") {
		t.Errorf("through Kvasir %s, directly %s", got, want)
	}
}

// content is the text of an answer, streamed or not, which must be whole.
func content(t *testing.T, got reply) string {
	t.Helper()
	wantFinished(t, got)
	type choices struct {
		Choices []struct {
			Message, Delta struct{ Content string }
		}
	}
	text := ""
	for event := range strings.SplitSeq(strings.TrimSpace(string(got.body)), "\n\n") {
		event = strings.TrimPrefix(event, "data: ")
		if event == "[DONE]" {
			continue
		}
		var part choices
		if err := json.Unmarshal([]byte(event), &part); err != nil {
			t.Fatalf("%q: %v", event, err)
		}
		text += part.Choices[0].Message.Content + part.Choices[0].Delta.Content
	}
	return text
}

// lostClient: within a second after the client has gone the engine works on nothing.
func lostClient(t *testing.T, k *kvasir, v *vllm) {
	for _, stream := range []bool{true, false} {
		eventually(t, patience, "the engine is idle", func() bool { return v.running(t) == 0 })
		leave := beginLong(t, k, stream)
		eventually(t, patience, "the engine is at it", func() bool { return v.running(t) == 1 })
		leave()
		eventually(t, time.Second, "the engine is free", func() bool { return v.running(t) == 0 })
	}
}

// beginLong sends a long request and returns what hangs up.
func beginLong(t *testing.T, k *kvasir, stream bool) func() {
	t.Helper()
	return begin(t, k, ask(stream, 6000))
}

// drainInMidStream: Kvasir is told to stop and lets the engine finish its answer first.
func drainInMidStream(t *testing.T, v *vllm) {
	k := serve(t, behind(map[string]string{"real": v.url}), "tiny-qwen")
	stream := open(t, k.url+chatRoute, ask(true, 300))
	seen := stream.skip(t, 5)
	if err := k.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "Kvasir takes nothing new", func() bool { return !answers(k.url + "/readyz") })
	got := stream.rest()
	got.body = append(seen, got.body...)
	wantFinished(t, got)
	k.stop(t)
}

func sigtermInMidStream(t *testing.T, k *kvasir, v *vllm) {
	stream := open(t, k.url+chatRoute, ask(true, 6000))
	seen := stream.skip(t, 5)
	if err := syscall.Kill(v.pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	got := stream.rest()
	got.body = append(seen, got.body...)
	// vLLM ends without a word, or has the time to say itself that the answer was aborted.
	if !bytes.Contains(got.body, []byte(`"finish_reason":"abort"`)) {
		wantFailed(t, got)
	}
	<-v.exited // serve.sh ends with its server
	if got := post(t, k.url+chatRoute, ask(false, 4)); got.status != http.StatusBadGateway && got.status != http.StatusServiceUnavailable {
		t.Errorf("without a worker: status %d, %s", got.status, got.body)
	}
}

// usedAgain: Kvasir finds by itself that the worker is back, and from then on no request fails: the
// connections to the former one are not used.
func usedAgain(t *testing.T, k *kvasir) {
	eventually(t, time.Minute, "an answer from the restarted worker", func() bool {
		return post(t, k.url+chatRoute, ask(false, 4)).status == http.StatusOK
	})
	for i := range 8 {
		wantFinished(t, post(t, k.url+chatRoute, ask(i%2 == 0, 4)))
	}
}

// engineKilled: a client never takes what came for a whole answer.
func engineKilled(t *testing.T, k *kvasir, v *vllm) {
	stream := open(t, k.url+chatRoute, ask(true, 6000))
	seen := stream.skip(t, 5)
	if err := syscall.Kill(v.engineCore(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	got := stream.rest()
	got.body = append(seen, got.body...)
	wantFailed(t, got)
}

// wantFailed: an error in the stream and no finish_reason. A vLLM that goes down mostly cuts its
// streams, and then the error is Kvasir's; sometimes its API server outlives the engine for a moment,
// and says in the stream, before a right end, that it has died: that reaches the client as it is.
func wantFailed(t *testing.T, got reply) {
	t.Helper()
	body := string(got.body)
	if strings.Contains(body, `"finish_reason":"`) {
		t.Errorf("a finish_reason in ...%q", tail(body, 600))
	}
	if !strings.Contains(body, `data: {"error": {"message": "EngineCore`) {
		wantInterrupted(t, got)
	}
}
