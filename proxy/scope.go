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
//  1. All of the request is hashed but the question, neutralParameter,
//     neutralHeaders and neutralFamilies: a parameter that nobody thought of makes
//     another scope.
//  2. Requests that differ in anything else give different bytes to hash. What has
//     no end of its own is hashed behind its length, and the mark that stands for
//     the question cannot occur in JSON.
type scoper struct {
	hash hash.Hash
	buf  []byte // not yet hashed
	sum  [sha256.Size]byte
}

// questionMark stands for the question: a control character, which valid JSON
// has neither in strings nor between them.
const questionMark = 0x01

// scopeBuffer is how many bytes are hashed at once. A body that is written with
// spaces is hashed in pieces of a few bytes, which are gathered first.
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

// A scopeInput is all that an answer depends on, and what tells clients apart who
// must not see each other's answers.
type scopeInput struct {
	request  *openai.Request
	path     string             // of the route
	model    string             // that answers
	decision *classify.Decision // nil: none holds
	family   string             // how the model's reasoning is switched

	client  tenant
	query   []byte   // of the URI: workers are sent it
	headers []byte   // the header lines as they came
	keyless bool     // no keys are configured: the clients' own credentials tell them apart
	named   []string // headers by which the operator's front tells tenants apart, in lower case
}

// scope hashes the request without the question.
func (s *scoper) scope(in *scopeInput, question openai.Span) cache.Scope {
	s.begin()
	s.text(scopeVersion)
	s.text(in.client.name)
	s.flag(in.client.shared)
	s.text(in.path)
	s.text(in.model)
	s.decision(in.decision, in.family)
	s.field(in.query)
	s.headers(in.headers, in.keyless)
	s.named(in.headers, in.named)
	s.body(in.request, question)
	return s.end()
}

// A tenant is those who may see each other's answers, and nobody else's.
type tenant struct {
	name   string // of the tenant, or of the one key; "" where no keys are configured
	shared bool   // it is a tenant's name, which a key without a tenant may have, too
}

// tenantOf is the tenant of a key, or the key itself where it has none; nil: no
// keys are configured.
func tenantOf(k *keyState) tenant {
	if k == nil {
		return tenant{}
	}
	return tenant{cmp.Or(k.Tenant, k.Name), k.Tenant != ""}
}

// decision hashes what the rows of effects read of a decision: a new effect is added here, too.
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

// headers hashes the header lines that workers are sent, since any of them may
// ask for another answer. Where no keys are configured it hashes the credentials,
// too, since they may say who asks. SDKs write headers in different orders, so
// they are hashed in the order of their names, those of one name as they came.
func (s *scoper) headers(lines []byte, credentials bool) {
	var fields [32]headerField // further ones are hashed in the order in which they came
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

// named hashes all lines of the named headers, also of those that no worker is
// sent. A header that is missing differs from an empty one.
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

// neutralHeaders say how a request travels and how its answer is to be sent. No
// engine's answer depends on them. They differ from client to client and from hop
// to hop, so that with them in the scope hardly anything would be found.
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

// neutralParameter recognises the members of a body on which no answer depends,
// or that have their part in the scope otherwise.
func neutralParameter(key []byte) bool {
	switch string(key) {
	case "model": // the chosen one is hashed
		return true
	case "stream", "stream_options": // the same answer in another form
		return true
	case "user", "metadata": // for the provider's own accounts; clients that must be told apart are tenants
		return true
	case "n": // 1, or nothing is looked up
		return true
	}
	return false
}

// body hashes the members of the body in the order of their keys, white space
// dropped and everything within a member in its order.
func (s *scoper) body(r *openai.Request, question openai.Span) {
	slices.SortFunc(r.Parameters, func(a, b openai.ParameterAt) int { return bytes.Compare(a.Key.Of(r.Body), b.Key.Of(r.Body)) })
	for _, p := range r.Parameters {
		key := p.Key.Of(r.Body)
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
	text := openai.Walk(b)
	for i, end := from, int(at.End); i < end; {
		switch b[i] {
		case '"':
			text.I = i
			text.String()
			next := text.I
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
