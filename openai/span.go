// Spans: places in a body.

package openai

// A Span is the half-open byte range [Start, End) of a body. The zero span
// means absent: no value begins at offset 0, the top-level object does.
type Span struct{ Start, End int32 }

// Given tells whether the span's value is in the body.
func (s Span) Given() bool { return s.End != 0 }

// Of returns the span's bytes: a sub-slice of body, nil if absent.
func (s Span) Of(body []byte) []byte {
	if !s.Given() {
		return nil
	}
	return body[s.Start:s.End:s.End]
}
