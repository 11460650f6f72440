// What is read of engines' own figures: real ones, and what could be sent instead.

package upstream

import (
	"os"
	"strings"
	"testing"

	"kvasir/kvroute"
)

// A scrape of vLLM 0.32 on CPU.
func vllmMetrics(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/engines/vllm_metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestReadMetrics(t *testing.T) {
	engine := func(size, blocks, ranks int) kvroute.EngineFacts {
		return kvroute.EngineFacts{BlockSize: size, Blocks: blocks, Ranks: ranks}
	}
	const line = "vllm:cache_config_info{"
	for _, c := range []struct {
		name, text string
		want       facts
	}{
		{"vLLM 0.32", string(vllmMetrics(t)), facts{EngineFacts: engine(32, 320, 1), started: 1.79526339001e+09}},
		{"two ranks", line + `engine="0",block_size="16",num_gpu_blocks="100"} 1.0` + "\n" + line + `block_size="16",engine="1",num_gpu_blocks="90"} 1.0`,
			facts{EngineFacts: engine(16, 90, 2)}},
		{"not profiled yet", line + `block_size="16",num_gpu_blocks="None"} 1.0`, facts{EngineFacts: engine(16, 0, 1)}},
		{"names that end alike", line + `effective_block_size="64",block_size="16",x_num_gpu_blocks="1"} 1`, facts{EngineFacts: engine(16, 0, 1)}},
		{"a label that looks like two", line + `a="x\",block_size=\"64",block_size="16"} 1`, facts{EngineFacts: engine(16, 0, 1)}},
		{"no sizes", line + `block_size="-4",num_gpu_blocks="99999999999999999999"} 1`, facts{EngineFacts: engine(0, 0, 1)}},
		{"cut labels", line + `block_size="16",num_gpu_bl`, facts{EngineFacts: engine(16, 0, 1)}},
		{"cut value", line + `block_size="1`, facts{EngineFacts: engine(0, 0, 1)}},
		{"NIXL of two ranks", "vllm:nixl_num_kv_expired_reqs_total{engine=\"0\"} 3.0\nvllm:nixl_num_kv_expired_reqs_total{engine=\"1\"} 4.0 1795263390\n" +
			"vllm:nixl_num_notifications_after_expiry_total 2.0\r\n", facts{late: 2, expired: 7}},
		{"no numbers", "process_start_time_seconds NaN\nvllm:nixl_num_kv_expired_reqs_total -1\nvllm:nixl_num_notifications_after_expiry_total x", facts{}},
		{"comments", "# TYPE process_start_time_seconds gauge\n#process_start_time_seconds 4\n\n", facts{}},
		{"nothing", "", facts{}},
	} {
		if got := readMetrics([]byte(c.text)); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
	if got := readMetrics([]byte(strings.Repeat(line+"} 1\n", 5000))); got.Ranks != maxRanks {
		t.Errorf("%d ranks", got.Ranks)
	}
}

func TestReadServerInfo(t *testing.T) {
	const events = `,"kv_events_config":"{\"publisher\":\"zmq\",\"endpoint\":\"tcp://*:5557\",\"replay_endpoint\":\"tcp://*:6557\",\"topic\":\"kv\"}"`
	for _, c := range []struct {
		name, text, err string
		want            kvroute.EngineFacts
		sources         string
	}{
		{"plain", `{"page_size":1,"max_total_num_tokens":8192,"max_running_requests":2048,"chunked_prefill_size":8192,"dp_size":1}`, "",
			kvroute.EngineFacts{BlockSize: 1, Blocks: 8192, MaxBatchedTokens: 8192, MaxSeqs: 2048, Ranks: 1}, ""},
		{"ranks and events", `{"page_size":64,"max_total_num_tokens":64000,"max_running_requests":null,"chunked_prefill_size":-1,"dp_size":2,"enable_dp_attention":true,"internal_states":[{"effective_max_running_requests_per_dp":32}]` + events + `}`, "",
			kvroute.EngineFacts{BlockSize: 64, Blocks: 1000, MaxSeqs: 32, Ranks: 2}, "tcp://h:5557 tcp://h:6557 kv, tcp://h:5558 tcp://h:6558 kv"},
		{"ranks that are no ranks", `{"page_size":16,"dp_size":4` + events + `}`, "", kvroute.EngineFacts{BlockSize: 16, Ranks: 1}, "tcp://h:5557 tcp://h:6557 kv"},
		{"tokens in the states", `{"page_size":16,"internal_states":[{"max_total_num_tokens":160}]}`, "", kvroute.EngineFacts{BlockSize: 16, Blocks: 10, Ranks: 1}, ""},
		{"events off", `{"kv_events_config":"{\"publisher\":\"null\"}"}`, "", kvroute.EngineFacts{Ranks: 1}, ""},
		{"other types", `{"page_size":"16","max_total_num_tokens":[1],"dp_size":1e99,"enable_dp_attention":true,"kv_events_config":{"a":1}}`, "", kvroute.EngineFacts{Ranks: 1}, ""},
		{"no object", `[1]`, "cannot read /get_server_info: it is no such JSON object", kvroute.EngineFacts{}, ""},
	} {
		f, err := readServerInfo([]byte(c.text))
		if text := errorText(err); text != c.err || f.EngineFacts != c.want {
			t.Errorf("%s: got %+v, error %q", c.name, f.EngineFacts, text)
		}
		sources, err := f.published("h")
		var said []string
		for _, s := range sources {
			said = append(said, s.Events+" "+s.Replay+" "+s.Topic)
		}
		if got := strings.Join(said, ", "); err != nil || got != c.sources {
			t.Errorf("%s: sources %q, %v", c.name, got, err)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestReadProps(t *testing.T) {
	for _, c := range []struct {
		text  string
		slots int
		bad   bool
	}{
		{`{"default_generation_settings":{"n_ctx":1024},"total_slots":4,"build_info":"b1-0"}`, 4, false}, // as its README shows it
		{`{"total_slots":"4"}`, 0, false}, {`{"total_slots":-1}`, 0, false}, {`{"total_slots":1e9}`, 0, false}, {`{}`, 0, false},
		{`[]`, 0, true}, {``, 0, true},
	} {
		got, err := readProps([]byte(c.text))
		if got != (facts{EngineFacts: kvroute.EngineFacts{MaxSeqs: c.slots}}) || (err != nil) != c.bad {
			t.Errorf("%s: %+v, %v", c.text, got, err)
		}
	}
}

// Whatever a worker answers, reading it ends, and gives figures that can be worked with.
func FuzzEngineFacts(f *testing.F) {
	f.Add(vllmMetrics(f))
	f.Add([]byte(`vllm:cache_config_info{a="x\",block_size=\"64",block_size="16"} 1`))
	f.Add([]byte(`{"page_size":64,"max_total_num_tokens":64000,"dp_size":2,"enable_dp_attention":true,"kv_events_config":"{\"publisher\":\"zmq\",\"endpoint\":\"tcp://*:5557\"}"}`))
	f.Add([]byte(`{"0":{"endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5558"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		read := []facts{readMetrics(text)}
		if info, err := readServerInfo(text); err == nil {
			read = append(read, info)
			if sources, err := info.published("h"); err == nil && len(sources) > maxRanks {
				t.Errorf("%d sources", len(sources))
			}
		}
		if props, err := readProps(text); err == nil {
			read = append(read, props)
		}
		if sources, err := readSources(text, "h"); err == nil {
			for _, s := range sources {
				if s.Rank < 0 || s.Rank >= maxRanks {
					t.Errorf("rank %d", s.Rank)
				}
			}
		}
		for _, f := range read {
			if f.BlockSize < 0 || f.BlockSize > 1<<20 || f.Blocks < 0 || f.Ranks < 0 || f.Ranks > maxRanks || f.MaxSeqs < 0 || f.MaxBatchedTokens < 0 {
				t.Errorf("%+v", f.EngineFacts)
			}
		}
	})
}

func BenchmarkReadMetrics(b *testing.B) {
	text := vllmMetrics(b)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		readMetrics(text)
	}
}

// The bootstrap server's port is asked of the prefill worker.
func TestBootstrapPortIsAsked(t *testing.T) {
	w := &Worker{}
	for body, want := range map[string]int{
		`{"disaggregation_bootstrap_port":9123}`: 9123, `{}`: bootstrapDefault, `{"disaggregation_bootstrap_port":null}`: bootstrapDefault,
		`{"disaggregation_bootstrap_port":70000}`: bootstrapDefault, `[`: bootstrapDefault,
	} {
		w.bootstrap.Store(0)
		w.readBootstrap([]byte(body))
		if _, got := w.bootstrapAt(); got != want {
			t.Errorf("%s: port %d, want %d", body, got, want)
		}
	}
}
