// Workers whose replies are wrong in every way: no client takes a cut answer for a whole one, or gets bytes that are not
// its own, and who fails is ejected.

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// What a client sees of a wrong reply.
const (
	wholeAnswer = "whole"       // its own answer, with a reason to end and a clean end
	asSent      = "as sent"     // status 200 and the very bytes of the worker's body, which say themselves that they are no answer
	refused     = "refused"     // 502 or 504 in OpenAI's shape
	itsError    = "its error"   // the worker's own status, in OpenAI's shape
	bodyless    = "no body"     // a status without a body
	interrupted = "interrupted" // the stream's error event and a broken end
	endless     = "endless"     // it goes on until the client leaves, and then the worker is let go
)

// bodyOutcomes and eventOutcomes say what becomes of each wrong reply.
var bodyOutcomes = map[string]string{
	"1xx before the reply": wholeAnswer, "HTML by its type": wholeAnswer, "HTTP/1.0": wholeAnswer, "another model's answer": wholeAnswer,
	"a second reply behind it": wholeAnswer, "choices and an error": wholeAnswer, "content given twice": wholeAnswer,
	"finish_reason content_filter": wholeAnswer, "finish_reason length": wholeAnswer, "headers that are Kvasir's own": wholeAnswer,
	"length and chunks": wholeAnswer, "no type": wholeAnswer, "two choices": wholeAnswer, "until it closes": wholeAnswer,
	"usage beyond all numbers": wholeAnswer,

	"JSON cut, framing whole": asSent, "JSON with more behind it": asSent, "a million deep": asSent, "error in a 200": asSent,
	"finish_reason null": asSent, "gzip that nobody asked for": asSent, "length shorter than the JSON": asSent, "until it closes, cut": asSent,

	"101": refused, "1xx for ever": refused, "CR within a header": refused, "NUL within a header": refused, "a chunk beyond all": refused,
	"a chunk that is none": refused, "a folded header": refused, "a negative chunk": refused, "bare LFs": refused,
	"chunks without the last": refused, "cut before its length": refused, "gzip as transfer": refused, "head for ever": refused,
	"length beyond all bodies": refused, "negative length": refused, "no HTTP": refused, "nothing": refused, "redirect": refused,
	"reset at once": refused, "reset in the body": refused, "reset in the head": refused, "silence": refused, "silence after a head": refused,
	"silence within a body": refused, "status 000": refused, "status 199": refused, "status 600": refused, "two lengths": refused,

	"400 with a detail": itsError, "500 in HTML": itsError, "Retry-After for ever": itsError, "an error of 5 MB": itsError, "too long a prompt": itsError,
	"204 with a body": bodyless, "304": bodyless,
}

var eventOutcomes = map[string]string{
	"DONE without a blank": wholeAnswer, "a byte order mark": wholeAnswer, "a second choice": wholeAnswer, "an event after DONE": wholeAnswer,
	"error in the middle": wholeAnswer, "event: error": wholeAnswer, "events within a text": wholeAnswer, "half a surrogate": wholeAnswer,
	"lines that end in CR": wholeAnswer, "lines that end in CRLF": wholeAnswer, "no DONE": wholeAnswer, "no UTF-8": wholeAnswer,
	"text after its finish": wholeAnswer, "two finish_reasons": wholeAnswer,

	"data in two lines": asSent, "no finish_reason": asSent, "no text": asSent,

	"a line for ever": interrupted, "an event for ever": interrupted, "bad chunk in the middle": interrupted, "cut": interrupted,
	"cut, framing whole": interrupted, "reset after a text": interrupted, "reset after its finish": interrupted, "silence after a text": interrupted,

	"reset after the role": refused,
	"JSON for ever":        endless, "events for ever": endless,
}

// blamed are the worker's own errors that count as its failures.
var blamed = map[string]bool{"500 in HTML": true, "an error of 5 MB": true}

// TestHostileCutReplyLooksWhole asks a worker of each kind for an answer, streamed and not: the client sees what its table
// says, and never bytes beyond the reply. A worker that only ever fails is ejected; one whose framing is right is not.
func TestHostileCutReplyLooksWhole(t *testing.T) {
	t.Parallel()
	for kind, test := range map[string]struct {
		modes map[string]badReply
		wants map[string]string
	}{"bodies": {bodyModes, bodyOutcomes}, "events": {eventModes, eventOutcomes}} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			k, model, workers := serveBroken(t, test.modes)
			for mode := range test.modes {
				t.Run(mode, func(t *testing.T) {
					t.Parallel()
					want := test.wants[mode]
					for _, stream := range []bool{false, true} {
						question := fmt.Sprintf("What is %s, streamed %t?", mode, stream)
						wantOutcome(t, k, workers[mode], askModel(model[mode], question, stream), answerTo(question), want)
					}
					fails := want == refused || want == interrupted || blamed[mode]
					k.wantSetAside(t, model[mode], fails)
				})
			}
		})
	}
}

// TestHostileBrokenWorkerSpoilsAnswers has a right worker beside each wrong one: what failed before its first byte is
// answered by the right one, and the client notices nothing.
func TestHostileBrokenWorkerSpoilsAnswers(t *testing.T) {
	t.Parallel()
	modes := map[string]badReply{}
	for mode, want := range bodyOutcomes {
		if want == refused {
			modes[mode] = bodyModes[mode]
		}
	}
	good := startRaw(t, rightReply, modelNames(modes)...)
	k, model, workers := serveBroken(t, modes, good)
	for mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			// Workers take turns: one of two requests meets the wrong one at least.
			for i := range 4 {
				question := fmt.Sprintf("What is %s beside a right one, %d?", mode, i)
				got := post(t, k.url+"/v1/chat/completions", askModel(model[mode], question, i%2 == 0))
				if text, whole := said(got); !whole || text != answerTo(question) {
					t.Errorf("%d %v %q", got.status, got.end, tail(string(got.body), 300))
				}
			}
			if len(workers[mode].requests()) == 0 {
				t.Error("the wrong worker was never asked")
			}
		})
	}
}

// serveBroken is Kvasir with a worker for each wrong reply, under a model and a name of its own, and these workers beside.
func serveBroken(t *testing.T, modes map[string]badReply, beside ...*rawWorker) (k *kvasir, model map[string]string, workers map[string]*rawWorker) {
	t.Helper()
	return serveBrokenWith(t, strings.NewReplacer(), modes, beside...)
}

// serveBrokenWith is serveBroken with some of the configuration replaced.
func serveBrokenWith(t *testing.T, replaced *strings.Replacer, modes map[string]badReply, beside ...*rawWorker) (k *kvasir, model map[string]string, workers map[string]*rawWorker) {
	t.Helper()
	model, workers = map[string]string{}, map[string]*rawWorker{}
	urls := map[string]string{}
	names := modelNames(modes)
	for i, mode := range namesOf(modes) {
		bad := modes[mode]
		model[mode] = names[i]
		workers[mode] = startRaw(t, func(r rawRequest) rawReply { return bad(answerTo(r.question())) }, names[i])
		urls[names[i]] = workers[mode].url
	}
	for i, w := range beside {
		urls[fmt.Sprintf("beside%d", i)] = w.url
	}
	return serve(t, replaced.Replace(behind(urls)), names...), model, workers
}

// modelNames are a name for each mode, in the order of their names.
func modelNames(modes map[string]badReply) []string {
	names := make([]string, len(modes))
	for i := range names {
		names[i] = fmt.Sprintf("m%d", i)
	}
	return names
}

// wantOutcome asks once. Of what goes on for ever it reads 6 MiB.
func wantOutcome(t *testing.T, k *kvasir, w *rawWorker, request, answer, want string) {
	t.Helper()
	response, err := http1.Do(newPost(t, k.url+"/v1/chat/completions", request))
	if err != nil {
		t.Fatalf("no HTTP: %v", err)
	}
	var body bytes.Buffer
	n, err := io.CopyN(&body, response.Body, 6<<20)
	_ = response.Body.Close()
	if errors.Is(err, io.EOF) {
		err = nil
	}
	got := reply{response.StatusCode, response.Header, body.Bytes(), err}
	if strings.Contains(fmt.Sprint(got.header)+body.String(), evil) {
		t.Errorf("the client was sent what is not its own: %v %q", got.header, tail(body.String(), 500))
	}
	text, whole := said(got)
	if whole && !strings.Contains(text, answer) && want != asSent {
		t.Errorf("a whole answer that says %q", tail(text, 300))
	}
	switch want {
	case wholeAnswer:
		if !whole {
			t.Errorf("not whole: %d %v %q", got.status, got.end, tail(body.String(), 300))
		}
	case asSent:
		if whole && text != "" {
			t.Errorf("it looks whole: %q", tail(body.String(), 300))
		}
		if got.status != http.StatusOK || got.end != nil {
			t.Errorf("%d %v %q", got.status, got.end, tail(body.String(), 300))
		}
	case refused:
		if got.status != http.StatusGatewayTimeout {
			wantError(t, got, http.StatusBadGateway)
		} else {
			wantError(t, got, http.StatusGatewayTimeout)
		}
	case itsError:
		wantError(t, got, max(got.status, http.StatusBadRequest))
	case bodyless:
		if len(got.body) != 0 || got.end != nil || got.status != http.StatusNoContent && got.status != http.StatusNotModified {
			t.Errorf("%d %v %q", got.status, got.end, tail(body.String(), 300))
		}
	case interrupted:
		if got.end == nil || !strings.Contains(tail(body.String(), 400), `"code":"stream_interrupted"`) || strings.Contains(body.String(), "[DONE]") {
			t.Errorf("not told as cut: %d %v %q", got.status, got.end, tail(body.String(), 400))
		}
	case endless:
		if n != 6<<20 {
			t.Errorf("ended after %d bytes: %d %v %q", n, got.status, got.end, tail(body.String(), 300))
		}
		eventually(t, patience, "the worker is let go", func() bool { return w.connections() == 0 })
	default:
		t.Fatalf("nothing says what should become of it; seen: %d %v %q %q", got.status, got.end, text, tail(body.String(), 300))
	}
}

// wantSetAside asks the only worker of a model until five requests in a row have failed at it, or as often as would do.
func (k *kvasir) wantSetAside(t *testing.T, model string, want bool) {
	t.Helper()
	var group sync.WaitGroup
	for i := range 6 {
		group.Go(func() {
			response, err := http1.Do(newPost(t, k.url+"/v1/chat/completions", askModel(model, fmt.Sprintf("Once more, %d?", i), i%2 == 0)))
			if err == nil {
				_, _ = io.CopyN(io.Discard, response.Body, 6<<20)
				_ = response.Body.Close()
			}
		})
	}
	group.Wait()
	aside := func() bool {
		for line := range strings.SplitSeq(k.output.String(), "\n") {
			if strings.Contains(line, "ejected after failures in a row") && strings.Contains(line, `"worker":"`+model+`"`) {
				return true
			}
		}
		return false
	}
	if want {
		eventually(t, patience, "the worker is ejected", aside)
	} else if aside() {
		t.Error("the worker is ejected, though nothing was wrong with its framing")
	}
}
