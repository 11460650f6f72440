// Shapes: the answers of each route, read for what they say.

package content

import "kvasir/openai"

// completion reads a chat completion, a completion, or a chunk of one.
func (s *said) completion(w *openai.Walker) {
	for ok := w.Enter('{'); ok && w.Key(); {
		if string(w.Name) != "choices" || !w.Enter('[') {
			w.Skip()
			continue
		}
		for n := 0; w.Element(); n++ {
			c := s.choice(numberOf(*w, n))
			for ok := enter(w); ok && w.Key(); {
				s.choiceMember(c, w)
			}
		}
	}
}

// enter steps into an object; over anything else.
func enter(w *openai.Walker) bool {
	if w.Enter('{') {
		return true
	}
	w.Skip()
	return false
}

// numberOf is the index of the object that begins here, otherwise if it has none.
func numberOf(w openai.Walker, otherwise int) int {
	n := -1
	for ok := w.Enter('{'); ok && w.Key(); {
		if string(w.Name) == "index" {
			n = w.Count()
		} else {
			w.Skip()
		}
	}
	if n < 0 {
		return otherwise
	}
	return n
}

func (s *said) choiceMember(c *choice, w *openai.Walker) {
	switch string(w.Name) {
	case "delta", "message":
		for ok := enter(w); ok && w.Key(); {
			s.deltaMember(c, w)
		}
	case "text":
		s.addString(&c.text, w)
	case "finish_reason":
		s.finish(c, w)
	default:
		w.Skip()
	}
}

func (s *said) deltaMember(c *choice, w *openai.Walker) {
	switch string(w.Name) {
	case "content":
		s.texts(&c.text, w)
	case "refusal":
		s.addString(&c.text, w)
	case "reasoning_content", "reasoning":
		s.texts(&c.reasoning, w)
	case "tool_calls":
		s.toolCalls(c, w)
	case "function_call":
		s.function(s.call(c, 0), w)
	default:
		w.Skip()
	}
}

// texts reads a string, or parts with one each.
func (s *said) texts(to *text, w *openai.Walker) {
	if !w.Enter('[') {
		s.addString(to, w)
		return
	}
	for w.Element() {
		for ok := enter(w); ok && w.Key(); {
			switch string(w.Name) {
			case "text", "thinking", "refusal":
				s.addString(to, w)
			default:
				w.Skip()
			}
		}
	}
}

func (s *said) finish(c *choice, w *openai.Walker) {
	if why, ok := w.Text(); ok && len(why) > 0 {
		c.finish = finishOf(string(why))
	}
}

// toolCalls reads calls, or pieces of them, as chat completions have them.
func (s *said) toolCalls(c *choice, w *openai.Walker) {
	if !w.Enter('[') {
		w.Skip()
		return
	}
	for n := 0; w.Element(); n++ {
		k := s.call(c, numberOf(*w, n))
		for ok := enter(w); ok && w.Key(); {
			switch string(w.Name) {
			case "id":
				s.addName(&k.id, w)
			case "function":
				s.function(k, w)
			default:
				w.Skip()
			}
		}
	}
}

func (s *said) function(k *call, w *openai.Walker) {
	for ok := enter(w); ok && w.Key(); {
		s.callMember(k, w)
	}
}

// callMember reads a member of a call: its name, and what the tool is called with.
func (s *said) callMember(k *call, w *openai.Walker) {
	switch string(w.Name) {
	case "name":
		s.addName(&k.name, w)
	case "arguments", "input":
		if w.Peek() == '{' {
			if v := w.Value(); !w.Bad && len(v) > len("{}") { // an empty one begins a stream of pieces
				s.addPlain(&k.arguments, v)
			}
			return
		}
		s.addString(&k.arguments, w)
	default:
		w.Skip()
	}
}

// messageEvent reads one event of a stream of Anthropic's messages.
func (s *said) messageEvent(w *openai.Walker) {
	n := numberOf(*w, 0)
	for ok := w.Enter('{'); ok && w.Key(); {
		switch string(w.Name) {
		case "message":
			s.message(w)
		case "content_block", "delta":
			s.block(s.choice(0), n, w)
		default:
			w.Skip()
		}
	}
}

// message reads a whole message.
func (s *said) message(w *openai.Walker) {
	c := s.choice(0)
	for ok := enter(w); ok && w.Key(); {
		switch name := string(w.Name); {
		case name == "content" && w.Enter('['):
			for n := 0; w.Element(); n++ {
				s.block(c, n, w)
			}
		case name == "stop_reason":
			s.finish(c, w)
		default:
			w.Skip()
		}
	}
}

// block reads a block of content, its beginning, or what comes to it or to the message.
func (s *said) block(c *choice, number int, w *openai.Walker) {
	isCall := false
	at := *w // the type may stand behind
	for ok := at.Enter('{'); ok && at.Key(); {
		if string(at.Name) != "type" {
			at.Skip()
			continue
		}
		switch kind, _ := at.Text(); string(kind) {
		case "tool_use", "server_tool_use", "mcp_tool_use", "input_json_delta":
			isCall = true
		}
	}
	for ok := enter(w); ok && w.Key(); {
		switch name := string(w.Name); {
		case name == "stop_reason":
			s.finish(c, w)
		case isCall && name == "id":
			s.addName(&s.call(c, number).id, w)
		case isCall && name == "partial_json":
			s.addString(&s.call(c, number).arguments, w)
		case isCall:
			s.callMember(s.call(c, number), w)
		case name == "text":
			s.addString(&c.text, w)
		case name == "thinking":
			s.addString(&c.reasoning, w)
		default:
			w.Skip()
		}
	}
}

// responseEvent reads one event of a stream of responses. The last one has all once more.
func (s *said) responseEvent(name string, w *openai.Walker) {
	switch name {
	case "response.output_text.delta", "response.refusal.delta":
		s.member(w, "delta", func() { s.addString(&s.choice(0).text, w) })
	case "response.reasoning_text.delta", "response.reasoning_summary_text.delta":
		s.member(w, "delta", func() { s.addString(&s.choice(0).reasoning, w) })
	case "response.output_item.done":
		n := 0
		if len(s.choices) > 0 {
			n = len(s.choices[0].calls)
		}
		s.member(w, "item", func() { s.outputItem(s.choice(0), n, true, w) })
	case "response.completed", "response.incomplete", "response.failed":
		s.member(w, "response", func() { s.ending(w) })
	}
}

// ending reads the response of the last event, in the place of what has come in pieces: unless it says nothing,
// as that of one that failed may.
func (s *said) ending(w *openai.Walker) {
	came, left := s.choices, s.left
	s.choices, s.left = nil, AnswerBytes
	s.response(w)
	if c := s.choice(0); len(came) > 0 && c.text.all+c.reasoning.all+len(c.calls) == 0 {
		came[0].finish = c.finish
		s.choices, s.left = came, left
	}
}

// member has read called at the member with this name.
func (s *said) member(w *openai.Walker, name string, read func()) {
	for ok := w.Enter('{'); ok && w.Key(); {
		if string(w.Name) == name {
			read()
		} else {
			w.Skip()
		}
	}
}

// response reads a whole response.
func (s *said) response(w *openai.Walker) {
	c := s.choice(0)
	status, reason := "", ""
	for ok := enter(w); ok && w.Key(); {
		switch name := string(w.Name); {
		case name == "status":
			v, _ := w.Text()
			status = string(v)
		case name == "incomplete_details" && w.Peek() == '{':
			s.member(w, "reason", func() {
				v, _ := w.Text()
				reason = string(v)
			})
		case name == "output" && w.Enter('['):
			for n := 0; w.Element(); n++ {
				s.outputItem(c, n, false, w)
			}
		default:
			w.Skip()
		}
	}
	switch {
	case reason != "":
		c.finish = finishOf(reason)
	case status == "completed" && len(c.calls) > 0:
		c.finish = "tool_call"
	case status == "completed":
		c.finish = "stop"
	case status == "failed" || status == "cancelled":
		c.finish = "error"
	}
}

// outputItem reads an item of the output; of calls alone, where the texts have come in pieces.
func (s *said) outputItem(c *choice, number int, callsAlone bool, w *openai.Walker) {
	isCall, thinks := false, false
	at := *w
	for ok := at.Enter('{'); ok && at.Key(); {
		if string(at.Name) != "type" {
			at.Skip()
			continue
		}
		kind, _ := at.Text()
		k := string(kind)
		thinks = k == "reasoning"
		isCall = len(k) > 5 && k[len(k)-5:] == "_call"
	}
	if isCall || !callsAlone {
		for ok := enter(w); ok && w.Key(); {
			switch name := string(w.Name); {
			case isCall && name == "call_id":
				s.addName(&s.call(c, number).id, w)
			case isCall:
				s.callMember(s.call(c, number), w)
			case thinks && (name == "content" || name == "summary"):
				s.texts(&c.reasoning, w)
			case name == "content":
				s.texts(&c.text, w)
			default:
				w.Skip()
			}
		}
		return
	}
	w.Skip()
}
