// What an engine says of itself: vLLM's /metrics and SGLang's /get_server_info, read for the few things that placement wants to know.

package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"

	"kvasir/kvroute"
	"kvasir/kvroute/holdings"
)

// facts are what one reading of an engine's own figures has given.
type facts struct {
	kvroute.EngineFacts
	started       float64 // when its process was started, in seconds since 1970; 0: it does not say
	late, expired uint64  // fetches of KV blocks after their lease was over; prompts whose blocks nobody fetched
	events        string  // SGLang's --kv-events-config, JSON
}

// askMetrics reads vLLM's metrics.
func (w *Worker) askMetrics(ctx context.Context) (facts, error) {
	status, body, err := w.get(ctx, "/metrics")
	if err != nil || keptBack(status) {
		return facts{}, err
	}
	if status != http.StatusOK {
		return facts{}, fmt.Errorf("/metrics answers %d", status)
	}
	return readMetrics(body), nil
}

// readMetrics reads the lines of a scrape that say something here, and passes
// over what it cannot read. vllm:cache_config_info has its figures in its
// labels, one line for each data-parallel rank that the server has; where their
// caches differ, the smallest counts.
func readMetrics(text []byte) (f facts) {
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, lineEnd)
		name, rest := metricName(line)
		switch string(name) {
		case "vllm:cache_config_info":
			f.readCache(rest)
		case "process_start_time_seconds":
			f.started = metricValue(rest)
		case "vllm:nixl_num_notifications_after_expiry_total":
			f.late += wholeCount(metricValue(rest))
		case "vllm:nixl_num_kv_expired_reqs_total":
			f.expired += wholeCount(metricValue(rest))
		}
	}
	return f
}

var lineEnd = []byte("\n")

// metricName cuts a line behind the metric's name; "" of comments.
func metricName(line []byte) (name, rest []byte) {
	i := bytes.IndexAny(line, "{ ")
	if i <= 0 || line[0] == '#' {
		return nil, nil
	}
	return line[:i], line[i:]
}

// readCache reads a line of vllm:cache_config_info from its labels on.
func (f *facts) readCache(labels []byte) {
	if f.Ranks >= maxRanks {
		return
	}
	f.Ranks++
	eachLabel(labels, func(name, value []byte) {
		switch string(name) {
		case "block_size":
			if n := figure(value, 1<<20); n > 0 {
				f.BlockSize = n
			}
		case "num_gpu_blocks":
			if n := figure(value, 1<<31); n > 0 && (f.Blocks == 0 || n < f.Blocks) {
				f.Blocks = n
			}
		}
	})
}

// eachLabel calls do for each label of a line that begins with {. Values keep
// their escapes: none that we read has any. It returns what follows the labels.
func eachLabel(line []byte, do func(name, value []byte)) (rest []byte) {
	if len(line) == 0 || line[0] != '{' {
		return line
	}
	line = line[1:]
	for {
		line = bytes.TrimLeft(line, ", ")
		if len(line) == 0 {
			return nil
		}
		if line[0] == '}' {
			return line[1:]
		}
		name, after, ok := bytes.Cut(line, []byte(`="`))
		if !ok {
			return nil
		}
		end := 0
		for end < len(after) && after[end] != '"' {
			if after[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(after) {
			return nil
		}
		do(name, after[:end])
		line = after[end+1:]
	}
}

// metricValue is the value of a line, from its labels on; 0 if it is no finite number.
func metricValue(rest []byte) float64 {
	rest = bytes.TrimSpace(eachLabel(rest, func([]byte, []byte) {}))
	if i := bytes.IndexByte(rest, ' '); i >= 0 {
		rest = rest[:i] // a time stamp
	}
	v, err := strconv.ParseFloat(string(rest), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// wholeCount is a counter's value, which is a float in the text.
func wholeCount(v float64) uint64 {
	if v < 0 || v > 1<<53 {
		return 0
	}
	return uint64(v)
}

// figure reads a number of at most limit; 0: it is none.
func figure(text []byte, limit int) int {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 0 || n > limit {
		return 0
	}
	return n
}

// askServerInfo reads what SGLang says of itself.
func (w *Worker) askServerInfo(ctx context.Context) (facts, error) {
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

// A loose number may be null or of another type, which says nothing.
type loose struct{ v float64 }

// UnmarshalJSON reads numbers and passes over all else.
func (n *loose) UnmarshalJSON(b []byte) error {
	n.v, _ = strconv.ParseFloat(string(b), 64)
	return nil
}

// within is the number if it is one from 1 to limit, else 0.
func (n loose) within(limit int) int {
	if n.v >= 1 && n.v <= float64(limit) {
		return int(n.v)
	}
	return 0
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
