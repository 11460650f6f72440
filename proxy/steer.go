// Steering: what a request says itself of where it is to go, in headers and in fields of its body.

package proxy

import (
	"bytes"
	"strconv"
	"strings"

	"kvasir/header"
	"kvasir/kvroute"
	"kvasir/openai"
)

// A steering is what a request says of its own placement. The names are Dynamo's
// (lib/llm, nvext.md): a header comes before a field of the body, and
// decode_worker_id before backend_instance_id.
type steering struct {
	pin      kvroute.Pin
	override *kvroute.Override // nil: it says nothing of weights
}

// maxWeight bounds the weights that a request may set.
const maxWeight = 1000

// steer reads what a request says of where it is to go, if the configuration lets
// clients say so. Whether there is such a worker is found out when it is placed. The
// fields never reach a worker: they are among what splice takes out, and the headers are
// among those that do not go on.
func steer(pl *plan) (at steering, err *openai.Error) {
	s := pl.state
	if !s.settings.Routing.Overrides {
		return steering{}, nil
	}
	if err = at.readBody(&pl.req); err != nil {
		return steering{}, err
	}
	if err = at.readHeaders(pl.headers); err != nil {
		return steering{}, err
	}
	at.pin.Worker, at.pin.Prefill = s.workerCalled(at.pin.Worker), s.workerCalled(at.pin.Prefill)
	if at.pin.Prefill != "" && pl.route.Generates() && s.handsOver && !pl.req.HandsOver() {
		return steering{}, notHandedOver("The request names a prefill worker, and those compute only")
	}
	return at, nil
}

// noPin names no worker.
var noPin = kvroute.Pin{}

// workerCalled is the name of the worker that an id stands for: its configured
// instance, or its name. An unknown one stays as it is: who places says what
// there is.
func (s *state) workerCalled(id string) string {
	if name, ok := s.instances[id]; ok {
		return name
	}
	return id
}

// readHeaders reads x-worker-instance-id and its kin in one pass: nearly every
// request has none of them. x-dynamo- may stand in place of x-.
func (s *steering) readHeaders(lines []byte) *openai.Error {
	for len(lines) > 0 {
		var line []byte
		line, lines = header.CutLine(lines)
		if len(line) < 8 || line[0]|0x20 != 'x' || line[1] != '-' {
			continue
		}
		name, value := header.SplitField(line)
		what := name[2:]
		if header.HasPrefix(what, "dynamo-") {
			what = what[len("dynamo-"):]
		}
		var err *openai.Error
		switch {
		case header.Is(what, "worker-instance-id"):
			s.pin.Worker = string(value)
		case header.Is(what, "prefill-instance-id"):
			s.pin.Prefill = string(value)
		case header.Is(what, "dp-rank"), header.Is(what, "data-parallel-rank"): // Dynamo's name, and the engines'
			s.pin.Rank, s.pin.Ranked, err = rankIn(name, value)
		case header.Is(what, "prefill-dp-rank"):
			s.pin.PrefillRank, s.pin.PrefillRanked, err = rankIn(name, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func rankIn(name, value []byte) (rank int, given bool, err *openai.Error) {
	if len(value) == 0 {
		return 0, false, nil
	}
	n, fault := strconv.ParseUint(string(value), 10, 16)
	if fault != nil {
		return 0, false, openai.Invalid(strings.ToLower(string(name)), "The header %s must be the number of a data-parallel rank, from 0 on", strings.ToLower(string(name)))
	}
	return int(n), true, nil
}

// wrongPin tells a client that the worker it names cannot take its request.
func wrongPin(e *kvroute.PinError) *openai.Error {
	return &openai.Error{Status: 400, Type: "invalid_request_error", Code: "worker_not_found", Message: "This request cannot be placed where it asks to be: " + e.Error()}
}

// readBody takes over what the body says. Of weights in both places those at
// the top level count.
func (s *steering) readBody(r *openai.Request) *openai.Error {
	if err := s.readPins(r); err != nil {
		return err
	}
	if err := s.weigh("nvext.router_config_override", r.Body, &r.Choice.Within); err != nil {
		return err
	}
	return s.weigh("router_config_override", r.Body, &r.Choice.Weights)
}

// readPins takes over the workers that nvext names.
func (s *steering) readPins(r *openai.Request) *openai.Error {
	at := &r.Choice
	good := objectOrNothing(at.Nvext.Of(r.Body))
	read := func(value openai.Span) (id string) {
		if good {
			id, good = instanceID(value.Of(r.Body))
		}
		return id
	}
	backend, decode, prefill := read(at.Backend), read(at.Decode), read(at.Prefill)
	if !good {
		return openai.Invalid("nvext", "nvext must be an object; backend_instance_id, prefill_worker_id and decode_worker_id in it are strings or whole numbers")
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
		return string(openai.AppendUnescaped(nil, value[1:len(value)-1])), true
	case value[0] >= '0' && value[0] <= '9' && len(value) <= 20 && !bytes.ContainsAny(value, ".eE"):
		return string(value), true
	}
	return "", false
}

// weigh takes weights over that are within bounds.
func (s *steering) weigh(param string, body []byte, at *openai.WeightsAt) *openai.Error {
	whole := at.Whole.Of(body)
	if !objectOrNothing(whole) {
		return openai.Invalid(param, "%s must be an object; overlap_score_credit, prefill_load_scale and router_temperature in it are numbers", param)
	}
	if other := at.Other.Of(body); len(other) > 0 {
		name, _, _ := bytes.Cut(other, []byte(":"))
		return openai.Invalid(param, "%s has the member %s, which has no effect here; overlap_score_credit, overlap_score_weight, prefill_load_scale and router_temperature have", param, openai.Clip(string(bytes.TrimSpace(name))))
	}
	if len(whole) == 0 || whole[0] == 'n' {
		return nil
	}
	var o kvroute.Override
	var weight *float64
	for _, w := range [...]struct {
		name string
		at   openai.Span
		to   **float64
	}{
		{"overlap_score_weight", at.Weight, &weight},
		{"overlap_score_credit", at.Credit, &o.Credit},
		{"prefill_load_scale", at.Scale, &o.Scale},
		{"router_temperature", at.Temperature, &o.Temperature},
	} {
		value := w.at.Of(body)
		if len(value) == 0 || value[0] == 'n' {
			continue
		}
		v, err := strconv.ParseFloat(string(value), 64)
		if err != nil || v < 0 || v > maxWeight {
			return openai.Invalid(param+"."+w.name, "%s must be a number from 0 to %d", w.name, maxWeight)
		}
		*w.to = &v
	}
	if weight != nil { // as Dynamo has read it since it has the other two: 0 also counts no block as held
		if o.Scale == nil {
			o.Scale = weight
		}
		if *weight == 0 && o.Credit == nil {
			o.Credit = weight
		}
	}
	s.override = &o
	return nil
}

// objectOrNothing says whether value is an object, null or not there.
func objectOrNothing(value []byte) bool {
	return len(value) == 0 || value[0] == '{' || value[0] == 'n'
}
