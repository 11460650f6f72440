// Scope: everything that an answer depends on but the question, as one hash.
package proxy

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math"
	"slices"

	"kvasir/cache"
	"kvasir/classify"
	"kvasir/header"
	"kvasir/openai"
	"kvasir/upstream"
)

// scopeVersion begins every scope. It changes with whatever is hashed, so that
// entries which an older version kept are not found any more.
const scopeVersion = "kvasir scope 3"

// A scoper hashes a request. The zero value is ready; it is reused, and hashes
// without allocating once it has its memory.
//
//  1. All of the request is hashed, and then the question is left out: what
//     nobody thought of makes another scope. Only what is in neutralParameters
//     and neutralHeaders is left out besides.
//  2. No two requests give the same bytes: what has no end of its own is hashed
//     behind its length, and the mark of the question cannot stand in JSON.
type scoper struct {
	hash hash.Hash
	buf  []byte // not yet hashed
	sum  [sha256.Size]byte
}

// questionMark stands for the question: a control character, which valid JSON
// has neither in strings nor between them.
const questionMark = 0x01

// scopeBuffer is how many bytes are hashed at once. A body written with spaces
// comes in pieces of a few bytes.
const scopeBuffer = 4 << 10

func (s *scoper) begin() {
	if s.hash == nil {
		s.hash, s.buf = sha256.New(), make([]byte, 0, scopeBuffer)
	}
	s.hash.Reset()
	s.buf = s.buf[:0]
}

// end returns the scope: half of the hash.
func (s *scoper) end() (scope cache.Scope) {
	s.flush()
	copy(scope[:], s.hash.Sum(s.sum[:0]))
	return scope
}

func (s *scoper) flush() {
	_, _ = s.hash.Write(s.buf) // never fails
	s.buf = s.buf[:0]
}

func (s *scoper) byte(c byte) {
	if len(s.buf) == scopeBuffer {
		s.flush()
	}
	s.buf = append(s.buf, c)
}

func (s *scoper) bytes(b []byte) {
	if len(s.buf)+len(b) > scopeBuffer {
		s.flush()
		if len(b) > scopeBuffer/2 {
			_, _ = s.hash.Write(b)
			return
		}
	}
	s.buf = append(s.buf, b...)
}

func (s *scoper) number(n uint64) {
	if len(s.buf)+8 > scopeBuffer {
		s.flush()
	}
	s.buf = binary.LittleEndian.AppendUint64(s.buf, n)
}

// field hashes a value behind its length.
func (s *scoper) field(b []byte) {
	s.number(uint64(len(b)))
	s.bytes(b)
}

func (s *scoper) text(v string) {
	s.number(uint64(len(v)))
	for len(v) > 0 { // without a copy on the heap
		if len(s.buf) == scopeBuffer {
			s.flush()
		}
		n := min(len(v), scopeBuffer-len(s.buf))
		s.buf = append(s.buf, v[:n]...)
		v = v[n:]
	}
}

func (s *scoper) flag(v bool) {
	if v {
		s.byte(1)
	} else {
		s.byte(0)
	}
}

// scope hashes the request without the question, which stands at question.
func (x inquiry) scope(s *scoper, question openai.Span) cache.Scope {
	s.begin()
	s.text(scopeVersion)
	s.text(x.tenant())
	s.flag(x.key != nil && x.key.Tenant != "") // a key of its own may have the name of a tenant
	s.text(x.route.Path)
	s.text(x.model)
	s.decision(x.decision(), x.state.models[x.model].Reasoning)
	s.field(x.ctx.URI().QueryString()) // workers are sent it
	s.headers(x.ctx.Request.Header.RawHeaders(), !x.state.keys.required())
	s.named(x.ctx.Request.Header.RawHeaders(), x.state.settings.CacheOptions.ScopeHeaders)
	s.body(&x.req, question)
	return s.end()
}

// tenant is who must not see others' answers, nor others its own: the key's
// tenant, or the key itself. Without keys there is one.
func (x inquiry) tenant() string {
	if x.key == nil {
		return ""
	}
	return cmp.Or(x.key.Tenant, x.key.Name)
}

// decision hashes what effects makes of a decision; family is how the model's
// reasoning is switched.
func (s *scoper) decision(d *classify.Decision, family string) {
	if s.flag(d != nil); d == nil {
		return
	}
	s.text(d.SystemPrompt)
	s.flag(d.InsertPrompt)
	s.text(d.Reasoning)
	s.text(family)
	s.number(uint64(d.MaxTokens))
	s.number(uint64(d.MaxChoices))
	s.flag(d.CapTemperature)
	s.number(math.Float64bits(d.MaxTemperature))
}

// headers hashes the lines that workers are sent, which may be anybody's wish
// for another answer, and without keys of our own the credentials, which may be
// anybody's name. SDKs write them in different orders: they are hashed by name,
// those of one name as they came.
func (s *scoper) headers(lines []byte, credentials bool) {
	var fields [32]headerField // of more, the rest is hashed in its order
	n := 0
	for len(lines) > 0 {
		var line []byte
		if line, lines = header.CutLine(lines); len(line) <= 2 {
			break
		}
		name, value := header.SplitField(line)
		if !(credentials && isCredential(name)) && (upstream.DroppedFromRequest(name) || neutralHeader(name)) {
			continue
		}
		if n == len(fields) {
			s.header(name, value)
			continue
		}
		at := n
		for ; at > 0 && compareFold(name, fields[at-1].name) < 0; at-- {
			fields[at] = fields[at-1]
		}
		fields[at] = headerField{name, value}
		n++
	}
	s.number(math.MaxUint64) // no name is as long
	for _, f := range fields[:n] {
		s.header(f.name, f.value)
	}
	s.number(math.MaxUint64)
}

// named hashes all lines of the headers by which the operator's front tells
// tenants apart, also of those that are sent to no worker. One that is not there
// differs from an empty one.
func (s *scoper) named(lines []byte, names []string) {
	for _, name := range names {
		s.text(name)
		for rest := lines; len(rest) > 0; {
			var line []byte
			line, rest = header.CutLine(rest)
			if of, value := header.SplitField(line); len(line) > 2 && header.Is(of, name) {
				s.field(value)
			}
		}
		s.number(math.MaxUint64) // no value is as long
	}
}

type headerField struct{ name, value []byte }

func (s *scoper) header(name, value []byte) {
	s.number(uint64(len(name)))
	for _, c := range name {
		s.byte(lower(c))
	}
	s.field(value)
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// compareFold orders names of headers, whose case means nothing.
func compareFold(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if c := cmp.Compare(lower(a[i]), lower(b[i])); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func isCredential(name []byte) bool {
	return header.Is(name, "authorization") || header.Is(name, "x-api-key") || header.Is(name, "api-key")
}

// neutralHeaders say how a request travels and how its answer is to be sent:
// no engine answers by them. They differ from client to client and from hop to
// hop, so that hardly anything would be found with them.
//
// Proxies' headers are named one by one: X-Forwarded-User, X-Amzn-Oidc-Identity
// and Cf-Access-Authenticated-User-Email say who asks, who must not get another's
// answer, and X-Amzn-Bedrock-GuardrailIdentifier and Cf-Aig-* change the answer.
var neutralHeaders = []string{
	"accept", "accept-charset", "accept-language", "user-agent", "content-type", "cache-control", "pragma", "origin", "referer", "date", "dnt",
	"via", "forwarded", "x-real-ip", "x-client-request-id", "x-correlation-id", "idempotency-key",
	"traceparent", "tracestate", "baggage", "b3", "sentry-trace", "uber-trace-id", "x-cloud-trace-context",
	"x-forwarded-for", "x-forwarded-host", "x-forwarded-port", "x-forwarded-proto", "x-forwarded-scheme", "x-forwarded-server", "x-forwarded-ssl",
	"x-amzn-trace-id", "x-amzn-requestid",
	"cf-ray", "cf-connecting-ip", "cf-connecting-ipv6", "cf-pseudo-ipv4", "cf-ipcountry", "cf-visitor", "cf-ew-via", "cdn-loop",
}

// neutralFamilies are the same by how they begin: SDKs, tracing, meshes,
// browsers, and our own.
var neutralFamilies = []string{"x-stainless-", "x-envoy-", "x-b3-", "x-datadog-", "sec-", "x-kvasir-"}

func neutralHeader(name []byte) bool {
	for _, neutral := range neutralHeaders {
		if header.Is(name, neutral) {
			return true
		}
	}
	for _, family := range neutralFamilies {
		if header.HasPrefix(name, family) {
			return true
		}
	}
	return false
}

// neutralParameter recognises the members of a body that no answer depends on,
// or that are in the scope otherwise.
func neutralParameter(key []byte) bool {
	switch string(key) {
	case "model": // the chosen one is hashed
		return true
	case "stream", "stream_options": // the same answer in another form
		return true
	case "user", "metadata": // for the provider's own books; who must be told apart is a tenant
		return true
	case "n": // 1, or nothing is looked up
		return true
	}
	return false
}

// body hashes the members of the body in the order of their keys, white space
// dropped and everything within a member in its order.
func (s *scoper) body(r *openai.Request, question openai.Span) {
	slices.SortFunc(r.Parameters, func(a, b openai.ParameterAt) int { return bytes.Compare(r.KeyOf(a), r.KeyOf(b)) })
	for _, p := range r.Parameters {
		key := r.KeyOf(p)
		if neutralParameter(key) {
			continue
		}
		s.field(key)
		s.value(r, p.Value, question)
		s.byte(0) // the end: JSON has none
	}
}

// value hashes a JSON value without the white space between its tokens.
func (s *scoper) value(r *openai.Request, at, question openai.Span) {
	b := r.Body
	from := int(at.Start) // b[from:i] is not yet hashed
	for i, end := from, int(at.End); i < end; {
		switch b[i] {
		case '"':
			next, _ := r.Str(i)
			if i == int(question.Start) {
				s.bytes(b[from:i])
				s.byte(questionMark)
				from = next
			}
			i = next
		case ' ', '\n', '\r', '\t':
			s.bytes(b[from:i])
			i = openai.SkipSpace(b, i)
			from = i
		default:
			i++
		}
	}
	s.bytes(b[min(from, int(at.End)):at.End])
}
