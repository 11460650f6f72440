// Locating: the prompt of a request as placement knows it, in tokens where they can be had.

package proxy

import (
	"context"
	"errors"
	"sync"
	"time"

	"kvasir/classify"
	"kvasir/kvroute"
	"kvasir/kvroute/prompt"
	"kvasir/openai"
	"kvasir/proxy/tokens"
	"kvasir/upstream"
	"kvasir/wire"
)

// A placing is what placement needs to know of a request: its prompt, and what the request
// itself says of its placement. It keeps memory for the next request's.
type placing struct {
	steering // what the request says of its own placement
	prompt   kvroute.Prompt
	ids      *[]uint32 // of prompt, lent
	text     []byte    // of prompt where there are no tokens, lent

	salt   promptSalt
	tokens int // of the prompt, estimated where they are not known
}

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
func (s *state) prices() bool { return s.settings.Routing.Policy.Priced() }

// locate fills pl.placing.prompt, by which placement knows the blocks that the request
// would meet: the tokens of the body as it will be sent (pl.edit is done), under the seed
// of its adapter and salt. Where the tokens are not known, blocks of the prompt's text take
// their place; they overlap only with what Kvasir itself placed before. locate notes in said how long it took, and why text stands in.
func locate(pl *plan, sources *tokens.Sources, said *placed) {
	p := &pl.placing
	p.giveBack()
	p.prompt.Reset()
	*said = placed{}
	if !pl.route.Generates() || !pl.state.prices() {
		return
	}
	begin := time.Now()
	source := sources.Of(pl.model)
	p.prompt.Seed = upstream.SeedOf(source.Listed, p.salt.text)
	err := source.Err
	if err == nil {
		p.ids, err = tokensOf(source.Model, pl.route.Kind, pl.body, &pl.edit)
	}
	if err == nil {
		p.prompt.IDs = *p.ids
	} else {
		p.text = promptText(&pl.req, decisionOf(pl.verdict))
		p.prompt.Text = p.text
		said.approximate = approximation(err)
	}
	said.located = time.Since(begin)
}

// tokensOf cuts a body as it will be sent. The tokens are lent: giveIDs takes them
// back.
func tokensOf(m *prompt.Model, k openai.Kind, body []byte, edit *openai.Splices) (ids *[]uint32, err error) {
	n := edit.Length(body)
	if n > maxTokenized {
		return nil, errTooLongToCut
	}
	if !edit.Empty() {
		sent := wire.TakeBuffer(n)
		defer wire.GiveBuffer(sent)
		body = edit.AppendTo(sent[:0], body)
	}
	ids = idSlices.Get().(*[]uint32)
	switch ctx := context.Background(); k { // whoever is asked has a clock of his own
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
	if err == nil && len(*ids) == 0 {
		err = prompt.ErrRequest
	}
	if err != nil {
		giveIDs(ids)
		return nil, err
	}
	return ids, nil
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

// promptText makes text of what the prompt is made of, in the order in which engines
// have it: requests that begin alike are to begin alike here. The text is lent:
// wire.GiveBuffer takes it back.
func promptText(r *openai.Request, d *classify.Decision) []byte {
	system := ""
	if d != nil {
		system = d.SystemPrompt
	}
	spans := [...]openai.Span{r.Fields.Tools, r.Fields.System, r.Fields.Instructions, r.MessagesAt, r.AskedAt}
	n := len(system)
	for _, at := range spans {
		n += len(at.Of(r.Body))
	}
	text := append(wire.TakeBuffer(max(n, 1))[:0], system...)
	for _, at := range spans {
		text = append(text, at.Of(r.Body)...)
	}
	return text
}

// query makes the question to placement. aggregate says that one worker is to compute the
// prompt and to answer, fallback that another model may be asked after this one.
func (pl *plan) query(now time.Time, aggregate, fallback bool) kvroute.Query {
	p := &pl.placing
	q := kvroute.Query{
		Now: now, Model: pl.model, Tokens: pl.size / bytesPerToken, Aggregate: aggregate,
		Pin: p.pin, Override: p.override, Quiet: !pl.req.Stream || !pl.req.GeneratesOne(), NoPrompt: !pl.route.Generates(),
	}
	q.Strict = fallback && p.pin.Worker == "" // a request for one worker is for no other model
	if p.prompt.IDs != nil || p.prompt.Text != nil {
		q.Prompt, q.Tokens = &p.prompt, p.prompt.Tokens()
	}
	if p.pin.Prefill != "" && !pl.state.handsOver {
		q.Aggregate = false // the request names a prefill worker where there is none: it is to hear so
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
