// POST /v1/embeddings, /rerank and /score: vectors of texts, and how near texts are to each other.
// A vLLM server has these routes or those that generate, by its model; the simulated engine has
// both. The replies are those of vLLM 0.32's source (vllm/entrypoints/pooling), since the recorded
// server has none of these routes.

package sim

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"
)

const (
	embeddingSize    = 384  // numbers of a vector
	maxEmbeddingSize = 4096 // of one that is asked for
	maxTexts         = 2048 // of one request, OpenAI's bound
	maxTextTokens    = 4 << 20
	wordPlaces       = 16 // numbers of a vector that one word changes
)

// pooled is a request of these routes on its way: prompts that the engine computes, as a load
// like any other.
type pooled struct {
	s       *Server
	fields  *fields
	id      string
	fault   fault
	prompts [][]uint32
}

// readPooled reads what the three routes have in common. It reports false when a fault answered.
func (s *Server) readPooled(w http.ResponseWriter, r *http.Request, prefix string) (*pooled, bool) {
	p := &pooled{s: s, fields: readBody(w, r)}
	var err error
	if p.fault, err = s.fault(r); err != nil {
		p.fields.fail(refuse(err.Error(), "x-sim-fault"))
	}
	p.fault.failure = s.dialect.failure
	if p.fault.before(r.Context(), w) {
		return nil, false
	}
	checkModel(p.fields, s.options.Model)
	p.id = prefix + orDefault(r.Header.Get("X-Request-Id"), fmt.Sprintf("%016x", rand.Uint64()))
	return p, true
}

// compute checks the prompts and has the engine compute them, and returns how many tokens they
// are. It reports false when it has replied itself.
func (p *pooled) compute(w http.ResponseWriter, r *http.Request) (tokens int, ok bool) {
	context := p.s.options.MaxModelLen
	for _, prompt := range p.prompts {
		tokens += len(prompt)
		if len(prompt) == 0 {
			p.fields.fail(refuse("The prompt cannot be empty", ""))
		}
		if len(prompt) >= context {
			p.fields.fail(p.s.dialect.tooLong(len(prompt), context))
		}
	}
	if len(p.prompts) > maxTexts {
		p.fields.fail(refuse(fmt.Sprintf("%d texts are more than %d.", len(p.prompts), maxTexts), ""))
	}
	if tokens > maxTextTokens {
		p.fields.fail(refuse(fmt.Sprintf("The texts have more than %d tokens.", maxTextTokens), ""))
	}
	if p.fields.failure != nil {
		p.s.refuse(w, p.fields.failure)
		return 0, false
	}
	c := &completion{id: p.id, prompts: p.prompts, choices: 1, limits: limits{max: 1}}
	if salt, ok := p.fields.text("cache_salt"); ok {
		c.salt = salt
	}
	c.write(p.s.options)
	requests := c.requests(p.s.options)
	job := prepare(c, requests)
	defer p.s.driver.leave(job)
	if err := p.s.driver.submit(job, 0, requests); err != nil { // cannot happen: each prompt fits the pool
		p.s.refuse(w, &failure{http.StatusInternalServerError, kindOf(http.StatusInternalServerError), err.Error(), ""})
		return 0, false
	}
	if err := p.s.finish(r.Context(), c, job); err != nil {
		if failed := (*failure)(nil); errors.As(err, &failed) {
			p.s.refuse(w, failed)
			return 0, false
		}
		abort()
	}
	return tokens, true
}

// reply sends the reply of a route, or what a fault makes of it.
func (p *pooled) reply(w http.ResponseWriter, r *http.Request, body []byte) {
	if p.fault.whole(r.Context(), w, body) {
		return
	}
	if p.fault.kind == "close" { // its end is the connection's
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
		return
	}
	writeJSON(w, http.StatusOK, body)
}

func (s *Server) serveEmbeddings(w http.ResponseWriter, r *http.Request) {
	p, ok := s.readPooled(w, r, "embd-")
	if !ok {
		return
	}
	f := p.fields
	f.require("input")
	if raw := f.get("input"); raw != nil {
		if p.prompts, ok = decodePrompts(raw); !ok || len(p.prompts) == 0 {
			f.complain("string_type", "input", "Input should be a valid string")
		}
	}
	size := embeddingSize
	if n, ok := f.integer("dimensions"); ok {
		if size = n; n < 1 || n > maxEmbeddingSize {
			f.fail(refuseValue(fmt.Sprintf("dimensions must be between 1 and %d, got %d.", maxEmbeddingSize, n), "dimensions", strconv.Itoa(n)))
		}
	}
	format := orDefault(readText(f, "encoding_format"), "float")
	if format != "float" && format != "base64" {
		f.fail(refuseValue("the simulated engine has the encoding_format float and base64, not "+format+".", "encoding_format", format))
	}
	tokens, ok := p.compute(w, r)
	if !ok {
		return
	}
	b := p.appendStart(nil)
	for i, prompt := range p.prompts {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `{"index":`...), int64(i), 10)
		b = append(appendVector(append(b, `,"object":"embedding","embedding":`...), vector(prompt, size), format == "base64"), '}')
	}
	p.reply(w, r, append(appendPooledUsage(b, tokens), '}'))
}

// appendStart appends the beginning of a list of vectors or scores.
func (p *pooled) appendStart(b []byte) []byte {
	b = appendString(append(b, `{"id":`...), p.id)
	b = strconv.AppendInt(append(b, `,"object":"list","created":`...), time.Now().Unix(), 10)
	return append(appendString(append(b, `,"model":`...), p.s.options.Model), `,"data":[`...)
}

func appendPooledUsage(b []byte, tokens int) []byte {
	b = strconv.AppendInt(append(b, `],"usage":{"prompt_tokens":`...), int64(tokens), 10)
	b = strconv.AppendInt(append(b, `,"total_tokens":`...), int64(tokens), 10)
	return append(b, `,"completion_tokens":0,"prompt_tokens_details":null,"completion_tokens_details":null}`...)
}

// vector returns a text's vector, of length 1. It is a sum over its words, so that texts with
// words in common are near each other, and nothing more: there is no meaning in it.
func vector(tokens []uint32, size int) []float32 {
	sum := make([]float64, size)
	for from := 0; from < len(tokens); {
		to := from + 1
		for to < len(tokens) && continues(tokens[to-1], tokens[to]) {
			to++
		}
		word := hashTokens(unnamed, lowerTokens(tokens[from:to]))
		for i := range uint64(wordPlaces) {
			place := mix(word, i)
			sum[place%uint64(size)] += float64(int64(mix(place, word))) / (1 << 63)
		}
		from = to
	}
	length := 0.0
	for _, v := range sum {
		length += v * v
	}
	length = math.Sqrt(length)
	out := make([]float32, size)
	if length == 0 { // words that cancel out
		out[0] = 1
		return out
	}
	for i, v := range sum {
		out[i] = float32(v / length)
	}
	return out
}

// continues reports whether a token goes on with the word of the one before it.
func continues(before, token uint32) bool {
	return isWord(before) && isWord(token) && token&spaceBit == 0
}

// isWord reports whether a token is of letters or digits.
func isWord(token uint32) bool {
	return token&^spaceBit < spaceBit && wordByte(byte(token&127))
}

// lowerTokens returns a word in small letters, without the space before it.
func lowerTokens(tokens []uint32) []uint32 {
	out := slices.Clone(tokens)
	for i, id := range out {
		if !isWord(id) {
			continue
		}
		id &^= spaceBit
		for shift := 0; shift < 28; shift += 7 {
			if c := id >> shift & 127; c >= 'A' && c <= 'Z' {
				id += ('a' - 'A') << shift
			}
		}
		out[i] = id
	}
	return out
}

// appendVector appends a vector as numbers, or as base64 of 32-bit floats, the smallest byte first.
func appendVector(b []byte, v []float32, base bool) []byte {
	if base {
		raw := make([]byte, 0, 4*len(v))
		for _, x := range v {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
		}
		return append(base64.StdEncoding.AppendEncode(append(b, '"'), raw), '"')
	}
	b = append(b, '[')
	for i, x := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, float64(x), 'g', -1, 64)
	}
	return append(b, ']')
}

// nearness returns how near two texts are, from 0 to 1.
func nearness(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return min(max(sum, 0), 1)
}

// pairs makes the prompts of pairs of texts, and returns their scores once they are computed.
func (p *pooled) pairs(w http.ResponseWriter, r *http.Request, first, second []string) (scores []float64, tokens int, ok bool) {
	if len(first) == 1 {
		first = slices.Repeat(first, max(len(second), 1))
	}
	if p.fields.failure == nil && (len(first) != len(second) || len(first) == 0) {
		p.fields.fail(refuse("Input lengths must be either 1:1, 1:N or N:N", ""))
	}
	if len(second) > maxTexts {
		p.fields.fail(refuse(fmt.Sprintf("%d texts are more than %d.", len(second), maxTexts), ""))
	}
	if p.fields.failure == nil {
		for i, all := 0, 0; i < len(second) && all <= maxTextTokens; i++ {
			prompt := append(appendTokens(nil, first[i]), imEnd)
			p.prompts = append(p.prompts, appendTokens(prompt, second[i]))
			all += len(p.prompts[i])
		}
	}
	if tokens, ok = p.compute(w, r); !ok {
		return nil, 0, false
	}
	var one []float32
	for i := range second {
		if i == 0 || first[i] != first[i-1] {
			one = vector(appendTokens(nil, first[i]), embeddingSize)
		}
		scores = append(scores, nearness(one, vector(appendTokens(nil, second[i]), embeddingSize)))
	}
	return scores, tokens, true
}

// readTexts reads a text or a list of them; a text may also be the member text of an object.
func readTexts(f *fields, name string) (texts []string) {
	f.require(name)
	raw := f.get(name)
	if raw == nil {
		return nil
	}
	items := []json.RawMessage{raw}
	if raw[0] == '[' {
		items = nil
		_ = json.Unmarshal(raw, &items)
	}
	texts = make([]string, len(items))
	for i, item := range items {
		var object struct {
			Text *string `json:"text"`
		}
		if json.Unmarshal(item, &texts[i]) == nil {
			continue
		}
		if json.Unmarshal(item, &object) != nil || object.Text == nil {
			f.complain("string_type", name, "Input should be a valid string")
			return nil
		}
		texts[i] = *object.Text
	}
	return texts
}

func (s *Server) serveScore(w http.ResponseWriter, r *http.Request) {
	p, ok := s.readPooled(w, r, "score-")
	if !ok {
		return
	}
	first, second := "text_1", "text_2"
	for _, names := range [][2]string{{"queries", "documents"}, {"queries", "items"}, {"data_1", "data_2"}} {
		if p.fields.raw[names[0]] != nil && p.fields.raw[names[1]] != nil {
			first, second = names[0], names[1]
			break
		}
	}
	scores, tokens, ok := p.pairs(w, r, readTexts(p.fields, first), readTexts(p.fields, second))
	if !ok {
		return
	}
	b := p.appendStart(nil)
	for i, score := range scores {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `{"index":`...), int64(i), 10)
		b = append(strconv.AppendFloat(append(b, `,"object":"score","score":`...), score, 'g', -1, 64), '}')
	}
	p.reply(w, r, append(appendPooledUsage(b, tokens), '}'))
}

func (s *Server) serveRerank(w http.ResponseWriter, r *http.Request) {
	p, ok := s.readPooled(w, r, "score-")
	if !ok {
		return
	}
	query, documents := readTexts(p.fields, "query"), readTexts(p.fields, "documents")
	if len(query) > 1 {
		p.fields.complain("string_type", "query", "Input should be a valid string")
	}
	most, _ := p.fields.integer("top_n")
	scores, tokens, ok := p.pairs(w, r, query, documents)
	if !ok {
		return
	}
	order := make([]int, len(documents))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case scores[a] > scores[b]:
			return -1
		case scores[a] < scores[b]:
			return 1
		}
		return 0
	})
	if most > 0 {
		order = order[:min(most, len(order))]
	}
	b := appendString([]byte(`{"id":`), p.id)
	b = append(appendString(append(b, `,"model":`...), s.options.Model), `,"usage":{"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(tokens), 10)
	b = append(strconv.AppendInt(append(b, `,"total_tokens":`...), int64(tokens), 10), `},"results":[`...)
	for n, i := range order {
		if n > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `{"index":`...), int64(i), 10)
		b = appendString(append(b, `,"document":{"text":`...), documents[i])
		b = strconv.AppendFloat(append(b, `,"multi_modal":null},"relevance_score":`...), scores[i], 'g', -1, 64)
		b = append(b, '}')
	}
	p.reply(w, r, append(b, "]}"...))
}
