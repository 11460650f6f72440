// OpenAI's API: its requests as bytes.

// Package openai knows the requests of OpenAI's API, and of Anthropic's messages,
// as bytes. It reads a body once, into sub-slices; it writes changes as splices,
// so that whatever it does not understand reaches the worker untouched; and it
// words refusals as OpenAI does. It knows no connection and no worker.
//
//	var r openai.Request // reused: it keeps its memory
//	var s openai.Splices
//	if err := r.Parse(route, body, contentType); err != nil {
//		return err.AppendJSON(nil) // a 400 that says what is wrong, where, and what to do
//	}
//	for _, t := range r.Content.Texts {
//		text = t.AppendTo(text[:0], r.Body)
//	}
//	openai.SetModel(&s, &r, "qwen2.5-7b")
//	openai.StripHandover(&s, &r)
//	pieces := s.Segments(nil, r.Body) // for one writev
//
// There are three readers of JSON here, for three kinds of trust:
//
//   - A Request comes from anybody. Its parser is strict, refuses what readers of
//     JSON disagree about, and finds every text that a model may come to read.
//   - A Walker steps through a worker's answer, an event at a time, for the few
//     members that matter. It checks no more than it needs to find its way.
//   - A Draft edits the members of a body that was parsed already.
//
// Of classify it imports the check for secrets alone (pii.HasKey): the value of a
// parameter that looks like a name is no text unless it is a key. classify lies
// below this package and knows nothing of it.
package openai
