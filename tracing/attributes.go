// Attributes: what spans say, in the words of OpenTelemetry's conventions where there are any.

package tracing

import (
	"net"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"

	"kvasir/proxy/record"
)

// operation is gen_ai.operation.name of a route. Those for which the conventions have no name are
// called by their path.
func operation(route string) string {
	switch route {
	case "/v1/chat/completions", "/v1/responses", "/v1/messages":
		return "chat"
	case "/v1/completions":
		return "text_completion"
	case "/v1/embeddings":
		return "embeddings"
	}
	return strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(route, "/v1"), "/"), "/", "_")
}

// A list of attributes leaves out what is not known.
type list []attribute.KeyValue

func (l *list) text(key attribute.Key, v string) {
	if v != "" {
		*l = append(*l, key.String(clean(v)))
	}
}

// longest bounds a text in bytes. Names of ours are shorter; a client may ask for a model of any length.
const longest = 512

// clean makes a text fit to be sent. One byte that is not UTF-8, in the name of a model that a client
// asked for, would lose a batch of other clients' spans.
func clean(s string) string {
	if len(s) <= longest && utf8.ValidString(s) {
		return s
	}
	s = strings.ToValidUTF8(s[:min(len(s), longest)], "\uFFFD")
	return strings.Clone(s) // not to hold on to what was cut off
}

// json adds a text that has a bound of its own and is valid UTF-8.
func (l *list) json(key attribute.Key, v string) {
	if v != "" {
		*l = append(*l, key.String(v))
	}
}

// count adds a number, unless it is below least.
func (l *list) count(key attribute.Key, v, least int) {
	if v >= least {
		*l = append(*l, key.Int(v))
	}
}

func (l *list) float(key attribute.Key, v float64) { *l = append(*l, key.Float64(v)) }

func (l *list) flag(key attribute.Key, v bool) {
	if v {
		*l = append(*l, key.Bool(true))
	}
}

func (l *list) texts(key attribute.Key, v []string) {
	if len(v) == 0 {
		return
	}
	all := make([]string, len(v))
	for i, s := range v {
		all[i] = clean(s)
	}
	*l = append(*l, key.StringSlice(all))
}

// rootAttributes are those of a request's span.
func rootAttributes(r *record.Record) []attribute.KeyValue {
	l := make(list, 0, 32)
	l.text("gen_ai.operation.name", operation(r.Route))
	l.text("gen_ai.provider.name", "kvasir")
	l.text("gen_ai.request.model", r.Asked)
	l.flag("gen_ai.request.stream", r.Streamed)
	if outcome := r.Outcome(); outcome == record.OK || outcome == record.FromCache {
		l.text("gen_ai.response.model", r.Model)
	}
	if r.Streamed && r.FirstByte > 0 {
		l = append(l, attribute.KeyValue{Key: "gen_ai.response.time_to_first_chunk", Value: seconds(r.FirstByte)})
	}
	l.count("gen_ai.usage.input_tokens", r.Prompt, 0)
	l.count("gen_ai.usage.output_tokens", r.Completion, 0)
	l.count("gen_ai.usage.cache_read.input_tokens", r.CachedTokens, 0)

	l.text("http.request.method", "POST")
	l.text("http.route", r.Route)
	l.count("http.response.status_code", r.Status, 1)
	l.text("error.type", errorType(r))

	l.text("kvasir.request_id", r.ID)
	l.text("kvasir.worker_request_id", string(r.WorkerID))
	l.text("kvasir.key", r.Key)
	l.text("kvasir.tenant", r.Tenant)
	l.text("kvasir.outcome", string(r.Outcome()))
	l.text("kvasir.path", r.Path)
	l.text("kvasir.cache", r.Cache.Result)
	l.text("kvasir.cache.why", r.Cache.Why)
	l.text("kvasir.cache.entry", r.Cache.Entry)
	if r.Cache.Entry != "" {
		l.float("kvasir.cache.similarity", r.Cache.Similarity)
	}
	l.count("kvasir.retries", r.Retries, 1)
	l.count("kvasir.fallbacks", r.Fallbacks, 1)
	l.count("kvasir.steps_left_out", r.StepsLeft, 1)
	if r.FirstByte > 0 {
		l.count("kvasir.overhead_us", int(r.Overhead.Microseconds()), 0)
	}
	return l
}

// contentAttributes are what was asked and answered, if the trace is to have that: as JSON, which
// every collector takes, where few take the maps that the conventions would rather have.
func contentAttributes(c *record.Content) []attribute.KeyValue {
	if c == nil {
		return nil
	}
	l := make(list, 0, 4)
	l.json("gen_ai.system_instructions", c.System)
	l.json("gen_ai.input.messages", c.Input)
	l.json("gen_ai.output.messages", c.Output)
	l.text("kvasir.content.left_out", c.LeftOut)
	return l
}

// errorType is why a request did not end well: the word that metrics and the access log have, or
// the status. A client that has gone, and a guard that blocked, are told by it, too.
func errorType(r *record.Record) string {
	switch {
	case r.End != "":
		return r.End
	case r.Status >= 400:
		return strconv.Itoa(r.Status)
	}
	return ""
}

// legAttributes are those of the span of one request to a worker.
func legAttributes(r *record.Record, s *part, failure string) []attribute.KeyValue {
	l := make(list, 0, 12)
	l.text("gen_ai.operation.name", operation(r.Route))
	l.text("gen_ai.provider.name", s.Leg.Engine)
	l.text("gen_ai.request.model", s.Leg.Model)
	l.text("http.request.method", "POST")
	l.text("http.route", r.Route)
	status := s.Leg.Status
	if s.stream != nil && s.stream.Leg.Status > 0 {
		status = s.stream.Leg.Status
	}
	l.count("http.response.status_code", status, 1)
	if host, port, err := net.SplitHostPort(s.Leg.Address); err == nil {
		n, _ := strconv.Atoi(port)
		l.text("server.address", host)
		l.count("server.port", n, 1)
	}
	l.text("error.type", failure)
	l.text("kvasir.worker", s.Leg.Worker)
	l.text("kvasir.leg", s.Name.String())
	l.count("kvasir.rank", s.Leg.Rank, 0)
	return l
}

// decisionAttributes say what was found in the request, and what followed.
func decisionAttributes(r *record.Record) []attribute.KeyValue {
	j, l := &r.Judgement, make(list, 0, 16)
	l.text("kvasir.model", r.Model)
	l.text("kvasir.decision", j.Decision)
	l.text("kvasir.reasoning", j.Reasoning)
	if j.Category != "" {
		l.text("kvasir.category", j.Category)
		l.float("kvasir.category.confidence", j.Confidence)
	}
	if j.GuardJudged {
		l.float("kvasir.jailbreak.score", j.Score)
	}
	l.text("kvasir.jailbreak.type", j.Attack)
	l.texts("kvasir.pii.types", j.Types)
	l.texts("kvasir.pii.denied", j.Denied)
	l.count("kvasir.pii.redacted", j.Redacted, 1)
	l.text("kvasir.guard", j.Guard)
	l.text("kvasir.unjudged", j.Unjudged)
	l.text("kvasir.language", j.Language)
	l.text("kvasir.complexity", j.Complexity)
	l.count("kvasir.hidden_characters", j.Hidden, 1)
	l.texts("kvasir.signals", signals(j.Matched))
	return l
}

func signals(matched []record.Match) []string {
	all := make([]string, len(matched))
	for i, m := range matched {
		all[i] = m.Kind + ":" + m.Name
	}
	return all
}

// placementAttributes say which worker was chosen, and the price of each candidate.
func placementAttributes(r *record.Record) []attribute.KeyValue {
	p, l := &r.Placement, make(list, 0, 16)
	l.text("kvasir.worker", r.Worker)
	l.text("kvasir.prefill_worker", r.Prefill)
	l.text("kvasir.policy", p.Policy)
	l.text("kvasir.why", p.Why)
	l.count("kvasir.prompt_tokens", p.Tokens, 1)
	l.text("kvasir.approximate", p.Approximate)
	if p.Priced {
		l.count("kvasir.overlap_blocks", p.Overlap, 0)
		l.count("kvasir.prompt_blocks", p.Blocks, 0)
		l.count("kvasir.block_tokens", p.BlockTokens, 1)
		l.float("kvasir.cost", p.Cost)
	}
	if p.TTFT > 0 {
		l = append(l, attribute.KeyValue{Key: "kvasir.predicted_ttft", Value: seconds(p.TTFT)})
	}
	if n := len(p.Candidates); n > 0 {
		names, costs, overlaps := make([]string, n), make([]float64, n), make([]int, n)
		for i := range p.Candidates {
			c := &p.Candidates[i]
			names[i], costs[i], overlaps[i] = candidate(c), c.Cost, c.Overlap
		}
		l.texts("kvasir.candidates", names)
		l = append(l, attribute.Float64Slice("kvasir.candidates.cost", costs), attribute.IntSlice("kvasir.candidates.overlap_blocks", overlaps))
	}
	l.count("kvasir.candidates_left_out", p.LeftOut, 1)
	return l
}

// candidate names a worker and its rank, and the leg where it is one of two.
func candidate(c *record.Candidate) string {
	name := c.Worker
	if c.Rank >= 0 {
		name += " rank " + strconv.Itoa(c.Rank)
	}
	if c.Leg != "whole" {
		name += " " + c.Leg
	}
	return name
}
