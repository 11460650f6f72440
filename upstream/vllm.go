// vLLM: its metrics, where it publishes KV events, and hand-over by NIXL.

package upstream

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"kvasir/kvroute/holdings"
	"kvasir/openai"
)

var vllm = dialect{
	name:       "vllm",
	owner:      "vllm",
	salts:      true,
	prompts:    true,
	facts:      askMetrics,
	sources:    askEventSources,
	connectors: []*Connector{&nixl}, // of its others none was tried against a real pair of workers
}

// askMetrics reads vLLM's metrics.
func askMetrics(ctx context.Context, w *Worker) (facts, error) {
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

// askEventSources asks vLLM where it publishes.
func askEventSources(ctx context.Context, w *Worker, _ *facts) ([]holdings.Source, error) {
	status, body, err := w.get(ctx, "/kv_event_sources")
	if err != nil || keptBack(status) {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("/kv_event_sources answers %d", status)
	}
	return readSources(body, w.hostname())
}

// nixl is vLLM's way over its NixlConnector: the prefill worker answers one token, and
// with it says where the blocks lie. The decode worker is told that word for word,
// fetches the blocks, and makes the token again. Shape and lease are as observed of
// vLLM 0.32.0.
var nixl = Connector{
	Name: "nixl",
	Ask:  Before,
	Good: 20 * time.Second, // it frees the blocks after 30 s; who asks later gets others' and answers 200 with wrong text
	begin: func(l *Legs) {
		l.Prefill.Unstream()
		l.Prefill.OneToken()
		l.Prefill.Add(nixlAsk)
	},
	tell: func(l *Legs, c *Call) Told {
		said, params := memberOf(c.Payload(), "kv_transfer_params")
		switch blocks, whole := nixlBlocks(params); {
		case !whole:
			return Told{Missing: "kv_transfer_params"}
		case !blocks: // it holds nothing
			return Told{Unused: true}
		}
		l.Decode.Add(said)
		return Told{}
	},
}

var nixlAsk = []byte(`"kv_transfer_params":{"do_remote_decode":true,"do_remote_prefill":false,` +
	`"remote_engine_id":null,"remote_block_ids":null,"remote_host":null,"remote_port":null}`)

// nixlBlocks says whether params are whole, and whether they name a block. Without
// remote_request_id a decode engine waits for ever, and dies when the client has left
// (vLLM 0.32.0).
func nixlBlocks(params []byte) (blocks, whole bool) {
	w := openai.Walk(params)
	given := 0
	for ok := w.Enter('{'); ok && w.Key(); {
		switch string(w.Name) {
		case "remote_engine_id", "remote_request_id", "remote_host", "remote_port":
			if !w.Null() {
				given++
			}
		case "remote_block_ids":
			blocks = bytes.ContainsAny(w.Span().Of(params), "0123456789")
		default:
			w.Skip()
		}
	}
	return blocks, given == 4 && w.End()
}
