// Steering: what a request says itself of where it is to go, in headers and in fields of its body.
package proxy

import (
	"strconv"
	"strings"

	"kvasir/header"
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
	if err := s.readBody(&x.req); err != nil {
		return err
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
		line, lines = header.CutLine(lines)
		if len(line) < 8 || line[0]|0x20 != 'x' || line[1] != '-' {
			continue
		}
		name, value := header.SplitField(line)
		what := name[2:]
		if header.HasPrefix(what, "dynamo-") {
			what = what[len("dynamo-"):]
		}
		var err *apiError
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

// wrongPin tells a client that the worker it names cannot take its request.
func wrongPin(e *kvroute.PinError) *apiError {
	return &apiError{status: 400, kind: "invalid_request_error", code: "worker_not_found", message: "This request cannot be placed where it asks to be: " + e.Error()}
}
