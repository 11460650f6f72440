// Judging: the request as the classifier reads it.

package proxy

import (
	"errors"
	"hash/maphash"
	"net"

	"kvasir/classify"
	"kvasir/openai"
	"kvasir/proxy/tokens"
)

// A judgement is what the reply's headers, the log and the metrics say of a
// verdict and of what followed from it. Its strings are the configuration's or
// constants, never the text's.
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
	redactedBy string // how many of which type
	hidden     int    // characters that no reader sees
	matched    []classify.Match
	language   string
	complexity string
	unjudged   string // the guard that could not judge and let pass
}

// note takes over what a verdict says.
func (j *judgement) note(v *classify.Verdict) {
	j.hidden = v.Hidden
	j.matched = append(j.matched[:0], v.Matched...)
	if v.Jailbreak.Judged {
		j.judged, j.score, j.attack = true, v.Jailbreak.Score, v.Jailbreak.Type
	}
	if v.Category.Judged {
		j.category, j.confidence = v.Category.Name, v.Category.Confidence
	}
	j.language, j.complexity = v.Language.Code, v.Complexity.Level
	j.types, j.denied = typesOf(v.PII.Spans), append([]string(nil), v.PII.Denied...)
	if v.Decision != nil {
		j.decision = v.Decision.Name
	}
}

// judge has the classifier judge the texts of the request, for the model that would
// answer it, and counts and notes what is found.
func (x *exchange) judge() *classify.Verdict {
	q := x.plan.ask(x.p.tokenizers)
	q.Client, q.For = clientNumber(x.plan.key, x.ctx.RemoteIP()), x
	v := x.plan.state.classifier.Judge(q)
	x.facts.judged = true
	x.plan.judgement.note(v)
	x.p.metrics.signals.countVerdict(v)
	for _, err := range [...]error{v.Jailbreak.Err, v.PII.Err} {
		var bug *classify.PanicError
		if errors.As(err, &bug) {
			x.p.bugs.noteAt(bug.Value, bug.Stack, "a guard")
		}
	}
	return v
}

// ask makes the question of the request's texts: valid until the body goes. Token
// ids are read by the tokenizer of the one model that can come to answer. Where
// sources is nil they stay unread, and where personal data are replaced: there is no
// place in a body of numbers for [TYPE].
func (pl *plan) ask(sources *tokens.Sources) *classify.Request {
	q, r := &pl.reading, &pl.req
	q.Texts = q.Texts[:0]
	pl.plain = pl.plain[:0]
	for _, t := range r.Content.Texts {
		text := t.Inside().Of(pl.body)
		if t.Escaped {
			start := len(pl.plain)
			pl.plain = t.AppendTo(pl.plain, pl.body)
			text = pl.plain[start:len(pl.plain):len(pl.plain)]
		}
		q.Texts = append(q.Texts, classify.Text{Bytes: text, Role: roles[t.Role], Message: t.Message})
	}
	q.Model, q.Auto, q.Streamed = pl.asked, isLeftToUs(pl.asked), r.Stream
	q.Messages, q.Turns, q.Results = r.Turns.All, r.Turns.User, r.Turns.Results
	q.Tools, q.Media, q.Unread = r.Content.Tools, r.Content.Media, r.Content.Unread
	if sources != nil && len(r.Content.TokenIDs) > 0 && modelIsFixed(pl.asked, pl.model, pl.state) && pl.state.settings.Classify.PII.Action != classify.Redact {
		pl.plain = appendTokenTexts(q, pl.plain, pl.body, r.Content.TokenIDs, sources.Of(pl.model))
	}
	return q
}

var clientSeed = maphash.MakeSeed()

// clientNumber is a number of whose request it is: of its key, else of its address,
// and of a whole network where one client has so many addresses.
func clientNumber(key *keyState, ip net.IP) uint64 {
	if key != nil {
		return maphash.String(clientSeed, key.Name)
	}
	if ip.To4() == nil && len(ip) == net.IPv6len {
		ip = ip[:net.IPv6len/2]
	}
	return maphash.Bytes(clientSeed, ip)
}

var roles = [...]classify.Role{
	openai.RoleUser: classify.User, openai.RoleSystem: classify.System, openai.RoleAssistant: classify.Assistant, openai.RoleTool: classify.Tool,
	openai.RoleTools: classify.ToolDefinition, openai.RoleDocument: classify.Document, openai.RoleOther: classify.Other,
}
