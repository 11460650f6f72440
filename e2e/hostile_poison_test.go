// Bad replies and the cache: what is no whole, right answer is never told again.

package e2e

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// notKept are replies that are whole and still not to be told again: what may be is whole, ends by itself and says one
// thing. These are whole, and still not to be kept.
var notKept = map[string]bool{
	"finish_reason length": true, "finish_reason content_filter": true, "two choices": true, "choices and an error": true,
	"error in the middle": true, "event: error": true, "a second choice": true,
}

// readOtherwise are right or wrong by who reads: one event on two lines is right, a member given twice is for others to judge.
var readOtherwise = map[string]bool{"data in two lines": true, "content given twice": true}

// TestHostileBadReplyIsStored asks each wrong worker twice: the second answer comes from the cache only where the first was
// right, and then says the same.
func TestHostileBadReplyIsStored(t *testing.T) {
	t.Parallel()
	for kind, test := range map[string]struct {
		modes map[string]badReply
		wants map[string]string
	}{"bodies": {bodyModes, bodyOutcomes}, "events": {eventModes, eventOutcomes}} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			modes := map[string]badReply{}
			for mode, bad := range test.modes {
				// What never ends is never stored, and takes long to ask.
				if !strings.Contains(mode, "for ever") && !strings.Contains(mode, "silence") && !readOtherwise[mode] {
					modes[mode] = bad
				}
			}
			k, model, _ := serveBrokenWith(t, strings.NewReplacer(`cache: {store: "off"}`, `cache: {store: embedded}`), modes)
			for mode := range modes {
				t.Run(mode, func(t *testing.T) {
					t.Parallel()
					for _, stream := range []bool{false, true} {
						question := fmt.Sprintf("What grows in the meadow of %s, streamed %t?", mode, stream)
						for range 3 { // storing may come a little after the answer
							response, err := http1.Do(newPost(t, k.url+"/v1/chat/completions", askModel(model[mode], question, stream)))
							if err != nil {
								t.Fatal(err)
							}
							body, err := io.ReadAll(response.Body)
							_ = response.Body.Close()
							got := reply{response.StatusCode, response.Header, body, err}
							if got.header.Get("X-Kvasir-Cache") != "hit" {
								continue
							}
							if test.wants[mode] != wholeAnswer || notKept[mode] {
								t.Errorf("stored: %q", tail(string(body), 500))
							}
							if text, whole := said(got); !whole || !strings.HasPrefix(text, answerTo(question)) {
								t.Errorf("the cache says %q", tail(string(body), 500))
							}
						}
					}
				})
			}
		})
	}
}
