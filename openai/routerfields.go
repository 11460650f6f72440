// Router fields: the members of a body that routers send to engines, and by which a client may choose its workers.

package openai

import "bytes"

// A Choice is where a body says which workers are to answer it: in the members
// nvext and router_config_override of its top-level object, with names written in
// any way that JSON allows. Null counts as given; a zero Span is absent. Only their
// places are found when a body is parsed: their types are judged where the
// configuration lets requests choose.
type Choice struct {
	Nvext   Span      // the value of nvext
	Backend Span      // in nvext: backend_instance_id
	Prefill Span      // in nvext: prefill_worker_id
	Decode  Span      // in nvext: decode_worker_id
	Within  WeightsAt // in nvext: router_config_override
	Weights WeightsAt // router_config_override of the top level
}

// A WeightsAt is where a router_config_override stands.
type WeightsAt struct {
	Whole       Span // the value
	Credit      Span // overlap_score_credit
	Scale       Span // prefill_load_scale
	Weight      Span // overlap_score_weight or kv_overlap_score_weight, what older clients of Dynamo send in place of both
	Temperature Span // router_temperature
	Other       Span // the first member that is none of these
}

// routerField reads a member that only Kvasir may send, and notes where it stands.
func (p *parser) routerField(m *members) {
	switch string(m.key) {
	case "nvext":
		p.nvext()
	case "router_config_override":
		p.weights(&p.into.Choice.Weights)
	default:
		p.json.skip()
	}
	p.noteRouterField(m)
}

func (p *parser) nvext() {
	at := &p.into.Choice
	start := p.json.pos
	if p.json.peek() != '{' {
		at.Nvext = p.json.skip()
		return
	}
	m := p.json.object()
	for p.json.member(&m) {
		switch string(m.key) {
		case "backend_instance_id":
			at.Backend = p.json.skip()
		case "prefill_worker_id":
			at.Prefill = p.json.skip()
		case "decode_worker_id":
			at.Decode = p.json.skip()
		case "router_config_override":
			p.weights(&at.Within)
		default:
			skipUnknown(p.json, &m)
		}
	}
	at.Nvext = p.json.since(start)
}

// weights locates the weights of a router_config_override.
func (p *parser) weights(at *WeightsAt) {
	start := p.json.pos
	if p.json.peek() != '{' {
		at.Whole = p.json.skip()
		return
	}
	m := p.json.object()
	for p.json.member(&m) {
		switch string(m.key) {
		case "overlap_score_credit":
			at.Credit = p.json.skip()
		case "prefill_load_scale":
			at.Scale = p.json.skip()
		case "overlap_score_weight", "kv_overlap_score_weight":
			at.Weight = p.json.skip()
		case "router_temperature":
			at.Temperature = p.json.skip()
		default:
			if skipUnknown(p.json, &m); !at.Other.Given() {
				at.Other = p.json.since(m.start())
			}
		}
	}
	at.Whole = p.json.since(start)
}

// noteRouterField notes the member just read, so that no worker is sent it. By
// such members a router tells two engines of each other. From a client they name
// hosts to connect to, and crash engines (SGLang #40125: a bootstrap_room that
// comes twice takes both schedulers down).
func (p *parser) noteRouterField(m *members) {
	if p.json.failed() {
		return
	}
	if len(p.into.strip) == maxRouterFields {
		p.json.stop(faultOther, m.start(), "More than 64 parameters that only a router may send. Send none of them")
		return
	}
	p.into.strip = append(p.into.strip, p.json.since(m.start()))
}

// maxRouterFields is how many such members one body may have: five times as many
// as engines know, and a bound on the pieces that a body falls into without them.
const maxRouterFields = 64

// isRouterField recognises the members that only a router may send to an engine.
func isRouterField(key []byte) bool {
	switch string(key) {
	case "kv_transfer_params", "ec_transfer_params", "disaggregated_params", "nvext",
		"router_config_override", "routed_dp_rank", "disagg_prefill_dp_rank", "data_parallel_rank",
		"request_id", "rid": // vLLM's, SGLang's: connectors read addresses from ids, and two requests of one id are one
		return true
	}
	return bytes.HasPrefix(key, []byte("bootstrap_"))
}

// extraArgs reads vLLM's vllm_xargs. Its members land in the same map as
// kv_transfer_params, so the same names are taken out of it; the others are for
// extensions, and nobody knows what those make of them.
func (p *parser) extraArgs() {
	if p.json.peek() != '{' {
		p.json.skip()
		return
	}
	m := p.json.object()
	for p.json.member(&m) {
		switch {
		case isRouterField(m.key):
			p.json.skip()
			p.noteRouterField(&m)
		case !extraNames.refuse(p.json, &m):
			p.texts.unknown(&m, RoleOther)
		}
	}
}
