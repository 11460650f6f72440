// What the tests of workers share.

package upstream

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

var testTimeouts = Timeouts{Connect: 2 * time.Second, FirstByte: 30 * time.Second, Idle: 30 * time.Second, Write: 30 * time.Second}

const patience = 25 * time.Second

func waitUntil(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v until %s", patience, what)
		}
		time.Sleep(time.Millisecond)
	}
}

func httpReply(status int, contentType, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
		status, http.StatusText(status), contentType, len(body), body)
}
