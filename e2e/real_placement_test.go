//go:build real

// Real vLLM: its KV events against the index, and prefill to decode over NIXL (make test-real).

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
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

const tiny = "tiny-qwen"

// vllmServers are several servers, each of its own script: it ends with its server, and nothing else does.
type vllmServers struct {
	urls []string
	pids []int
}

var serverUp = regexp.MustCompile(`UP port=\d+ pid=(\d+)`)

// startServers starts one server for each role; "" is a plain one.
func startServers(t *testing.T, env []string, roles ...string) *vllmServers {
	t.Helper()
	v := &vllmServers{}
	var scripts []*process
	for _, role := range roles {
		address := freePorts(t)
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		script := spawn(t, append([]string{"ROLES=" + role}, env...), "../scripts/real-vllm/serve.sh", port)
		script.mayFail = true
		scripts, v.urls = append(scripts, script), append(v.urls, "http://"+address)
	}
	for _, script := range scripts {
		eventually(t, 2*startPatience, "vLLM is ready", func() bool {
			select {
			case <-script.exited:
				t.Fatalf("vLLM ended: %v\n%s", script.state, script.output.String())
			default:
			}
			return strings.Contains(script.output.String(), "READY\n")
		})
		pid, err := strconv.Atoi(serverUp.FindStringSubmatch(script.output.String())[1])
		if err != nil {
			t.Fatal(err)
		}
		v.pids = append(v.pids, pid)
	}
	return v
}

// freePorts finds a port P whose P+1000, P+2000 and P+3000 are free as well.
func freePorts(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := freeAddress(t)
		_, text, _ := net.SplitHostPort(address)
		port, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		free := true
		for _, more := range []int{1000, 2000, 3000} {
			if _, taken := handedOut.LoadOrStore(port+more, true); taken {
				free = false
			}
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port+more)))
			if free = free && err == nil; err == nil {
				_ = l.Close()
			}
		}
		if free {
			return address
		}
	}
	t.Fatal("no four free ports")
	return ""
}

func (v *vllmServers) metric(t *testing.T, i int, name string) float64 {
	t.Helper()
	return metric(t, v.urls[i]+"/metrics", name)
}

// pulled is how many tokens the second server took over from another one.
func (v *vllmServers) pulled(t *testing.T) float64 {
	t.Helper()
	sample := regexp.MustCompile(`vllm:prompt_tokens_by_source_total\{[^}]*source="external_kv_transfer"[^}]*\} (\S+)`).
		FindSubmatch(get(t, v.urls[1]+"/metrics").body)
	if sample == nil {
		return 0
	}
	n, err := strconv.ParseFloat(string(sample[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// placementConfig leaves guards and cache out: they are tested elsewhere, and text without sense may look odd to them.
func placementConfig(t *testing.T, workers string) string {
	t.Helper()
	directory, err := filepath.Abs(filepath.Join(os.Getenv("REAL_VLLM_DIR"), "tokenizer"))
	if err != nil {
		t.Fatal(err)
	}
	return "classify: {jailbreak: {action: off}, pii: {action: off}}\ncache: {store: off}\n" +
		"workers:\n" + workers + fmt.Sprintf("models:\n  - {name: %s, tokenizer: %q}\n", tiny, directory)
}

// TestRealVLLMEvents: conversations come back to a server whose cache is too small for all of them. Whatever it evicts
// meanwhile, the index finds as many blocks as the engine then has.
func TestRealVLLMEvents(t *testing.T) {
	const blockSize, blocks = 32, 100
	v := startServers(t, []string{fmt.Sprint("NUM_BLOCKS=", blocks), "MAX_MODEL_LEN=2048"}, "")
	k := serve(t, placementConfig(t, fmt.Sprintf("  - {name: real, url: %q}\n", v.urls[0])), tiny)
	eventually(t, patience, "Kvasir listens", func() bool {
		return metric(t, k.admin+"/metrics", "kvasir_kv_events_connected") == 1
	})
	untilExact(t, k, tiny)
	hits, evicted := 0, 0
	random := rand.New(rand.NewPCG(1, 1))
	seen := map[uint64]bool{}
	for i := range 60 {
		conversation := random.Uint64N(8)
		body := chatAbout(tiny, prose(conversation, 600), "Question "+strconv.Itoa(i), 8, false)
		k.heardAll(t)
		held := k.held(t, body)
		got := place(t, k.url, body)
		if held*blockSize != got.cached {
			t.Errorf("request %d: the index says %d blocks, the engine had %d of %d tokens", i, held, got.cached, got.prompt)
		}
		switch {
		case got.cached > 100:
			hits++
		case seen[conversation]:
			evicted++
		}
		seen[conversation] = true
	}
	if hits == 0 || evicted == 0 {
		t.Errorf("%d hits and %d conversations evicted: nothing was tried", hits, evicted)
	}
}

// held is how many leading blocks of the prompt the one worker holds, by its events.
func (k *kvasir) held(t *testing.T, body string) int {
	t.Helper()
	got := post(t, k.admin+"/explain", body)
	var out struct {
		Candidates []struct{ Overlap struct{ Device int } }
	}
	if err := json.Unmarshal(got.body, &out); err != nil || len(out.Candidates) != 1 {
		t.Fatalf("%s: %v", got.body, err)
	}
	return out.Candidates[0].Overlap.Device
}

// heardAll waits for the KV events of what was answered. They come after the answer, and nothing says which is the
// last: it is when a tenth of a second brings no more.
func (k *kvasir) heardAll(t *testing.T) {
	t.Helper()
	last, quiet := 0.0, 0
	eventually(t, patience, "no more KV events come", func() bool {
		now := metric(t, k.admin+"/metrics", "kvasir_kv_messages_total")
		if quiet++; now != last {
			last, quiet = now, 0
		}
		return quiet == 5
	})
}

// TestRealHandover: vLLM prefills on one server and decodes on another one.
func TestRealHandover(t *testing.T) {
	v := startServers(t, nil, "prefill", "decode")
	workers := fmt.Sprintf("  - {name: p, url: %q, role: prefill}\n  - {name: d, url: %q, role: decode}\n", v.urls[0], v.urls[1])
	k := serve(t, placementConfig(t, workers)+"routing: {disaggregate: always}\n", tiny)
	auto := serve(t, placementConfig(t, workers), tiny)
	eventually(t, patience, "Kvasir listens", func() bool {
		return metric(t, k.admin+"/metrics", "kvasir_kv_events_connected") == 2
	})

	untilExact(t, k, tiny)
	untilExact(t, auto, tiny)

	t.Run("the text of one server", func(t *testing.T) {
		for number, stream := range []bool{false, true} {
			text := prose(100+uint64(number), 1500)
			pulled := v.pulled(t)
			through := post(t, k.url+chatRoute, chatAbout(tiny, text, fmt.Sprint("Stream? ", stream), 48, stream))
			direct := post(t, v.urls[0]+chatRoute, chatAbout(tiny, text, fmt.Sprint("Stream? ", stream), 48, stream))
			if want, got := content(t, direct), content(t, through); want == "" || got != want {
				t.Errorf("stream %t: through two servers %q, from one %q", stream, got, want)
			}
			if p := through.header.Get("x-kvasir-prefill-worker"); p != "p" || through.header.Get("x-kvasir-worker") != "d" {
				t.Errorf("prefilled by %q, answered by %q", p, through.header.Get("x-kvasir-worker"))
			}
			if now := v.pulled(t); now < pulled+1000 {
				t.Errorf("the decode server has pulled %v tokens, %v before", now, pulled)
			}
		}
	})
	t.Run("a prompt seen before", func(t *testing.T) {
		first := place(t, k.url, chatAbout(tiny, prose(111, 1500), "One", 8, false))
		again := place(t, k.url, chatAbout(tiny, prose(111, 1500), "Two", 8, false))
		if first.overlap != 0 || again.overlap < 40 || again.overlap*32 != again.cached {
			t.Errorf("%d and %d blocks, %d tokens cached", first.overlap, again.overlap, again.cached)
		}
	})
	t.Run("a short prompt stays with the decode server", func(t *testing.T) {
		got := place(t, auto.url, chatAbout(tiny, "Hello.", "Who are you?", 8, false))
		if got.prefill != "" || got.worker != "d" {
			t.Errorf("prefilled by %q, answered by %q", got.prefill, got.worker)
		}
	})
	t.Run("a client's own transfer parameters", func(t *testing.T) {
		body := strings.TrimSuffix(chatAbout(tiny, "Hello.", "Who are you?", 8, false), "}") +
			`,"kv_transfer_params":{"do_remote_prefill":true,"remote_engine_id":"x","remote_host":"127.0.0.1","remote_port":1,"remote_block_ids":[[1]]}}`
		place(t, k.url, body)
		place(t, k.url, chatAbout(tiny, "Hello.", "Are you still there?", 8, false))
	})
	t.Run("a lost client frees both", func(t *testing.T) {
		for i, prompt := range []string{prose(112, 5000), prose(113, 200)} { // lost in prefill, lost in decode
			stream := begin(t, k, chatAbout(tiny, prompt, "Go on.", 2000, true))
			eventually(t, patience, "an engine is at it", func() bool {
				return v.metric(t, i, "vllm:num_requests_running") >= 1
			})
			stream()
			eventually(t, patience, "both engines are free", func() bool {
				return v.metric(t, 0, "vllm:num_requests_running") == 0 && v.metric(t, 1, "vllm:num_requests_running") == 0
			})
		}
	})
	t.Run("a decode server that stands still until the blocks are given up", func(t *testing.T) {
		body := chatAbout(tiny, prose(114, 1500), "Late.", 24, true)
		if err := syscall.Kill(v.pids[1], syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		asked := make(chan reply, 1)
		go func() { asked <- post(t, k.url+chatRoute, body) }()
		eventually(t, 2*time.Minute, "the prefill server lets the blocks go", func() bool {
			return v.metric(t, 0, "vllm:nixl_num_kv_expired_reqs_total") > 0
		})
		if err := syscall.Kill(v.pids[1], syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if got := <-asked; got.status == http.StatusOK {
			if want, text := content(t, post(t, v.urls[0]+chatRoute, body)), content(t, got); text != want {
				t.Errorf("text %q, want %q", text, want)
			}
		}
		eventually(t, time.Minute, "Kvasir says so", func() bool {
			return metric(t, k.admin+"/metrics", "kvasir_kv_transfers_expired_total") > 0
		})
	})
	t.Run("the prefill server dies", func(t *testing.T) {
		if err := syscall.Kill(v.pids[0], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		got := place(t, auto.url, chatAbout(tiny, prose(115, 1500), "Who is there?", 8, false))
		if got.prefill != "" || got.worker != "d" {
			t.Errorf("prefilled by %q, answered by %q", got.prefill, got.worker)
		}
		refused := post(t, k.url+chatRoute, chatAbout(tiny, prose(116, 1500), "Who is there?", 8, false))
		if refused.status != http.StatusServiceUnavailable && refused.status != http.StatusBadGateway {
			t.Errorf("with disaggregate: always and no prefill server: status %d, %s", refused.status, refused.body)
		}
	})
}

// begin sends a request and returns what hangs up.
func begin(t *testing.T, k *kvasir, body string) func() {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(k.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: kvasir\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", chatRoute, len(body), body)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}
