//go:build real

// Real vLLM on CPU: the index says of each prompt what the engine then finds cached (make test-real).

package holdings

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"kvasir/kvroute/kvevents"
	"kvasir/kvroute/kvevents/recorded"
)

// vllmPort is the server's; its events are at the port 1,000 above, missed ones 2,000 above.
const vllmPort = 18701

// startVLLM starts a server of 64 blocks of 32 tokens and waits until it is ready.
func startVLLM(t *testing.T) {
	t.Helper()
	for _, port := range []int{vllmPort, vllmPort + 1000, vllmPort + 2000} {
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err) // another server would be taken for ours
		}
		ln.Close()
	}
	cmd := exec.Command("../../scripts/real-vllm/serve.sh", fmt.Sprint(vllmPort))
	cmd.Env = append(os.Environ(), "NUM_BLOCKS=64", "MAX_MODEL_LEN=1024", "LOG_DIR="+t.TempDir())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // and it stops its servers
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == "READY" {
			return
		}
	}
	t.Fatal("vLLM did not start")
}

// cachedTokens asks for an answer and returns how many tokens of the prompt vLLM found cached.
func cachedTokens(t *testing.T, prompt []uint32, salt string, answer int) int {
	t.Helper()
	ask := map[string]any{"model": "tiny-qwen", "prompt": prompt, "max_tokens": answer, "ignore_eos": true}
	return recorded.Cached(t, fmt.Sprintf("127.0.0.1:%d", vllmPort), ask, salt)
}

func TestRealVLLMFindsWhatTheIndexSays(t *testing.T) {
	if os.Getenv("REAL_VLLM_DIR") == "" {
		t.Skip("SKIP real part: vLLM: make test-real brings it")
	}
	startVLLM(t)
	defer http.DefaultClient.CloseIdleConnections()
	const size = 32
	b := &bench{place: newPlace(0)}
	l := b.place.listen(t, Source{0, kvevents.Source{
		Events: fmt.Sprintf("tcp://127.0.0.1:%d", vllmPort+1000), Replay: fmt.Sprintf("tcp://127.0.0.1:%d", vllmPort+2000)}})
	random := rand.New(rand.NewPCG(1, 2))
	text := func(n int) (tokens []uint32) {
		for range n {
			tokens = append(tokens, 1000+random.Uint32N(5000))
		}
		return tokens
	}
	heads := [][]uint32{text(200), text(330), text(150), text(470)}
	salts := []string{"", "", "tenant"}
	const requests = 120
	hits := 0
	for i := range requests {
		prompt := append(heads[random.IntN(len(heads))][:100+random.IntN(50):150], text(1+random.IntN(200))...)
		salt := salts[i%len(salts)]
		want := min(b.leadingOf(prompt, salt, size), (len(prompt)-1)/size) * size
		if got := cachedTokens(t, prompt, salt, 1+random.IntN(60)); got != want {
			t.Errorf("request %d: %d tokens of %d found cached, the index said %d", i, got, len(prompt), want)
		}
		hits += want
		eventually(t, "its own blocks are known", func() bool { return b.leadingOf(prompt, salt, size) == len(prompt)/size })
		// What its answer evicted comes after them, and after the answer itself on a busy machine.
		last, since := l.Status()[0].Kinds, time.Now()
		eventually(t, "no event comes any more", func() bool {
			if now := l.Status()[0].Kinds; now != last {
				last, since = now, time.Now()
			}
			return time.Since(since) > 100*time.Millisecond
		})
	}
	f := l.Status()[0]
	if hits == 0 || f.Kinds[Removed] == 0 || f.Kinds[Orphan]+f.Kinds[Reused]+f.Kinds[RemoveUnknown]+f.Lost > 0 || len(b.said()) > 0 {
		t.Errorf("%d tokens hit, %+v, %q", hits, f, b.said())
	}
	t.Logf("%d requests, %d tokens hit, %d blocks stored, %d removed, %d held", requests, hits, f.Kinds[Stored], f.Kinds[Removed], f.Held)
	held := b.place.at(0).Held()
	b.place.forget(size)
	l.Relearn()
	eventually(t, "its replay socket has told all again", func() bool { return b.place.at(0).Held() == held })
}
