// Nvext: the members of a body by which a request chooses its workers and its weights.
package proxy

import (
	"bytes"
	"strconv"

	"kvasir/kvroute"
)

// A choiceAt is where a body says where it is to go: in nvext and
// router_config_override of its top level, wherever they stand and however
// their names are written. Zero: it says nothing.
type choiceAt struct {
	nvext   span // the whole value
	backend span // in nvext: backend_instance_id
	prefill span // prefill_worker_id
	decode  span // decode_worker_id
	within  weightsAt
	weights weightsAt // at the top level
}

// A weightsAt is where a router_config_override stands. Its other members are
// of Dynamo's own router.
type weightsAt struct {
	whole       span
	credit      span // overlap_score_credit
	scale       span // prefill_load_scale
	temperature span // router_temperature
}

// handover reads a member that only Kvasir may send. What a request may choose
// by is located; its types are judged only where requests may choose.
func (r *request) handover(m *members) {
	switch string(m.key) {
	case "nvext":
		r.nvext()
	case "router_config_override":
		r.weights(&r.choice.weights)
	default:
		r.skip()
	}
	r.noteHandover(m)
}

func (r *request) nvext() {
	at := &r.choice
	start := r.pos
	if r.peek() != '{' {
		at.nvext = r.skip()
		return
	}
	m := r.object()
	for r.member(&m) {
		switch string(m.key) {
		case "backend_instance_id":
			at.backend = r.skip()
		case "prefill_worker_id":
			at.prefill = r.skip()
		case "decode_worker_id":
			at.decode = r.skip()
		case "router_config_override":
			r.weights(&at.within)
		default:
			r.skipUnknown(&m)
		}
	}
	r.fault.in(m.key)
	at.nvext = span{int32(start), int32(r.pos)}
}

// weights locates the weights of a router_config_override.
func (r *request) weights(at *weightsAt) {
	start := r.pos
	if r.peek() != '{' {
		at.whole = r.skip()
		return
	}
	m := r.object()
	for r.member(&m) {
		switch string(m.key) {
		case "overlap_score_credit":
			at.credit = r.skip()
		case "prefill_load_scale":
			at.scale = r.skip()
		case "router_temperature":
			at.temperature = r.skip()
		default:
			r.skipUnknown(&m)
		}
	}
	r.fault.in(m.key)
	at.whole = span{int32(start), int32(r.pos)}
}

// readBody takes over what the body says. Of weights in both places those at
// the top level count.
func (s *steering) readBody(r *request) *apiError {
	if err := s.readPins(r); err != nil {
		return err
	}
	if err := s.weigh("nvext.router_config_override", r.body, &r.choice.within); err != nil {
		return err
	}
	return s.weigh("router_config_override", r.body, &r.choice.weights)
}

// readPins takes over the workers that nvext names.
func (s *steering) readPins(r *request) *apiError {
	at := &r.choice
	good := objectOrNothing(at.nvext.of(r.body))
	read := func(value span) (id string) {
		if good {
			id, good = instanceID(value.of(r.body))
		}
		return id
	}
	backend, decode, prefill := read(at.backend), read(at.decode), read(at.prefill)
	if !good {
		return invalid("nvext", "nvext must be an object; backend_instance_id, prefill_worker_id and decode_worker_id in it are strings or whole numbers")
	}
	s.pin.Worker, s.pin.Prefill = backend, prefill
	if decode != "" {
		s.pin.Worker = decode
	}
	return nil
}

// instanceID reads the id of a worker: a number, as Dynamo has them, or a name.
// "": it names none.
func instanceID(value []byte) (id string, good bool) {
	switch {
	case len(value) == 0 || value[0] == 'n':
		return "", true
	case value[0] == '"':
		return string(appendUnescaped(nil, value[1:len(value)-1])), true
	case value[0] >= '0' && value[0] <= '9' && len(value) <= 20 && !bytes.ContainsAny(value, ".eE"):
		return string(value), true
	}
	return "", false
}

// weigh takes weights over that are within bounds.
func (s *steering) weigh(param string, body []byte, at *weightsAt) *apiError {
	whole := at.whole.of(body)
	if !objectOrNothing(whole) {
		return invalid(param, "%s must be an object; overlap_score_credit, prefill_load_scale and router_temperature in it are numbers", param)
	}
	if len(whole) == 0 || whole[0] == 'n' {
		return nil
	}
	var o kvroute.Override
	for _, w := range [...]struct {
		name string
		at   span
		to   **float64
	}{
		{"overlap_score_credit", at.credit, &o.Credit},
		{"prefill_load_scale", at.scale, &o.Scale},
		{"router_temperature", at.temperature, &o.Temperature},
	} {
		value := w.at.of(body)
		if len(value) == 0 || value[0] == 'n' {
			continue
		}
		v, err := strconv.ParseFloat(string(value), 64)
		if err != nil || v < 0 || v > maxWeight {
			return invalid(param+"."+w.name, "%s must be a number from 0 to %d", w.name, maxWeight)
		}
		*w.to = &v
	}
	s.override = &o
	return nil
}

// objectOrNothing says whether value is an object, null or not there.
func objectOrNothing(value []byte) bool {
	return len(value) == 0 || value[0] == '{' || value[0] == 'n'
}
