// SGLang: its server info, where it publishes KV events, and hand-over in a bootstrap room.

package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"

	"kvasir/kvroute"
	"kvasir/kvroute/holdings"
	"kvasir/openai"
)

var sglang = dialect{
	name:  "sglang",
	owner: "sglang",
	salts: true,
	// A decode worker that was started with --disaggregation-mode decode answers 400 to
	// a request without a room.
	needsPrefill: true,
	meet:         askBootstrap,
	facts:        askServerInfo,
	sources: func(_ context.Context, w *Worker, f *facts) ([]holdings.Source, error) {
		return f.published(w.hostname())
	},
	connectors: []*Connector{&bootstrapRoom},
}

// askServerInfo reads what SGLang says of itself.
func askServerInfo(ctx context.Context, w *Worker) (facts, error) {
	status, body, err := w.get(ctx, "/get_server_info")
	if err == nil && status == http.StatusNotFound {
		status, body, err = w.get(ctx, "/server_info")
	}
	if err != nil || keptBack(status) {
		return facts{}, err
	}
	if status != http.StatusOK {
		return facts{}, fmt.Errorf("/get_server_info answers %d", status)
	}
	return readServerInfo(body)
}

// readServerInfo reads SGLang's server info. It holds all of the server's
// arguments, keys among them: nothing of it is quoted.
func readServerInfo(body []byte) (f facts, err error) {
	var said struct {
		PageSize    loose `json:"page_size"`
		Tokens      loose `json:"max_total_num_tokens"`
		MaxRunning  loose `json:"max_running_requests"`
		Chunk       loose `json:"chunked_prefill_size"` // -1: prompts are not cut
		Ranks       loose `json:"dp_size"`
		Attention   bool  `json:"enable_dp_attention"`
		EventConfig any   `json:"kv_events_config"` // a text, or null
		States      []struct {
			Tokens     loose `json:"max_total_num_tokens"`
			MaxRunning loose `json:"effective_max_running_requests_per_dp"`
		} `json:"internal_states"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return f, fmt.Errorf("cannot read /get_server_info: it is no such JSON object")
	}
	f.events, _ = said.EventConfig.(string)
	f.BlockSize = said.PageSize.within(1 << 20)
	f.MaxSeqs, f.MaxBatchedTokens = said.MaxRunning.within(1<<20), said.Chunk.within(1<<30)
	tokens := said.Tokens.within(1 << 40)
	if len(said.States) > 0 {
		if tokens == 0 {
			tokens = said.States[0].Tokens.within(1 << 40)
		}
		if n := said.States[0].MaxRunning.within(1 << 20); n > 0 {
			f.MaxSeqs = n
		}
	}
	if f.BlockSize > 0 {
		f.Blocks = tokens / f.BlockSize
	}
	f.Ranks = 1
	if said.Attention { // only then each rank has a scheduler that can be named
		f.Ranks = max(1, said.Ranks.within(maxRanks))
	}
	return f, nil
}

// published is where SGLang's ranks publish by the arguments it was started
// with, the same for rank 0 as vLLM's answer for it.
func (f *facts) published(host string) ([]holdings.Source, error) {
	if f.events == "" {
		return nil, nil
	}
	var config struct {
		Publisher string `json:"publisher"`
		Endpoint  string `json:"endpoint"`
		Replay    string `json:"replay_endpoint"`
		Topic     string `json:"topic"`
	}
	if json.Unmarshal([]byte(f.events), &config) != nil || config.Publisher != "zmq" {
		return nil, nil // SGLang's default publishes nothing
	}
	if config.Endpoint == "" {
		config.Endpoint = "tcp://*:5557"
	}
	body, err := json.Marshal(map[string]any{"0": config})
	if err != nil {
		return nil, err
	}
	sources, err := readSources(body, host)
	if err != nil || len(sources) == 0 {
		return nil, err
	}
	for rank := 1; rank < f.Ranks; rank++ {
		s, err := sources[0].Source.Rank(rank)
		if err != nil {
			return nil, err
		}
		sources = append(sources, holdings.Source{Rank: rank, Source: s})
	}
	return sources, nil
}

// askBootstrap asks a prefill worker where its bootstrap server is: decode workers
// are told so with each request.
func askBootstrap(ctx context.Context, w *Worker) error {
	if w.Role() != kvroute.Prefill {
		return nil
	}
	status, body, err := w.get(ctx, "/get_server_info")
	if err != nil {
		return err
	}
	if status == http.StatusOK {
		w.readBootstrap(body)
	}
	return nil
}

func (w *Worker) readBootstrap(body []byte) {
	var info struct {
		Port int32 `json:"disaggregation_bootstrap_port"`
	}
	if json.Unmarshal(body, &info) == nil && info.Port > 0 && info.Port < 1<<16 {
		w.bootstrap.Store(info.Port)
	}
}

// bootstrapDefault is SGLang's --disaggregation-bootstrap-port where it is not given.
const bootstrapDefault = 8998

// bootstrapAt is the host and the port of the prefill worker's bootstrap server.
func (w *Worker) bootstrapAt() (host string, port int) {
	port = bootstrapDefault
	if p := w.bootstrap.Load(); p > 0 {
		port = int(p)
	}
	return w.hostname(), port
}

// bootstrapRoom is SGLang's way: both workers are asked for the same at once, and meet
// in a room at the prefill worker's bootstrap server. The client is given the decode
// worker's answer; the prefill worker's is read and dropped.
var bootstrapRoom = Connector{
	Name: "bootstrap",
	Ask:  Beside,
	begin: func(l *Legs) {
		l.Prefill.Unstream()
		room := rand.Int64N(1<<63 - 1<<20) // below 2^63, with room above for an engine that counts on
		host, port := l.From.bootstrapAt()
		member := append([]byte(`"bootstrap_host":`), openai.AppendString(nil, host)...)
		member = strconv.AppendInt(append(member, `,"bootstrap_port":`...), int64(port), 10)
		member = strconv.AppendInt(append(member, `,"bootstrap_room":`...), room, 10)
		l.Prefill.Add(member)
		l.Decode.Add(member)
		if l.Rank >= 0 {
			l.Decode.Add(strconv.AppendInt([]byte(`"disagg_prefill_dp_rank":`), int64(l.Rank), 10))
		}
	},
	// SGLang says 200 of a prefill that it gave up, and the decode worker would wait for
	// it.
	aborted: func(reply []byte) bool {
		_, choices := memberOf(reply, "choices")
		_, finish := memberOf(firstOf(choices), "finish_reason")
		return string(finish) == `"abort"`
	},
	unfetched: func(reply []byte) bool { return bytes.Contains(reply, []byte("KVTransferError")) },
}
