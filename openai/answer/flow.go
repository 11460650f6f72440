// The flow of a stream: which bytes of it may go on to the client, and how it ended.

package answer

import "kvasir/openai"

const (
	// holdLimit is how many bytes of a stream are held back at most: before its
	// first event with content, and of one event whose end has not come.
	holdLimit = 64 << 10

	// eventLimit is how many bytes one event may have. Longer is a broken worker.
	eventLimit = 4 << 20
)

// A Flow follows the events of one stream as they come from a worker.
//
//	f := answer.NewFlow(kind, hidesUsage, isUnknown)
//	pass, skip := f.Scan(payload) // after each read
//	pass = f.Last(payload)        // when the worker has ended the stream
//
// Its exported fields, which others only read, say what has come so far; only
// Recorder and Tap are set from outside, before the first Scan.
//
//  1. Before Opened, nothing may be passed on: another worker may still be asked.
//  2. Done, finished and Failed are set and never unset.
//  3. at never exceeds the length of what the last Scan was given.
type Flow struct {
	Opened   bool      // an event with content has come, or more than may be held
	Done     bool      // the route's own end mark has come
	Failed   bool      // an error event has come
	Failure  []byte    // a copy of the first error event, if it came before Opened
	Withheld []byte    // a copy of an error event that is not for clients; the stream ends before it
	Contents int       // events with content
	Usage    Usage     // of all events
	Recorder *Recorder // takes the events down; nil: nobody wants them
	Tap      Tap       // is told of them, too; nil: nobody is

	scanner   openai.EventScanner
	kind      openai.Kind
	hideUsage bool                    // the event that has only the usage is not for the client
	unknown   func(event []byte) bool // says of an error event that it is in no known shape

	at       int  // bytes at the front of the payload that are whole events, already looked at
	finished bool // a finish_reason has come
	pieces   int  // how many parts of an event that is not whole yet were passed on
}

// A Tap is told of each event, as the worker sent it. It keeps no part of its bytes. An event too
// long to be held, of which a part has gone on, it is not told of.
type Tap interface{ Event(event []byte) }

// NewFlow is a flow at its beginning. With hideUsage the event that has nothing
// but the usage is dropped: the client did not ask for it. unknown says whether
// an error event has a shape that nobody knows, and so may hold anything of the
// worker's host: such a one is withheld. nil: none is.
func NewFlow(k openai.Kind, hideUsage bool, unknown func(event []byte) bool) Flow {
	return Flow{kind: k, hideUsage: hideUsage, unknown: unknown, Usage: NoUsage}
}

// Scan looks at payload, all that has come and was not passed on or dropped,
// and says how many bytes at its front may be passed on, and how many behind
// those are to be dropped. It is called again with the rest until both are 0,
// and then with more. Behind an event that is Withheld the stream is over.
func (f *Flow) Scan(payload []byte) (pass, skip int) {
	for {
		n := f.scanner.Next(payload[f.at:])
		if n == 0 {
			break
		}
		event := payload[f.at : f.at+n]
		m := f.look(event)
		hide := m.usageOnly && f.hideUsage && f.Opened && f.pieces == 0
		if hide || f.withhold(m, event) {
			pass, f.at = f.at, 0
			return pass, n
		}
		f.at += n
		f.pieces = 0
		if f.Failed && !f.Opened {
			return 0, 0
		}
	}
	if !f.Opened && len(payload) >= holdLimit {
		f.Opened = true
	}
	if !f.Opened {
		return 0, 0
	}
	pass, f.at = f.at, 0
	if pass == 0 && len(payload) >= holdLimit {
		// One event longer than may be held goes on in pieces.
		pass = len(payload)
		f.scanner.Passed(pass)
		f.pieces++
	}
	return pass, 0
}

// look reads one event and notes what it says of the stream.
func (f *Flow) look(event []byte) meaning {
	var m meaning
	if f.Opened {
		m = lateMeaningOf(f.kind, event)
	} else {
		m = meaningOf(f.kind, event)
	}
	f.Opened = f.Opened || m.content
	if m.content {
		f.Contents++
	}
	f.Done = f.Done || m.done
	f.finished = f.finished || m.finished
	if m.failure && !f.Failed {
		f.Failed = true
		if !f.Opened {
			f.Failure = append([]byte(nil), event...)
		}
	}
	f.Usage.add(m.usage)
	if f.Recorder != nil {
		if f.pieces > 0 {
			f.Recorder.Spoil("length") // this is the end of an event whose beginning went on
		}
		f.Recorder.Event(event)
	}
	if f.Tap != nil && f.pieces == 0 {
		f.Tap.Event(event)
	}
	return m
}

// Last looks at what is left of the payload when the stream has ended, with or
// without a blank line behind its last event, and says how many bytes may be
// passed on.
func (f *Flow) Last(payload []byte) int {
	if rest := payload[f.at:]; len(rest) > 0 && f.withhold(f.look(rest), rest) {
		return f.at
	}
	return len(payload)
}

// withhold keeps an error event in no known shape from the client, and says so.
// It leaves alone one that came before the answer, which becomes the error
// reply, and one of which a part has gone on.
func (f *Flow) withhold(m meaning, event []byte) bool {
	if !m.failure || !f.Opened || f.pieces > 0 || f.unknown == nil || !f.unknown(event) {
		return false
	}
	f.Withheld = append([]byte(nil), event...)
	return true
}

// Finished says whether the events themselves say that the answer is over,
// whole or with an error. On routes whose streams have no mark for it, the
// framing alone says so.
func (f *Flow) Finished() bool {
	return f.Done || f.finished || f.Failed || f.kind == openai.KindOpaque || f.kind == openai.KindForm
}

// TooLong says whether an event is longer than any worker's should be.
func (f *Flow) TooLong() bool { return f.scanner.Pending() > eventLimit }

// AppendError appends an error as the last event of the stream. If a part of an
// event has gone on, that event is ended first: its rest is given up.
func (f *Flow) AppendError(dst []byte, e *openai.Error) []byte {
	if f.pieces > 0 {
		dst = append(dst, "\n\n"...)
	}
	return AppendError(dst, f.kind, e)
}

// AppendError appends an error as an event of a route of kind k: in OpenAI's
// own form, and for responses and messages as the event that their clients look
// for.
func AppendError(dst []byte, k openai.Kind, e *openai.Error) []byte {
	object := e.AppendJSON(nil)
	switch k {
	case openai.KindResponses:
		dst = append(dst, "event: error\n"...)
		object = append([]byte(`{"type":"error",`), object[1:]...)
	case openai.KindMessages:
		dst = append(dst, "event: error\n"...)
		object = e.AppendMessages(nil)
	}
	dst = append(append(dst, "data: "...), object...)
	return append(dst, "\n\n"...)
}
