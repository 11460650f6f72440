// The flow of events: which bytes of a stream may go on, and how it ended.
package proxy

import (
	"kvasir/openai"
	"kvasir/upstream"
)

// An eventFlow looks at the events of one stream as they come.
//
//  1. Before opened, nothing may be passed on.
//  2. done, finish and failed are only ever set.
//  3. at never exceeds what the last scan was given.
type eventFlow struct {
	scanner openai.EventScanner
	kind    openai.Kind
	hide    bool // the usage event is not for the client

	at       int    // bytes at the front that are whole events, already looked at
	contents int    // events with content
	opened   bool   // an event with content has come, or too much to hold
	done     bool   // the route's own end mark has come
	finish   bool   // a finish_reason has come
	failed   bool   // an error event has come
	failure  []byte // the first error event, while nothing was opened
	withheld []byte // an error event, behind what may go on, that is not for clients
	pieces   int    // parts passed on of an event that is not whole yet
	usage    tokenCounts
	recorder *recorder // takes the events down; nil: nobody wants them
}

func (s *eventFlow) begin(k openai.Kind, hideUsage bool) {
	*s = eventFlow{kind: k, hide: hideUsage, usage: noCounts}
}

// scan looks at payload and says how many bytes at its front may be passed on,
// and how many behind those are to be dropped. Behind an error event that is
// not for clients the stream is over: withheld has it.
func (s *eventFlow) scan(payload []byte) (pass, skip int) {
	for {
		n := s.scanner.Next(payload[s.at:])
		if n == 0 {
			break
		}
		event := payload[s.at : s.at+n]
		v := s.look(event)
		if v.usageOnly && s.hide && s.opened && s.pieces == 0 {
			pass, s.at = s.at, 0
			return pass, n
		}
		if s.withhold(v, event) {
			pass, s.at = s.at, 0
			return pass, n
		}
		s.at += n
		s.pieces = 0
		if s.failed && !s.opened {
			return 0, 0
		}
	}
	if !s.opened && len(payload) >= holdLimit {
		s.opened = true
	}
	if !s.opened {
		return 0, 0
	}
	pass, s.at = s.at, 0
	if pass == 0 && len(payload) >= holdLimit {
		// One event longer than may be held goes on in pieces.
		pass = len(payload)
		s.scanner.Passed(pass)
		s.pieces++
	}
	return pass, 0
}

// look judges one event and notes what it says of the stream.
func (s *eventFlow) look(event []byte) verdict {
	var v verdict
	if s.opened {
		v = late(s.kind, event)
	} else {
		v = weigh(s.kind, event)
	}
	s.opened = s.opened || v.content
	if v.content {
		s.contents++
	}
	s.done = s.done || v.done
	s.finish = s.finish || v.finished
	if v.failure && !s.failed {
		s.failed = true
		if !s.opened {
			s.failure = append([]byte(nil), event...)
		}
	}
	s.usage.add(v.tokenCounts)
	if s.recorder != nil {
		if s.pieces > 0 {
			s.recorder.spoil("length") // this is the end of an event whose beginning went on
		}
		s.recorder.event(event)
	}
	return v
}

// last judges what is left when the stream has ended without a blank line
// behind its last event, and says how many bytes may be passed on.
func (s *eventFlow) last(payload []byte) int {
	if rest := payload[s.at:]; len(rest) > 0 && s.withhold(s.look(rest), rest) {
		return s.at
	}
	return len(payload)
}

// withhold keeps back an error event that may hold anything of the worker's host.
// One of which a part has gone on already, or that comes before the answer, is
// not its concern.
func (s *eventFlow) withhold(v verdict, event []byte) bool {
	if !v.failure || !s.opened || s.pieces > 0 || upstream.EventError(event).Message != upstream.InternalError {
		return false
	}
	s.withheld = append([]byte(nil), event...)
	return true
}

// finished says whether the events themselves say that the answer is whole.
func (s *eventFlow) finished() bool {
	return s.done || s.finish || s.failed || s.kind == openai.KindOpaque || s.kind == openai.KindForm
}

func (s *eventFlow) tooLong() bool { return s.scanner.Pending() > eventLimit }

// add takes over the counts that later events know.
func (t *tokenCounts) add(later tokenCounts) {
	for _, c := range [...]struct{ mine, theirs *int }{
		{&t.promptTokens, &later.promptTokens}, {&t.completionTokens, &later.completionTokens}, {&t.cachedTokens, &later.cachedTokens},
	} {
		if *c.theirs >= 0 {
			*c.mine = *c.theirs
		}
	}
}

// total is what the request cost, in tokens.
func (t *tokenCounts) total() int { return max(t.promptTokens, 0) + max(t.completionTokens, 0) }

// appendError appends an error as an event of this route: OpenAI's own form,
// and for responses and messages the event that their clients look for, with
// the same error object in it.
func (s *eventFlow) appendError(dst []byte, e *openai.Error) []byte {
	if s.pieces > 0 {
		dst = append(dst, "\n\n"...) // what came of the event before is given up
	}
	object := e.AppendJSON(nil)
	if s.kind == openai.KindResponses || s.kind == openai.KindMessages {
		dst = append(dst, "event: error\n"...)
		object = append([]byte(`{"type":"error",`), object[1:]...)
	}
	dst = append(append(dst, "data: "...), object...)
	return append(dst, "\n\n"...)
}
