// The x-vsr-* headers: what semantic routers tell clients about a request.

package proxy

import (
	"slices"
	"strconv"
	"strings"

	"kvasir/classify"
)

// vsrSchema is the version of the header family: that of vLLM Semantic Router
// whose names these are, with the blocking headers of its v0.1.
const vsrSchema = "2"

// appendVSR appends the headers of a reply with this status to the request of a plan,
// for which the cache has found what it says.
func appendVSR(dst []byte, pl *plan, found *recalled, status int) []byte {
	if !pl.state.settings.VSRHeaders {
		return dst
	}
	j := &pl.judgement
	path := j.path
	if path == "" {
		path = pathUpstream
		if status >= 400 {
			path = pathError
		}
	}
	dst = appendHeader(dst, "x-vsr-schema-version", vsrSchema)
	dst = appendHeader(dst, "x-vsr-response-path", path)
	if j.guard != "" {
		return j.appendBlock(dst, pl.state.settings.BIOTypes)
	}
	dst = j.appendAttack(dst)
	if len(j.denied) > 0 {
		dst = appendTypes(dst, j.denied, pl.state.settings.BIOTypes)
	}
	if found.result == cacheHit {
		dst = appendHeader(dst, "x-vsr-cache-hit", "true")
		dst = append(dst, "x-vsr-cache-similarity: "...)
		dst = append(strconv.AppendFloat(dst, found.similarity, 'f', 4, 64), "\r\n"...)
	}
	if status >= 300 {
		return dst
	}
	dst = appendFact(dst, "x-vsr-selected-model", pl.model)
	if j.category != "" {
		dst = appendFact(dst, "x-vsr-selected-category", j.category)
		dst = append(dst, "x-vsr-selected-confidence: "...)
		dst = append(strconv.AppendFloat(dst, j.confidence, 'f', 4, 64), "\r\n"...)
	}
	dst = appendFact(dst, "x-vsr-selected-decision", j.decision)
	if j.reasoning != "" {
		dst = appendFact(dst, "x-vsr-selected-reasoning", onOff(j.reasoning != "off"))
	}
	if j.decision != "" {
		dst = appendFact(dst, "x-vsr-injected-system-prompt", strconv.FormatBool(j.injected))
	}
	if len(j.matched) == 0 {
		return dst
	}
	for _, kind := range matchedKinds {
		dst = j.appendMatched(dst, kind.of, kind.header)
	}
	return dst
}

// appendBlock appends what is said of a request that a guard or a decision
// refused: the types that were found, never the values.
func (j *judgement) appendBlock(dst []byte, bio bool) []byte {
	dst = appendFact(dst, "x-vsr-selected-category", j.category)
	dst = appendFact(dst, "x-vsr-selected-decision", j.decision)
	if j.path != pathBlocked {
		return dst
	}
	switch j.guard {
	case "pii":
		dst = appendHeader(dst, "x-vsr-pii-violation", "true")
		dst = appendTypes(dst, j.denied, bio)
	case "jailbreak":
		dst = appendHeader(dst, "x-vsr-jailbreak-blocked", "true")
		dst = j.appendAttack(dst)
	}
	return dst
}

// appendTypes appends the types of personal data, plain or with the B- that a token model's labels
// have at the beginning of a value.
func appendTypes(dst []byte, types []string, bio bool) []byte {
	if bio {
		return appendHeader(dst, "x-vsr-pii-types", "B-"+strings.Join(types, ",B-"))
	}
	return appendHeader(dst, "x-vsr-pii-types", strings.Join(types, ","))
}

// appendAttack appends what the guard against attacks found, whether it blocks
// or only says so.
func (j *judgement) appendAttack(dst []byte) []byte {
	if j.attack == "" {
		return dst
	}
	dst = appendHeader(dst, "x-vsr-jailbreak-type", j.attack)
	dst = append(dst, "x-vsr-jailbreak-confidence: "...)
	return append(strconv.AppendFloat(dst, j.score, 'f', 3, 64), "\r\n"...)
}

// A matchedKind is a header that lists the names of what holds of a kind.
type matchedKind struct {
	of     classify.Kind
	header string
}

// matchedKinds are those headers: Semantic Router's, then one for each kind that
// it has not. The model that was asked for is no news to the client.
var matchedKinds = withOtherKinds([]matchedKind{
	{classify.KindKeyword, "x-vsr-matched-keywords"},
	{classify.KindEmbedding, "x-vsr-matched-embeddings"},
	{classify.KindCategory, "x-vsr-matched-domains"},
	{classify.KindLanguage, "x-vsr-matched-language"},
	{classify.KindContext, "x-vsr-matched-context"},
	{classify.KindStructure, "x-vsr-matched-structure"},
	{classify.KindComplexity, "x-vsr-matched-complexity"},
	{classify.KindConversation, "x-vsr-matched-conversation"},
	{classify.KindJailbreak, "x-vsr-matched-jailbreak"},
	{classify.KindPII, "x-vsr-matched-pii"},
})

func withOtherKinds(list []matchedKind) []matchedKind {
	for _, kind := range classify.Kinds() {
		if kind != classify.KindModel && !slices.ContainsFunc(list, func(m matchedKind) bool { return m.of == kind }) {
			list = append(list, matchedKind{kind, "x-vsr-matched-" + string(kind)})
		}
	}
	return list
}

func (j *judgement) appendMatched(dst []byte, kind classify.Kind, header string) []byte {
	first := true
	for i := range j.matched {
		m := &j.matched[i]
		if m.Kind != kind {
			continue
		}
		if first {
			dst = append(append(dst, header...), ": "...)
			first = false
		} else {
			dst = append(dst, ',')
		}
		dst = appendVisible(dst, m.Name)
	}
	if !first {
		dst = append(dst, "\r\n"...)
	}
	return dst
}

// appendFact appends a header unless it has nothing to say.
func appendFact(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	dst = append(append(dst, name...), ": "...)
	return append(appendVisible(dst, value), "\r\n"...)
}

// appendVisible appends a value that somebody wrote, so that it stays one
// header: line breaks and controls become spaces.
func appendVisible(dst []byte, value string) []byte {
	for i := range len(value) {
		c := value[i]
		if c < ' ' || c == 0x7f {
			c = ' '
		}
		dst = append(dst, c)
	}
	return dst
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
