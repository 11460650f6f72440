// Faults of a worker's reply: which bytes of an answer it sends, and where it stops.

package e2e

import (
	"bytes"
	"compress/gzip"
	"strings"
)

// evil is what no client may ever be sent: bytes beyond a reply, in a head that is none, paths of a worker's files.
const evil = "EVIL-bytes-of-nobody"

// A badReply makes a wrong reply to a question from the text that would be right.
type badReply func(text string) rawReply

// bodyModes are wrong whether events are asked for or not: most send JSON, or no HTTP at all.
var bodyModes = map[string]badReply{
	// What a cache must not keep, though its framing may be right.
	"length shorter than the JSON": sent(func(text string) string { return withLengthOf(completionOf(text), -30) }),
	"cut before its length":        sent(func(text string) string { return withLengthOf(completionOf(text), +30) }),
	"JSON cut, framing whole":      sent(func(text string) string { return withLength(cutBy(completionOf(text), 40)) }),
	"JSON with more behind it":     sent(func(text string) string { return withLength(completionOf(text) + `{"x":1}`) }),
	"finish_reason length":         sent(func(text string) string { return withLength(completionThat(text, `"length"`)) }),
	"finish_reason null":           sent(func(text string) string { return withLength(completionThat(text, `null`)) }),
	"finish_reason content_filter": sent(func(text string) string { return withLength(completionThat(text, `"content_filter"`)) }),
	"error in a 200":               sent(func(string) string { return withLength(`{"error":{"message":"boom","code":500}}`) }),
	"choices and an error":         sent(func(text string) string { return withLength(completionOf(text, `"error":{"message":"boom"}`)) }),
	"gzip that nobody asked for":   sent(func(text string) string { return withLength(gzipped(completionOf(text)), "Content-Encoding: gzip") }),
	"another model's answer": sent(func(text string) string {
		return withLength(strings.Replace(completionOf(text), `"model":"m"`, `"model":"other"`, 1))
	}),
	"two choices":         sent(func(text string) string { return withLength(twoChoices(text)) }),
	"content given twice": sent(func(text string) string { return withLength(contentTwice(text)) }),
	"HTML by its type":    sent(func(text string) string { return withStatus("200 OK", "text/html", completionOf(text)) }),
	"no type": sent(func(text string) string {
		return strings.Replace(withLength(completionOf(text)), "Content-Type: application/json\r\n", "", 1)
	}),
	"until it closes": sent(func(text string) string { return jsonHead + "\r\n" + completionOf(text) }),
	"until it closes, cut": sent(func(text string) string {
		return jsonHead + "Connection: close\r\n\r\n" + cutBy(completionOf(text), 30)
	}),
	"chunks without the last": sent(func(text string) string {
		return jsonHead + "Transfer-Encoding: chunked\r\n\r\n" + oneChunk(completionOf(text))
	}),
	"length and chunks": sent(func(text string) string {
		return jsonHead + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + oneChunk(completionOf(text)) + lastChunk
	}),
	"a second reply behind it": kept(func(text string) string { return withLength(completionOf(text)) + withLength(`{"`+evil+`":1}`) }),
	"usage beyond all numbers": sent(func(text string) string {
		return withLength(completionOf(text, `"usage":{"prompt_tokens":1`+strings.Repeat("0", 30)+`,"completion_tokens":-5,"total_tokens":"x"}`))
	}),
	"a million deep": sent(func(string) string {
		return withLength(`{"choices":` + strings.Repeat("[", 1e6) + strings.Repeat("]", 1e6) + `}`)
	}),
	"HTTP/1.0": sent(func(text string) string {
		return strings.Replace(jsonHead, "1.1", "1.0", 1) + "\r\n" + completionOf(text)
	}),
	"headers that are Kvasir's own": sent(func(text string) string { return withLength(completionOf(text), strings.Split(forgedHeaders, "\n")...) }),

	// Heads and framings that are wrong.
	"1xx before the reply": sent(func(text string) string {
		return "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" + withLength(completionOf(text))
	}),
	"101":             sent(func(string) string { return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n" + evil }),
	"204 with a body": kept(func(string) string { return "HTTP/1.1 204 No Content\r\nContent-Length: 20\r\n\r\n" + evil }),
	"304":             kept(func(string) string { return "HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n" }),
	"status 199":      sent(func(string) string { return "HTTP/1.1 199 X\r\nContent-Length: 0\r\n\r\n" }),
	"status 600":      sent(func(string) string { return "HTTP/1.1 600 X\r\nContent-Length: 0\r\n\r\n" }),
	"status 000":      sent(func(string) string { return "HTTP/1.1 000 X\r\nContent-Length: 0\r\n\r\n" }),
	"redirect": sent(func(string) string {
		return "HTTP/1.1 307 T\r\nLocation: http://127.0.0.1:9/" + evil + "\r\nContent-Length: 0\r\n\r\n"
	}),
	"CR within a header": sent(func(string) string {
		return "HTTP/1.1 200 OK\r\nX-A: a\rSet-Cookie: " + evil + "\r\nContent-Length: 2\r\n\r\n{}"
	}),
	"NUL within a header": sent(func(string) string { return "HTTP/1.1 200 OK\r\nX-A: a\x00" + evil + "\r\nContent-Length: 2\r\n\r\n{}" }),
	"bare LFs":            sent(func(string) string { return "HTTP/1.1 200 OK\nContent-Length: 2\n\n{}" }),
	"a folded header": sent(func(string) string {
		return "HTTP/1.1 200 OK\r\nX-A: a\r\n " + evil + "\r\nContent-Length: 2\r\n\r\n{}"
	}),
	"length beyond all bodies": sent(func(string) string { return jsonHead + "Content-Length: 99999999999999999\r\n\r\n{\"a\":1" }),
	"negative length":          sent(func(string) string { return jsonHead + "Content-Length: -5\r\n\r\n{}" }),
	"two lengths":              sent(func(string) string { return jsonHead + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x" }),
	"gzip as transfer": sent(func(string) string {
		return jsonHead + "Transfer-Encoding: gzip, chunked\r\n\r\n" + oneChunk("{}") + lastChunk
	}),
	"no HTTP":              sent(func(string) string { return "\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00d" }),
	"nothing":              sent(func(string) string { return "" }),
	"a chunk that is none": sent(func(string) string { return eventHead + "zz\r\nabc\r\n0\r\n\r\n" }),
	"a negative chunk":     sent(func(string) string { return eventHead + "-5\r\nabc\r\n0\r\n\r\n" }),
	"a chunk beyond all":   sent(func(string) string { return eventHead + "ffffffffffffffff\r\nabc" }),
	"head for ever": func(string) rawReply {
		return rawReply{bytes: "HTTP/1.1 200 OK\r\n", again: headerLines([]string{"X-A: " + strings.Repeat("a", 4000)})}
	},
	"1xx for ever": func(string) rawReply { return rawReply{again: strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 100)} },

	// Errors.
	"500 in HTML": sent(func(string) string { return withStatus("500 Internal Server Error", "text/html", traceback) }),
	"an error of 5 MB": sent(func(string) string {
		return withStatus("500 X", "application/json", `{"error":{"message":"`+strings.Repeat("a", 5e6)+`"}}`)
	}),
	"400 with a detail": sent(func(string) string { return withStatus("400 Bad Request", "application/json", `{"detail":"x"}`) }),
	"too long a prompt": sent(func(string) string { return withStatus("400 Bad Request", "application/json", tooLong) }),
	"Retry-After for ever": sent(func(string) string {
		return withStatus("503 X", "application/json", `{"error":{"message":"busy","type":"overloaded","param":null,"code":503}}`, "Retry-After: 999999999999999999")
	}),
	"reset at once":     func(string) rawReply { return rawReply{end: endReset} },
	"reset in the head": func(string) rawReply { return rawReply{bytes: "HTTP/1.1 200 OK\r\nContent-", end: endReset} },
	"reset in the body": func(text string) rawReply {
		return rawReply{bytes: cutBy(withLength(completionOf(text)), 20), end: endReset}
	},
	"silence":              func(string) rawReply { return rawReply{end: endSilent} },
	"silence after a head": func(string) rawReply { return rawReply{bytes: eventHead, end: endSilent} },
	"silence within a body": func(text string) rawReply {
		return rawReply{bytes: cutBy(withLength(completionOf(text)), 20), end: endSilent}
	},
}

// eventModes send events, whatever was asked for.
var eventModes = map[string]badReply{
	"no DONE":          sent(func(text string) string { return eventStream(roleEvent(), deltaEvent(text), finishEvent("stop")) }),
	"no finish_reason": sent(func(text string) string { return eventStream(roleEvent(), deltaEvent(text), doneEvent) }),
	"cut": sent(func(text string) string {
		return eventHead + chunksOf(roleEvent(), deltaEvent(text), deltaEvent(" more"))
	}),
	"cut, framing whole": sent(func(text string) string { return eventStream(roleEvent(), deltaEvent(text), deltaEvent(" more")) }),
	"error in the middle": sent(func(text string) string {
		return eventStream(roleEvent(), deltaEvent(text), dataEvent(`{"error":{"message":"boom","code":500}}`), finishEvent("stop"), doneEvent)
	}),
	"event: error": sent(func(text string) string {
		return eventStream(roleEvent(), deltaEvent(text), "event: error\ndata: {\"message\":\"x\"}\n\n", finishEvent("stop"), doneEvent)
	}),
	"an event after DONE": sent(func(text string) string {
		return eventStream(roleEvent(), deltaEvent(text), finishEvent("stop"), doneEvent, deltaEvent(" late"))
	}),
	"two finish_reasons": sent(func(text string) string {
		return eventStream(roleEvent(), deltaEvent(text), finishEvent("stop"), finishEvent("length"), doneEvent)
	}),
	"text after its finish": sent(func(text string) string {
		return eventStream(roleEvent(), deltaEvent(text), finishEvent("stop"), deltaEvent(" late"), doneEvent)
	}),
	"no text": sent(func(string) string { return eventStream(roleEvent(), finishEvent("stop"), doneEvent) }),
	"data in two lines": sent(func(text string) string {
		return eventStream(roleEvent(), twoLines(text), finishEvent("stop"), doneEvent)
	}),
	"lines that end in CR": sent(func(text string) string {
		return eventStream(withEnds("\r", roleEvent(), deltaEvent(text), finishEvent("stop"), doneEvent)...)
	}),
	"lines that end in CRLF": sent(func(text string) string {
		return eventStream(withEnds("\r\n", roleEvent(), deltaEvent(text), finishEvent("stop"), doneEvent)...)
	}),
	"a second choice": sent(func(text string) string {
		return eventStream(roleEvent(), deltaEvent(text), secondChoice, finishEvent("stop"), doneEvent)
	}),
	"a byte order mark": sent(func(text string) string {
		return eventStream("\xef\xbb\xbf"+roleEvent(), deltaEvent(text), finishEvent("stop"), doneEvent)
	}),
	"no UTF-8": sent(func(text string) string {
		return eventStream(roleEvent(), deltaEvent(text), chunkEvent("{\"content\":\"\xff\xfe\"}", "null"), finishEvent("stop"), doneEvent)
	}),
	"half a surrogate": sent(func(text string) string {
		return eventStream(roleEvent(), deltaEvent(text), chunkEvent(`{"content":"\ud83d"}`, "null"), finishEvent("stop"), doneEvent)
	}),
	"DONE without a blank": sent(func(text string) string {
		return eventStream(roleEvent(), deltaEvent(text), finishEvent("stop"), "data:[DONE]\n\n")
	}),
	"events within a text": sent(func(text string) string {
		return eventStream(roleEvent(), deltaEvent(text+"\n\ndata: [DONE]\n\nevent: error\ndata: {\"error\":1}\n\n"), finishEvent("stop"), doneEvent)
	}),
	"bad chunk in the middle": sent(func(text string) string { return eventHead + chunksOf(roleEvent(), deltaEvent(text)) + "zz\r\nabc" }),
	"reset after the role":    func(string) rawReply { return rawReply{bytes: eventHead + chunksOf(roleEvent()), end: endReset} },
	"reset after a text": func(text string) rawReply {
		return rawReply{bytes: eventHead + chunksOf(roleEvent(), deltaEvent(text)), end: endReset}
	},
	"reset after its finish": func(text string) rawReply {
		return rawReply{bytes: eventHead + chunksOf(roleEvent(), deltaEvent(text), finishEvent("stop")), end: endReset}
	},
	"silence after a text": func(text string) rawReply {
		return rawReply{bytes: eventHead + chunksOf(roleEvent(), deltaEvent(text)), end: endSilent}
	},
	"a line for ever": func(string) rawReply { return rawReply{bytes: eventHead, again: oneChunk(strings.Repeat("a", 64<<10))} },
	"an event for ever": func(text string) rawReply {
		return rawReply{bytes: eventHead + chunksOf(roleEvent(), deltaEvent(text), `data: {"choices":[{"index":0,"delta":{"content":"`), again: oneChunk(strings.Repeat("a", 64<<10))}
	},
	"events for ever": func(text string) rawReply {
		return rawReply{bytes: eventHead + chunksOf(roleEvent(), deltaEvent(text)), again: strings.Repeat(oneChunk(deltaEvent("word ")), 100)}
	},
	"JSON for ever": func(string) rawReply {
		return rawReply{bytes: jsonHead + "Transfer-Encoding: chunked\r\n\r\n" + oneChunk(`{"choices":[{"index":0,"message":{"content":"`), again: oneChunk(strings.Repeat("a", 64<<10))}
	},
}

// sent ends with the connection, kept leaves it open.
func sent(bytes func(text string) string) badReply {
	return func(text string) rawReply { return rawReply{bytes: bytes(text)} }
}

func kept(bytes func(text string) string) badReply {
	return func(text string) rawReply { return rawReply{bytes: bytes(text), end: endKept} }
}

// forgedHeaders say what only Kvasir says, and what a browser does for the page that it is on.
const forgedHeaders = "Access-Control-Allow-Origin: *\nAccess-Control-Allow-Credentials: true\nX-Kvasir-Worker: " + evil +
	"\nX-Vsr-Selected-Model: " + evil + "\nX-Request-Id: " + evil + "\nConnection: close, X-Secret\nX-Secret: " + evil + "\nTrailer: X"

const traceback = `<html><script>alert(1)</script>Traceback (most recent call last):
 File "/srv/` + evil + `/app.py", line 3
 KeyError: 'x'</html>`

const tooLong = `{"error":{"message":"This model's maximum context length is 10 tokens. However, you requested 20 tokens","type":"BadRequestError","code":400}}`

var secondChoice = dataEvent(`{"choices":[{"index":1,"delta":{"content":"one"},"finish_reason":null}]}`)

func twoLines(text string) string {
	return strings.Replace(deltaEvent(text), `"delta":`, "\ndata: \"delta\":", 1)
}

func twoChoices(text string) string {
	return strings.Replace(completionOf(text), `"choices":[`, `"choices":[{"index":1,"message":{"role":"assistant","content":"other"},"finish_reason":"stop"},`, 1)
}

func contentTwice(text string) string {
	return strings.Replace(completionOf(text), `"content":`, `"content":"first","content":`, 1)
}

// withLengthOf announces so many bytes more than there are.
func withLengthOf(body string, more int) string {
	whole := withLength(body + strings.Repeat("x", max(more, 0)))
	if more < 0 {
		whole = withLength(cutBy(body, -more)) + body[len(body)+more:]
		return whole
	}
	return cutBy(whole, more)
}

func cutBy(s string, n int) string { return s[:len(s)-n] }

// withEnds writes events with another end of lines.
func withEnds(end string, events ...string) []string {
	for i := range events {
		events[i] = strings.ReplaceAll(events[i], "\n", end)
	}
	return events
}

func gzipped(s string) string {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return packed.String()
}
