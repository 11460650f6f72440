// Judging: the request to the guards and to the decision, and what both mean for it.
package proxy

import (
	"hash/maphash"
	"net"

	"kvasir/classify"
	"kvasir/openai"
)

// A judgement is what the reply's headers, the log and the metrics say of a
// verdict. Its strings are the configuration's or constants, never the text's.
type judgement struct {
	category   string  // "": not asked for
	confidence float64 // of it
	decision   string
	reasoning  string // on, off, an effort; "": as the client asked
	injected   bool   // the decision's system prompt is in the body
	path       string // of the answer: upstream, cache, blocked, fast_response, error
	guard      string // that blocked
	attack     string // the type of a jailbreak
	score      float64
	judged     bool // the jailbreak guard has
	types      []string
	denied     []string
	redacted   int
	hidden     int // characters that no reader sees
	matched    []classify.Match
	language   string
	complexity string
	unjudged   string // the guard that could not judge and let pass
}

// judge asks the classifier. Nothing of the request is changed yet.
func (x *exchange) judge() {
	c := x.state.classifier
	if c.Idle(x.auto()) || !x.route.Judged() {
		return
	}
	q := x.question()
	q.Client, q.For = x.client(), x
	x.verdict, x.verdictWas = c.Judge(q), true
	books{x.p}.judged(x)
}

// question is the request as the classifier reads it: valid until the body goes.
func (x *exchange) question() *classify.Request {
	q, r := &x.asked, &x.req
	q.Texts = q.Texts[:0]
	x.plain = x.plain[:0]
	for _, t := range r.Content.Texts {
		q.Texts = append(q.Texts, classify.Text{Bytes: x.plainText(t), Role: roles[t.Role], Message: t.Message})
	}
	q.Model, q.Auto, q.Streamed = x.facts.asked, x.auto(), r.Stream
	q.Messages, q.Turns, q.Results = r.Turns.All, r.Turns.User, r.Turns.Results
	q.Tools, q.Images, q.Unread = r.Content.Tools, r.Content.Media, r.Content.Unread
	x.decoded(q)
	return q
}

// Gone says that nobody waits for the verdict: the client has gone, or the proxy ends what is under way.
func (x *exchange) Gone() bool { return x.conn.gone.Load() || x.p.stopping.Load() }

var clientSeed = maphash.MakeSeed()

// client is a number of whose request it is: of its key, else of its address, and of a whole network where one client
// has so many addresses.
func (x *exchange) client() uint64 {
	if x.key != nil {
		return maphash.String(clientSeed, x.key.Name)
	}
	ip := x.ctx.RemoteIP()
	if ip.To4() == nil && len(ip) == net.IPv6len {
		ip = ip[:net.IPv6len/2]
	}
	return maphash.Bytes(clientSeed, ip)
}

// plainText is the text as it is meant: of the body where it can be, else of a
// memory that the exchange keeps.
func (x *exchange) plainText(t openai.Text) []byte {
	if !t.Escaped {
		return t.Inside().Of(x.body)
	}
	start := len(x.plain)
	x.plain = t.AppendTo(x.plain, x.body)
	return x.plain[start:len(x.plain):len(x.plain)]
}

var roles = [...]classify.Role{
	openai.RoleUser: classify.User, openai.RoleSystem: classify.System, openai.RoleAssistant: classify.Assistant, openai.RoleTool: classify.Tool,
	openai.RoleTools: classify.ToolDefinition, openai.RoleDocument: classify.Document, openai.RoleOther: classify.Other,
}

// auto says whether the client left the model to us.
func (x *exchange) auto() bool { return x.facts.asked == "" || isAutoModel(x.facts.asked) }

// decide lets the decision choose the model, if the key may have it.
func (x *exchange) decide() *openai.Error {
	d := x.decision()
	if d == nil {
		return nil
	}
	x.facts.judgement.decision = d.Name
	if d.Model == "" || d.Model == x.model || x.key != nil && !x.permitted(d.Model) {
		return nil
	}
	x.model, x.facts.chosen = d.Model, d.Model
	return x.reserve(x.model)
}

// decision is the one that holds, nil if none does.
func (x *exchange) decision() *classify.Decision {
	if x.verdict == nil {
		return nil
	}
	return x.verdict.Decision
}
