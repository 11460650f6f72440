// Caps: parameters of a body held down to a limit.

package openai

import "strconv"

// CapTokens holds the length of the answer, in tokens, down to most by every name
// that the body gives it. Where the route's own name has no number it is set:
// engines pass over the names of other routes.
func CapTokens(s *Splices, r *Request, most int) {
	f := &r.Fields
	limit := strconv.AppendInt(nil, int64(most), 10)
	tokens := capNumber(s, r, f.maxTokens, float64(most), limit)
	completion := capNumber(s, r, f.maxCompletion, float64(most), limit)
	output := capNumber(s, r, f.maxOutput, float64(most), limit)
	switch name := maxTokensOf(r.kind); {
	case name == "max_output_tokens" && !output:
		setParameter(s, r, f.maxOutput, name, limit)
	case name != "max_tokens" || tokens || completion && r.kind == KindChat:
	case r.kind == KindChat && !f.maxTokens.Given() && f.maxCompletion.Given(): // null
		s.Replace(f.maxCompletion, limit)
	default:
		setParameter(s, r, f.maxTokens, name, limit)
	}
}

// CapChoices holds n down to most. A body without it asks for one answer.
func CapChoices(s *Splices, r *Request, most int) {
	capNumber(s, r, r.Fields.n, float64(most), strconv.AppendInt(nil, int64(most), 10))
}

// CapTemperature holds the temperature down to most, on routes whose answers are
// generated. Where the body has none it is set, if most is below the 1 that
// engines take for it.
func CapTemperature(s *Splices, r *Request, most float64) {
	if maxTokensOf(r.kind) == "" {
		return
	}
	limit := strconv.AppendFloat(nil, most, 'f', -1, 64)
	if !capNumber(s, r, r.Fields.Temperature, most, limit) && most < 1 {
		setParameter(s, r, r.Fields.Temperature, "temperature", limit)
	}
}

// capNumber replaces the number at at by limit, which is most in JSON, if it is
// above it, or below 0, which some engines take for no limit at all. It says
// whether there is a number.
func capNumber(s *Splices, r *Request, at Span, most float64, limit []byte) bool {
	if !at.Given() || r.Body[at.Start] == 'n' {
		return false
	}
	if v, err := strconv.ParseFloat(string(at.Of(r.Body)), 64); err != nil || v > most || v < 0 {
		s.Replace(at, limit)
	}
	return true
}

// maxTokensOf is what a route calls the limit of its answer; "": it has none.
func maxTokensOf(k Kind) string {
	switch k {
	case KindChat, KindText, KindMessages:
		return "max_tokens"
	case KindResponses:
		return "max_output_tokens"
	}
	return ""
}
