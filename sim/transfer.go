// kv_transfer_params: the parameters of vLLM's hand-over over NIXL, in requests and in a prefill
// worker's reply.

package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
)

// transfer is a request's kv_transfer_params, or another engine's equivalent. vLLM's connector is
// the same on every worker, so a request may ask any worker for either side, whatever its role.
type transfer struct {
	hold bool // do_remote_decode: keep the blocks for another worker
	load bool // do_remote_prefill: another worker has them

	// where the blocks are; only with load
	source   source
	blocks   []int // remote_block_ids of the only KV group
	cached   int   // remote_prefill_cached_tokens; reported as our own, as vLLM does
	complete bool  // all fields that a load needs are there
	broken   error // a field has the wrong type; vLLM accepts it and fails when it is used

	disagg *int64 // TensorRT-LLM's disagg_request_id; only with hold
	first  uint32 // TensorRT-LLM's first_gen_tokens; only with load
}

// source is a prefill worker's side channel, and the request whose blocks it holds.
type source struct {
	engine, request, host string
	port                  int
}

// readTransfer reads kv_transfer_params; nil: the request is an ordinary one. As in vLLM's
// schema, a value that is not an object is refused, but wrong fields inside it are not.
func readTransfer(f *fields) *transfer {
	raw := f.get("kv_transfer_params")
	if raw == nil {
		return nil
	}
	var params map[string]json.RawMessage
	if json.Unmarshal(raw, &params) != nil {
		f.complain("dict_type", "kv_transfer_params", "Input should be a valid dictionary")
		return nil
	}
	t := &transfer{hold: truthy(params["do_remote_decode"]), load: truthy(params["do_remote_prefill"]), complete: true}
	if !t.hold && !t.load {
		return nil
	}
	if !t.load {
		return t
	}
	var groups [][]int
	for _, field := range []struct {
		name string
		into any
	}{
		{"remote_block_ids", &groups}, {"remote_engine_id", &t.source.engine}, {"remote_request_id", &t.source.request},
		{"remote_host", &t.source.host}, {"remote_port", &t.source.port},
	} {
		value, ok := params[field.name]
		if !ok || !truthy(value) {
			t.complete = false
			continue
		}
		if err := json.Unmarshal(value, field.into); err != nil && t.broken == nil {
			t.broken = fmt.Errorf("cannot read kv_transfer_params.%s: %w", field.name, err)
		}
	}
	if len(groups) > 0 {
		t.blocks = groups[0]
	}
	_ = json.Unmarshal(params["remote_prefill_cached_tokens"], &t.cached) // absent in older versions
	return t
}

// truthy reports whether Python treats a JSON value as true.
func truthy(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "false", "0", "0.0", `""`, "[]", "{}":
		return false
	}
	return true
}

// holds and loads also work on a nil transfer.
func (t *transfer) holds() bool { return t != nil && t.hold }
func (t *transfer) loads() bool { return t != nil && t.load }

// handle makes the id of a held request between engines: the request's id and eight random
// digits.
func handle(id string) string { return fmt.Sprintf("%s-%08x", id, rand.Uint32()) }

// appendTransfer appends the kv_transfer_params of a prefill worker's reply, in vLLM 0.32's order.
func appendTransfer(b []byte, at source, blocks []int32, tokens, cached int) []byte {
	b = append(b, `{"do_remote_prefill":true,"do_remote_decode":false,"remote_block_ids":[[`...)
	for i, id := range blocks {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(id), 10)
	}
	b = appendString(append(b, `]],"remote_engine_id":`...), at.engine)
	b = appendString(append(b, `,"remote_request_id":`...), at.request)
	b = appendString(append(b, `,"remote_host":`...), at.host)
	b = strconv.AppendInt(append(b, `,"remote_port":`...), int64(at.port), 10)
	b = append(b, `,"tp_size":1,"dcp_size":1,"pp_size":1,"remote_num_tokens":`...)
	b = strconv.AppendInt(b, int64(tokens), 10)
	b = append(b, `,"remote_blocks_expiry_time":null,"transfer_mode":"pull","remote_prefill_cached_tokens":`...)
	return append(strconv.AppendInt(b, int64(cached), 10), '}')
}

// appendContents appends the contents of the blocks of a prompt, also of a last block that is not
// full. Equal contents mean equal tokens up to the end of the block. A cache salt changes the
// names of blocks, not their contents.
func appendContents(dst []uint64, o Options, prompt []uint32) []uint64 {
	parent := hashString(0, o.Model)
	dst = appendHashes(dst, parent, prompt, o.BlockSize)
	if rest := len(prompt) % o.BlockSize; rest > 0 {
		if n := len(dst); n > 0 {
			parent = dst[n-1]
		}
		dst = append(dst, hashTokens(parent, prompt[len(prompt)-rest:]))
	}
	return dst
}

// newEngineID makes the id of an engine for its lifetime: a random UUID.
func newEngineID() string {
	a, b := rand.Uint64(), rand.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0x3fff|0x8000, b&(1<<48-1))
}
