// Steering: what a request says itself of where it is to go, in headers and in fields of its body.
package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"kvasir/kvroute"
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

// steer reads what the request says of where it is to go, if the configuration
// lets clients say so. The fields never reach a worker: they are among what
// splice takes out, and the headers are among requestDrops.
func (x placer) steer() *apiError {
	x.salt()
	if !x.state.settings.Routing.Overrides {
		return nil
	}
	s := &x.placing.steering
	if len(x.req.strip) > 0 { // nvext is one of those
		if err := s.readBody(&x.req); err != nil {
			return err
		}
	}
	if err := s.readHeaders(x.ctx.Request.Header.RawHeaders()); err != nil {
		return err
	}
	s.pin.Worker, s.pin.Prefill = x.state.workerCalled(s.pin.Worker), x.state.workerCalled(s.pin.Prefill)
	if s.pin.Prefill != "" && x.route.generates() && x.state.handsOver && !x.req.handsOver() {
		return notHandedOver("The request names a prefill worker, and those compute only")
	}
	return nil
}

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
func (s *steering) readHeaders(lines []byte) *apiError {
	for len(lines) > 0 {
		var line []byte
		line, lines = cutLine(lines)
		if len(line) < 8 || line[0]|0x20 != 'x' || line[1] != '-' {
			continue
		}
		name, value := splitField(line)
		what := name[2:]
		if foldHas(what, "dynamo-") {
			what = what[len("dynamo-"):]
		}
		var err *apiError
		switch {
		case foldIs(what, "worker-instance-id"):
			s.pin.Worker = string(value)
		case foldIs(what, "prefill-instance-id"):
			s.pin.Prefill = string(value)
		case foldIs(what, "dp-rank"), foldIs(what, "data-parallel-rank"): // Dynamo's name, and the engines'
			s.pin.Rank, s.pin.Ranked, err = rankIn(name, value)
		case foldIs(what, "prefill-dp-rank"):
			s.pin.PrefillRank, s.pin.PrefillRanked, err = rankIn(name, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func rankIn(name, value []byte) (rank int, given bool, err *apiError) {
	if len(value) == 0 {
		return 0, false, nil
	}
	n, fault := strconv.ParseUint(string(value), 10, 16)
	if fault != nil {
		return 0, false, invalid(strings.ToLower(string(name)), "The header %s must be the number of a data-parallel rank, from 0 on", strings.ToLower(string(name)))
	}
	return int(n), true, nil
}

// An extension is what is read of the body's nvext.
type extension struct {
	Backend instanceID      `json:"backend_instance_id"`
	Prefill instanceID      `json:"prefill_worker_id"`
	Decode  instanceID      `json:"decode_worker_id"`
	Config  *configOverride `json:"router_config_override"`
}

// A configOverride is the object router_config_override. Its other members are
// of Dynamo's own router.
type configOverride struct {
	Credit      *float64 `json:"overlap_score_credit"`
	Scale       *float64 `json:"prefill_load_scale"`
	Temperature *float64 `json:"router_temperature"`
}

// An instanceID is a number, as Dynamo has them, or a name.
type instanceID string

// UnmarshalJSON is json.Unmarshaler.
func (i *instanceID) UnmarshalJSON(b []byte) error {
	switch {
	case string(b) == "null":
		return nil
	case b[0] == '"':
		return json.Unmarshal(b, (*string)(i))
	case b[0] >= '0' && b[0] <= '9' && len(b) <= 20 && !bytes.ContainsAny(b, ".eE"):
		*i = instanceID(b)
		return nil
	}
	return errors.New("an instance id is a string or a whole number")
}

// readBody reads nvext and router_config_override of the body's top level.
func (s *steering) readBody(r *request) *apiError {
	for _, p := range r.parameters {
		var err *apiError
		switch key := r.keyOf(p); string(key) {
		case "nvext":
			var e extension
			if json.Unmarshal(p.value.of(r.body), &e) != nil {
				return invalid("nvext", "nvext must be an object; backend_instance_id, prefill_worker_id and decode_worker_id in it are strings or whole numbers, and the weights in its router_config_override numbers")
			}
			s.pin.Worker, s.pin.Prefill = string(e.Backend), string(e.Prefill)
			if e.Decode != "" {
				s.pin.Worker = string(e.Decode)
			}
			err = s.weigh("nvext.router_config_override", e.Config)
		case "router_config_override":
			var c *configOverride
			if json.Unmarshal(p.value.of(r.body), &c) != nil {
				return invalid("router_config_override", "router_config_override must be an object; overlap_score_credit, prefill_load_scale and router_temperature in it are numbers")
			}
			err = s.weigh("router_config_override", c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// weigh takes weights over that are within bounds.
func (s *steering) weigh(param string, c *configOverride) *apiError {
	if c == nil {
		return nil
	}
	for name, v := range map[string]*float64{"overlap_score_credit": c.Credit, "prefill_load_scale": c.Scale, "router_temperature": c.Temperature} {
		if v != nil && !(*v >= 0 && *v <= maxWeight) || v != nil && math.IsNaN(*v) {
			return invalid(param+"."+name, "%s must be a number from 0 to %d", name, maxWeight)
		}
	}
	s.override = &kvroute.Override{Credit: c.Credit, Scale: c.Scale, Temperature: c.Temperature}
	return nil
}

// wrongPin tells a client that the worker it names cannot take its request.
func wrongPin(e *kvroute.PinError) *apiError {
	return &apiError{status: 400, kind: "invalid_request_error", code: "worker_not_found", message: "This request cannot be placed where it asks to be: " + e.Error()}
}
