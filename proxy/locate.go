// Locating: the prompt of a request as placement knows it, in tokens where they can be had.
package proxy

import (
	"context"
	"errors"
	"sync"
	"time"

	"kvasir/kvroute"
	"kvasir/kvroute/prompt"
	"kvasir/openai"
	"kvasir/proxy/tokens"
	"kvasir/upstream"
	"kvasir/wire"
)

// A placing is a request's prompt, and where it went. It keeps memory for the next
// request's.
type placing struct {
	steering
	prompt kvroute.Prompt
	ids    *[]uint32         // of prompt, lent
	text   []byte            // of prompt where there are no tokens, lent
	at     kvroute.Placement // of the try that is under way: here a pointer to it costs nothing

	salt     string // that the prompt is computed under; "": none
	ownSalt  bool   // it is another one than the client's: spliced
	saltless bool   // but for this worker, which takes none
	tokens   int    // of the prompt, estimated where they are not known
}

// A placer is a request that is to be placed, and was: it says where it may go, and
// what came of that.
type placer struct{ *exchange }

// idSlices lends the memory of tokens: a stream needs them only until it begins.
var idSlices = sync.Pool{New: func() any { return new([]uint32) }}

const (
	maxTokenized = 4 << 20 // bytes of a body that is cut into tokens: about 80 ms, 400 ms of one word without end
	maxIDsKept   = 1 << 20 // tokens of memory that goes back into the pool
)

// giveIDs takes the memory back, but for giants.
func giveIDs(ids *[]uint32) {
	if cap(*ids) <= maxIDsKept {
		idSlices.Put(ids)
	}
}

// prices says whether the policy asks for what workers hold. The others get no tokens.
func (s *state) prices() bool {
	return s.settings.Routing.Policy == "predict" || s.settings.Routing.Policy == "kv"
}

// locate finds out which blocks the request would meet: its tokens, of the body as
// it will be sent, under the seed of its adapter and salt. Where there are no tokens
// blocks of text stand in, which only meet those of own placements.
func (x placer) locate() {
	p, f := &x.placing, &x.facts.placed
	p.giveBack()
	p.prompt.Reset()
	*f = placed{}
	if x.facts.fallbacks > 0 {
		p.pin = kvroute.Pin{} // what was asked for is no worker of this model
	}
	if !x.route.Generates() || !x.state.prices() {
		return
	}
	begin := time.Now()
	source := x.p.tokens.Of(x.model)
	p.prompt.Seed = upstream.SeedOf(source.Listed, p.salt)
	err := source.Err
	if err == nil {
		err = x.tokens(source.Model)
	}
	if err != nil {
		x.wording()
		f.approximate = approximation(err)
	}
	f.located = time.Since(begin)
}

// tokens cuts the body as it will be sent.
func (x placer) tokens(m *prompt.Model) error {
	n := x.edit.Length(x.body)
	if n > maxTokenized {
		return errTooLongToCut
	}
	body := x.body
	if !x.edit.Empty() {
		sent := wire.TakeBuffer(n)
		defer wire.GiveBuffer(sent)
		body = sent[:0]
		x.pieces = x.edit.Segments(x.pieces[:0], x.body)
		for _, piece := range x.pieces {
			body = append(body, piece...)
		}
	}
	p := &x.placing
	ids := idSlices.Get().(*[]uint32)
	var err error
	switch ctx := context.Background(); x.route.Kind { // whoever is asked has a clock of his own
	case openai.KindChat:
		*ids, err = m.Chat(ctx, (*ids)[:0], body)
	case openai.KindText:
		*ids, err = m.Completion(ctx, (*ids)[:0], body) // of several, most often alike, the first stands for all
	case openai.KindResponses:
		*ids, err = m.Responses(ctx, (*ids)[:0], body)
	case openai.KindMessages:
		*ids, err = m.Messages(ctx, (*ids)[:0], body)
	default:
		err = prompt.ErrUnsupported
	}
	if err != nil || len(*ids) == 0 {
		giveIDs(ids)
		if err == nil {
			err = prompt.ErrRequest
		}
		return err
	}
	p.ids, p.prompt.IDs = ids, *ids
	return nil
}

var errTooLongToCut = errors.New("the body is longer than is cut into tokens")

// approximation is why there are no tokens, as a metric's label.
func approximation(err error) string {
	switch {
	case errors.Is(err, tokens.ErrPending):
		return "pending"
	case errors.Is(err, errTooLongToCut):
		return "length"
	case errors.Is(err, prompt.ErrNone):
		return "none"
	case errors.Is(err, prompt.ErrNoTemplate):
		return "no_template"
	case errors.Is(err, prompt.ErrTemplate):
		return "template"
	case errors.Is(err, prompt.ErrUnsupported):
		return "unsupported"
	case errors.Is(err, prompt.ErrRequest):
		return "request"
	}
	return "source"
}

// wording makes text of what the prompt is made of, in the order in which engines
// have it: requests that begin alike are to begin alike here.
func (x placer) wording() {
	r, p := &x.req, &x.placing
	system := ""
	if d := x.decision(); d != nil {
		system = d.SystemPrompt
	}
	spans := [...]openai.Span{r.Fields.Tools, r.Fields.System, r.Fields.Instructions, r.MessagesAt, r.AskedAt}
	n := len(system)
	for _, at := range spans {
		n += len(at.Of(x.body))
	}
	p.text = append(wire.TakeBuffer(max(n, 1))[:0], system...)
	for _, at := range spans {
		p.text = append(p.text, at.Of(x.body)...)
	}
	p.prompt.Text = p.text
}

// query is what placement is asked.
func (j *journey) query() kvroute.Query {
	p := &j.placing
	q := kvroute.Query{
		Now: j.arrived(), Model: j.model, Tokens: j.prompt / bytesPerToken,
		Tried: j.tried, TriedPrefill: j.triedPrefill, Aggregate: j.aggregate,
		Pin: p.pin, Override: p.override, Quiet: !j.req.Stream || !j.req.GeneratesOne(), NoPrompt: !j.route.Generates(),
	}
	q.Strict = j.hasFallback() && p.pin.Worker == "" // a request for one worker is for no other model
	if p.pin.Prefill != "" && !j.state.handsOver {
		q.Aggregate = false // the request names a prefill worker where there is none: it is to hear so
	}
	if j.last != nil {
		q.Now = time.Now()
	}
	if p.prompt.IDs != nil || p.prompt.Text != nil {
		q.Prompt, q.Tokens = &p.prompt, p.prompt.Tokens()
	}
	return q
}

// giveBack gives back the memory of the prompt's tokens. Their names stay, by which
// the placement that was made knows its blocks: for another one the prompt has to be
// located again.
func (p *placing) giveBack() {
	if p.ids != nil {
		giveIDs(p.ids)
		p.ids, p.prompt.IDs = nil, noIDs
	}
	if p.text != nil {
		wire.GiveBuffer(p.text[:cap(p.text)])
		p.text, p.prompt.Text = nil, nil
	}
}

// forget makes p ready for another request.
func (p *placing) forget() {
	p.giveBack()
	large := p.tokens > maxIDsKept
	p.prompt.Reset()
	*p = placing{prompt: p.prompt}
	if large {
		*p = placing{}
	}
}

var noIDs = []uint32{} // of a prompt whose tokens are known, and gone
