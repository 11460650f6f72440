// Handshakes: how two workers of each engine are brought to hand a request over.
package proxy

import (
	"bytes"
	"math/rand/v2"
	"strconv"
	"time"

	"kvasir/kvroute"
	"kvasir/openai"
	"kvasir/upstream"
)

// A protocol is an engine's way to have one worker compute a prompt and another
// one answer.
type protocol struct {
	engine string

	// shake settles what both legs say, and has the prefill worker at least begun
	// when it returns. A failure is the prefill worker's.
	shake func(*handover) *upstream.Failure
}

// protocols are one row each; an engine without one prefills where it answers.
var protocols = []protocol{
	{"vllm", nixl},
	{"sglang", bootstrap},
	{"trtllm", contextFirst},
	{dynamo, direct},
}

// protocolOf is how the workers of a placement hand over to each other; nil:
// they do not, or it is not known yet what they are.
func protocolOf(place *kvroute.Placement) *protocol {
	from, to := place.Prefill.Peer.(*backend), place.Worker.Peer.(*backend)
	engine := from.EngineName()
	if engine != to.EngineName() || engine == dynamo && from.Settings.Instance == "" {
		return nil
	}
	for i := range protocols {
		if p := &protocols[i]; p.engine == engine {
			return p
		}
	}
	return nil
}

const dynamo = "dynamo"

// nixl is vLLM's way over its NixlConnector: the prefill worker answers one
// token, and with it says where the blocks lie; the decode worker is told so
// word for word, fetches them, and makes that token again. Shape and lease are as
// vLLM 0.32.0 was observed.
func nixl(h *handover) *upstream.Failure {
	h.prefill.Unstream()
	h.prefill.OneToken()
	h.prefill.Add(nixlAsk)
	if f := h.compute(); f != nil {
		return f
	}
	said, params := memberOf(h.call.Payload(), "kv_transfer_params")
	switch blocks, whole := nixlBlocks(params); {
	case !whole:
		return h.unsaid("kv_transfer_params")
	case blocks:
		h.decode.Add(said)
	default: // it holds nothing: the decode worker computes what there is
		h.said = time.Time{}
	}
	return nil
}

var nixlAsk = []byte(`"kv_transfer_params":{"do_remote_decode":true,"do_remote_prefill":false,` +
	`"remote_engine_id":null,"remote_block_ids":null,"remote_host":null,"remote_port":null}`)

// nixlBlocks says whether params are whole, and whether they name a block.
// Without remote_request_id a decode engine waits for ever, and dies when the
// client has left (vLLM 0.32.0).
func nixlBlocks(params []byte) (blocks, whole bool) {
	w := openai.Walker{B: params}
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

// bootstrap is SGLang's way: both workers are asked at once for the same, and
// meet in a room at the prefill worker's bootstrap server. The client is given
// the decode worker's answer; the prefill worker's is read and dropped.
func bootstrap(h *handover) *upstream.Failure {
	h.prefill.Unstream()
	room := rand.Int64N(1<<63 - 1<<20) // below 2^63, with room above for an engine that counts on
	host, port := h.from.Bootstrap()
	member := append([]byte(`"bootstrap_host":`), openai.AppendString(nil, host)...)
	member = strconv.AppendInt(append(member, `,"bootstrap_port":`...), int64(port), 10)
	member = strconv.AppendInt(append(member, `,"bootstrap_room":`...), room, 10)
	h.prefill.Add(member)
	h.decode.Add(member)
	if rank := h.x.placing.at.PrefillRank; rank >= 0 {
		h.decode.Add(strconv.AppendInt([]byte(`"disagg_prefill_dp_rank":`), int64(rank), 10))
	}
	h.computeBeside()
	return nil
}

// isAborted says that a reply is no answer: SGLang says 200 of a prefill that it
// gave up, and the decode worker would wait for it.
func isAborted(reply []byte) bool {
	_, choices := memberOf(reply, "choices")
	_, finish := memberOf(firstOf(choices), "finish_reason")
	return string(finish) == `"abort"`
}

// isUnfetched says that an error is SGLang's word for a prompt that was computed, or was to be, and did not come over to
// the other worker.
func isUnfetched(reply []byte) bool { return bytes.Contains(reply, []byte("KVTransferError")) }

// firstOf is the first element of an array; nil: there is none.
func firstOf(array []byte) []byte {
	w := openai.Walker{B: array}
	if !w.Enter('[') || !w.Element() {
		return nil
	}
	return w.Span().Of(array)
}

// contextFirst is TensorRT-LLM's way: the context server computes the prompt and
// the first token, and its parameters go to the generation server with another
// request_type, the prompt's tokens, and what it counted. Where that token was
// the last one, the context server's reply is the answer: all as TensorRT-LLM's
// own disaggregated server does it (openai_disagg_service.py).
func contextFirst(h *handover) *upstream.Failure {
	id := strconv.AppendInt(nil, 1<<42+rand.Int64N(1<<63-1-1<<42), 10) // smaller ones are a server's own
	h.prefill.Unstream()
	h.prefill.Add(append(append([]byte(`"disaggregated_params":{"request_type":"context_only","disagg_request_id":`), id...), '}'))
	if f := h.compute(); f != nil {
		return f
	}
	reply := h.call.Payload()
	_, choices := memberOf(reply, "choices")
	choice := firstOf(choices)
	_, finish := memberOf(choice, "finish_reason")
	member, params := memberOf(choice, "disaggregated_params")
	switch string(finish) {
	case `"length"`, `"not_finished"`, "null", "":
	default:
		h.answered, h.said = true, time.Time{}
		h.call.Cut(member)
		tokens, _ := memberOf(h.call.Payload(), "prompt_token_ids") // nor did the client ask for these
		h.call.Cut(tokens)
		return nil
	}
	o, ok := openai.ReadOriginal(params)
	if !ok {
		return h.unsaid("disaggregated_params")
	}
	d := openai.Draft{Original: o}
	d.Set("request_type", []byte(`"generation_only"`))
	d.Set("disagg_request_id", id)
	if _, usage := memberOf(reply, "usage"); isObject(usage) {
		d.Set("ctx_usage", usage)
	}
	h.decode.Add(d.AppendTo([]byte(`"disaggregated_params":`)))
	if _, tokens := memberOf(reply, "prompt_token_ids"); len(tokens) > 0 && tokens[0] == '[' {
		h.decode.Set(promptTokens(h.x.route.Kind), tokens)
	}
	return nil
}

// promptTokens is where a route of TensorRT-LLM takes a prompt's tokens.
func promptTokens(k openai.Kind) string {
	if k == openai.KindText {
		return "prompt"
	}
	return "prompt_token_ids"
}

func isObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }

// direct is Dynamo's way, behind a frontend in direct mode: it has a protocol of
// its own and only needs to hear which workers.
func direct(h *handover) *upstream.Failure {
	more := appendHeader(nil, "x-prefill-instance-id", h.from.Settings.Instance)
	if rank := h.x.placing.at.PrefillRank; rank >= 0 {
		more = appendHeader(more, "x-prefill-dp-rank", strconv.Itoa(rank))
	}
	h.decode.more = string(more)
	return nil
}

// memberOf finds a member of the object that b begins with, and its value; nil:
// there is none. Both are sub-slices of b.
func memberOf(b []byte, name string) (member, value []byte) {
	o, ok := openai.ReadOriginal(b)
	if !ok {
		return nil, nil
	}
	m := o.Member(name)
	if m == nil {
		return nil, nil
	}
	return b[m.Key:m.Value.End:m.Value.End], m.Value.Of(b)
}
