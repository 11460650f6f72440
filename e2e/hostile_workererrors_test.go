// Errors of workers: a traceback's last line can hold a secret, and reaches no client, wherever in an answer it comes.

package e2e

import (
	"strings"
	"testing"
)

func TestHostileTracebackReachesAClient(t *testing.T) {
	t.Parallel()
	const traceback = `Traceback (most recent call last):\n  File \"/srv/app.py\", line 3\nKeyError: api_key=sk-secret`
	shaped := `{"error":{"message":"` + traceback + `","type":"x","param":null,"code":500}}`
	html := "<html>" + strings.ReplaceAll(strings.ReplaceAll(traceback, `\n`, "\n"), `\"`, `"`) + "</html>"
	replies := map[string]string{
		"html":             withStatus("500 Internal Server Error", "text/html", html),
		"text":             withStatus("500 Internal Server Error", "text/plain", "KeyError: api_key=sk-secret"),
		"shaped":           withStatus("500 Internal Server Error", "application/json", shaped),
		"detail":           withStatus("500 Internal Server Error", "application/json", `{"detail":"`+traceback+`"}`),
		"unknown":          withStatus("500 Internal Server Error", "application/json", `{"environ":{"API_KEY":"sk-secret"}}`),
		"first event":      eventStream(dataEvent(shaped)),
		"after the role":   eventStream(roleEvent(), dataEvent(shaped)),
		"in the middle":    eventStream(roleEvent(), deltaEvent("so far"), dataEvent(shaped), doneEvent),
		"unknown, middle":  eventStream(roleEvent(), deltaEvent("so far"), dataEvent(`{"error":{"environ":{"API_KEY":"sk-secret"}}}`), doneEvent),
		"named, middle":    eventStream(roleEvent(), deltaEvent("so far"), "event: error\n"+dataEvent(`"KeyError: api_key=sk-secret"`)),
		"at an open end":   eventStream(roleEvent(), deltaEvent("so far"), strings.TrimSuffix(dataEvent(shaped), "\n")),
		"all in one piece": eventHead + oneChunk(roleEvent()+deltaEvent("so far")+dataEvent(shaped)) + lastChunk,
	}
	for name, bytes := range replies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := startRaw(t, func(rawRequest) rawReply { return rawReply{bytes: bytes} }, "m")
			k := serve(t, behind(map[string]string{"raw": w.url}), "m")
			got := post(t, k.url+"/v1/chat/completions", askModel("m", "What fails?", strings.HasPrefix(bytes, eventHead)))
			said := string(got.body)
			if strings.Contains(said, "secret") || !strings.Contains(said, `internal error of worker \"raw\"`) {
				t.Errorf("%d %s", got.status, said)
			}
			if began := strings.Contains(bytes, "so far"); began != strings.Contains(said, "so far") {
				t.Errorf("what came before the error: %s", said)
			}
			eventually(t, patience, "the log has the beginning of it", func() bool { return strings.Contains(k.output.String(), "a worker's error has no known shape") })
		})
	}
}
