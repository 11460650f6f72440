// Bugs that were: one test each, named after what went wrong.
package proxy

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
)

// request while this one's body still grew: its client got another's headers.
func TestLargeHeadSurvivesALargeBody(t *testing.T) {
	w := startWorker(t, func(c net.Conn, body string) bool {
		mark := strings.Repeat(body[len(body)-3:len(body)-2], 5000)
		_, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nX-Mark: %s\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n%s", mark, strings.Repeat(" ", 60000))
		return err == nil
	})
	p := startProxy(t, settingsFor(w.url))
	var all sync.WaitGroup
	for i := range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 20 {
				mark := string(rune('a' + i))
				a := p.ask(t, "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}],"user":"`+mark+`"}`)
				if got := a.Header.Get("X-Mark"); got != strings.Repeat(mark, 5000) {
					t.Errorf("asked with %s, got %.20q, %d bytes", mark, got, len(got))
					return
				}
			}
		}()
	}
	all.Wait()
}
