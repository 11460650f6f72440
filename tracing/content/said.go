// Answers: what a worker said, taken down as it comes.

package content

import (
	"unicode/utf8"

	"kvasir/openai"
	"kvasir/openai/answer"
)

// maxChoices and maxCalls bound what is kept of one answer in number.
const (
	maxChoices = 16
	maxCalls   = 64
)

// said is an answer while it comes. Unlike answer.Recorder it takes what it finds: a trace shows
// also what nobody could be told again.
type said struct {
	kind    openai.Kind
	choices []choice
	left    int // bytes that may still be kept
	shut    bool
}

// A choice is one of the answers to a request. Its texts are as they stand between the quotes of JSON
// strings.
type choice struct {
	number          int
	reasoning, text text
	calls           []call
	finish          string // in the conventions' words
}

type call struct {
	number    int
	id, name  []byte
	arguments text
}

// A text is the beginning of one, and how long it is.
type text struct {
	inside []byte
	all    int
}

// Begin forgets what a worker has said: another one is asked.
func (t *Talk) Begin() {
	if t != nil {
		t.said.choices, t.said.left = nil, AnswerBytes
		if t.LeftOut == Unread {
			t.LeftOut = ""
		}
	}
}

// Unread says that an answer comes that cannot be read.
func (t *Talk) Unread() {
	if t != nil && !t.said.shut {
		t.LeftOut = Unread
	}
}

// Tap is the Talk as one; nil of none.
func (t *Talk) Tap() answer.Tap {
	if t == nil || t.said.shut {
		return nil
	}
	return t
}

// Event takes down one event of a stream.
func (t *Talk) Event(event []byte) {
	if t.said.shut {
		return
	}
	defer t.bug()
	name, data := openai.EventFields(event)
	if len(data) == 0 || data[0] != '{' {
		return
	}
	s, w := &t.said, openai.WalkEvent(data)
	switch s.kind {
	case openai.KindMessages:
		s.messageEvent(&w)
	case openai.KindResponses:
		s.responseEvent(string(name), &w)
	default:
		s.completion(&w)
	}
}

// Body takes down a whole body.
func (t *Talk) Body(body []byte) {
	if t == nil || t.said.shut {
		return
	}
	defer t.bug()
	s, w := &t.said, openai.Walk(body)
	switch s.kind {
	case openai.KindMessages:
		s.message(&w)
	case openai.KindResponses:
		s.response(&w)
	default:
		s.completion(&w)
	}
}

// Told takes an answer that no worker was asked for, as far as it has come.
func (t *Talk) Told(a *answer.Answer) {
	if t == nil || t.said.shut {
		return
	}
	defer t.bug()
	t.Begin()
	s := &t.said
	c := s.choice(0)
	s.addPlain(&c.reasoning, a.Reasoning)
	s.addPlain(&c.text, a.Text)
	if len(a.Calls) > 0 {
		w := openai.Walk(a.Calls)
		s.toolCalls(c, &w)
	}
	c.finish = finishOf(a.Finish)
}

// Output is the answer as JSON; "": there is none. end is why the request ended, for an answer that
// does not say why it did.
func (t *Talk) Output(end string) (output string) {
	if t == nil || len(t.said.choices) == 0 {
		return ""
	}
	defer t.bug()
	w := writer{dst: []byte{'['}}
	for i := range t.said.choices {
		c := &t.said.choices[i]
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.left = 2 * AnswerBytes // what was kept has its bound already
		w.dst = append(w.dst, `{"role":"assistant","parts":[`...)
		w.part("reasoning", &c.reasoning)
		w.part("text", &c.text)
		for j := range c.calls {
			w.toolCall(&c.calls[j])
		}
		w.dst = append(w.dst, `],"finish_reason":`...)
		switch {
		case c.finish != "":
			w.name(quoted(c.finish))
		case end != "":
			w.name(quoted(end))
		default:
			w.name([]byte("unknown"))
		}
		w.dst = append(w.dst, '}')
	}
	return string(append(w.dst, ']'))
}

func (w *writer) part(kind string, t *text) {
	if t.all > 0 && w.open(kind) {
		w.member("content")
		w.str(t.inside, t.all)
		w.close()
	}
}

func (w *writer) toolCall(c *call) {
	if !w.open("tool_call") {
		return
	}
	w.member("id")
	w.name(c.id)
	w.member("name")
	w.name(c.name)
	if c.arguments.all > 0 {
		w.member("arguments")
		w.arguments(c.arguments.inside, c.arguments.all)
	}
	w.close()
}

// choice finds the one with a number, or begins it.
func (s *said) choice(number int) *choice {
	for i := range s.choices {
		if s.choices[i].number == number {
			return &s.choices[i]
		}
	}
	if len(s.choices) == maxChoices || !s.room() {
		return &choice{} // thrown away
	}
	s.choices = append(s.choices, choice{number: number})
	return &s.choices[len(s.choices)-1]
}

// call finds the one with a number, or begins it.
func (s *said) call(c *choice, number int) *call {
	for i := range c.calls {
		if c.calls[i].number == number {
			return &c.calls[i]
		}
	}
	if len(c.calls) == maxCalls || !s.room() {
		return &call{}
	}
	c.calls = append(c.calls, call{number: number})
	return &c.calls[len(c.calls)-1]
}

// room takes the room of what comes besides texts, if there is any.
func (s *said) room() bool {
	if s.left < partCost {
		return false
	}
	s.left -= partCost
	return true
}

// add adds a piece, of which all is kept that there is room for.
func (s *said) add(to *text, inside []byte) {
	if len(to.inside) == to.all { // nothing is missing so far
		n := clip(inside, s.left)
		to.inside = append(to.inside, inside[:n]...)
		s.left -= n
	}
	to.all += len(inside)
}

// addPlain adds a piece that is no JSON.
func (s *said) addPlain(to *text, plain []byte) {
	if len(plain) == 0 {
		return
	}
	n := min(len(plain), s.left)
	for n > 0 && n < len(plain) && !utf8.RuneStart(plain[n]) {
		n--
	}
	s.add(to, quoted(plain[:n]))
	to.all += len(plain) - n
}

// addString adds the string that stands next.
func (s *said) addString(to *text, w *openai.Walker) {
	if inside, ok := stringOf(w); ok {
		s.add(to, inside)
	}
}

// addName sets a short text to the string that stands next, the first that is not empty.
func (s *said) addName(to *[]byte, w *openai.Walker) {
	if inside, ok := stringOf(w); ok && len(*to) == 0 {
		*to = append([]byte(nil), inside[:clip(inside, min(nameBytes, s.left))]...)
		s.left -= len(*to)
	}
}

// stringOf steps over the next value and returns what stands between its quotes if it is a string.
// One that is no good string, with half a character in it, becomes one.
func stringOf(w *openai.Walker) ([]byte, bool) {
	inside, ok := w.Text()
	if !ok {
		return nil, false
	}
	if _, good := openai.ValidString(w.B[w.I-len(inside)-2 : w.I]); !good {
		inside = quoted(inside)
	}
	return inside, true
}

// finishOf is a finish_reason in the conventions' words.
func finishOf(why string) string {
	switch why {
	case "tool_calls", "function_call", "tool_use":
		return "tool_call"
	case "end_turn", "stop_sequence":
		return "stop"
	case "max_tokens", "max_output_tokens":
		return "length"
	case "refusal":
		return "content_filter"
	}
	return why[:min(len(why), nameBytes)]
}
