// Nvext: the members of a body by which a request chooses its workers and its weights.
package openai

// A choiceAt is where a body says where it is to go: in nvext and
// router_config_override of its top level, wherever they stand and however
// their names are written. Zero: it says nothing.
type choiceAt struct {
	Nvext   Span // the whole value
	Backend Span // in nvext: backend_instance_id
	Prefill Span // prefill_worker_id
	Decode  Span // decode_worker_id
	Within  WeightsAt
	Weights WeightsAt // at the top level
}

// A WeightsAt is where a router_config_override stands. Its other members are
// of Dynamo's own router.
type WeightsAt struct {
	Whole       Span
	Credit      Span // overlap_score_credit
	Scale       Span // prefill_load_scale
	Temperature Span // router_temperature
}

// handover reads a member that only Kvasir may send. What a request may choose
// by is located; its types are judged only where requests may choose.
func (r *Request) handover(m *members) {
	switch string(m.key) {
	case "nvext":
		r.nvext()
	case "router_config_override":
		r.weights(&r.Choice.Weights)
	default:
		r.skip()
	}
	r.noteHandover(m)
}

func (r *Request) nvext() {
	at := &r.Choice
	start := r.pos
	if r.peek() != '{' {
		at.Nvext = r.skip()
		return
	}
	m := r.object()
	for r.member(&m) {
		switch string(m.key) {
		case "backend_instance_id":
			at.Backend = r.skip()
		case "prefill_worker_id":
			at.Prefill = r.skip()
		case "decode_worker_id":
			at.Decode = r.skip()
		case "router_config_override":
			r.weights(&at.Within)
		default:
			r.skipUnknown(&m)
		}
	}
	r.fault.in(m.key)
	at.Nvext = Span{int32(start), int32(r.pos)}
}

// weights locates the weights of a router_config_override.
func (r *Request) weights(at *WeightsAt) {
	start := r.pos
	if r.peek() != '{' {
		at.Whole = r.skip()
		return
	}
	m := r.object()
	for r.member(&m) {
		switch string(m.key) {
		case "overlap_score_credit":
			at.Credit = r.skip()
		case "prefill_load_scale":
			at.Scale = r.skip()
		case "router_temperature":
			at.Temperature = r.skip()
		default:
			r.skipUnknown(&m)
		}
	}
	r.fault.in(m.key)
	at.Whole = Span{int32(start), int32(r.pos)}
}
