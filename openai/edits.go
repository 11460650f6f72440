// Edits: what Kvasir changes in any body that it sends on.

package openai

import "bytes"

// SetModel makes name the model that the worker is asked for. In a form it
// comes as it is, so it must not have a line break in it.
func SetModel(s *Splices, r *Request, name string) {
	start := len(s.quoted)
	switch {
	case !r.Whole.Given():
		s.quoted = append(s.quoted, name...)
		s.Replace(r.modelAt, s.quoted[start:])
	case r.modelAt.Given():
		s.quoted = AppendString(s.quoted, name)
		s.Replace(r.modelAt, s.quoted[start:])
	default:
		s.quoted = AppendString(append(s.quoted, `"model":`...), name)
		s.InsertMember(r.Whole, s.quoted[start:])
	}
}

var (
	jsonTrue      = []byte("true")
	includeUsage  = []byte(`"include_usage":true`)
	usageObject   = []byte(`{"include_usage":true}`)
	streamOptions = []byte(`"stream_options":{"include_usage":true}`)
)

// AskUsage asks for the usage at the end of a stream. It changes nothing where
// the client asked for it, where nothing is streamed, and on routes that have
// no stream_options.
func AskUsage(s *Splices, r *Request) {
	if !r.Stream || r.Usage.Include || r.kind != KindChat && r.kind != KindText {
		return
	}
	switch at := r.Usage.at; {
	case r.Usage.includeAt.Given():
		s.Replace(r.Usage.includeAt, jsonTrue)
	case !at.Given():
		s.InsertMember(r.Whole, streamOptions)
	case r.Body[at.Start] == '{':
		s.InsertMember(at, includeUsage)
	default: // null
		s.Replace(at, usageObject)
	}
}

// StripHandover takes out the members by which routers tell engines of each
// other, which a client must not send to a worker, and a byte order mark.
func StripHandover(s *Splices, r *Request) {
	if r.Whole.Given() && bytes.HasPrefix(r.Body, []byte(ByteOrderMark)) {
		s.Replace(Span{0, int32(len(ByteOrderMark))}, nil)
	}
	for _, member := range r.strip {
		s.Remove(member)
	}
}

// RewriteHeads puts the heads of a form's parts as they were read in the place of
// those that came.
func RewriteHeads(s *Splices, r *Request) {
	for _, head := range r.form.heads {
		s.Replace(head.at, head.with)
	}
}

// SetCacheSalt makes salt the cache_salt that the prompt is computed under.
func SetCacheSalt(s *Splices, r *Request, salt string) {
	setParameter(s, r, r.Fields.CacheSalt, "cache_salt", AppendString(nil, salt))
}

// setParameter puts value where at stands, or into the top-level object under
// name if it is absent.
func setParameter(s *Splices, r *Request, at Span, name string, value []byte) {
	if at.Given() {
		s.Replace(at, value)
	} else {
		insertMember(s, r.Whole, name, value)
	}
}

// insertMember puts `"name":value` into object.
func insertMember(s *Splices, object Span, name string, value []byte) {
	start := len(s.quoted)
	s.quoted = append(append(append(append(s.quoted, '"'), name...), `":`...), value...)
	s.InsertMember(object, s.quoted[start:])
}
