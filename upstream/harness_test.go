// What the tests of workers share.

package upstream

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"
)

var testTimeouts = Timeouts{Connect: 2 * time.Second, FirstByte: 30 * time.Second, Idle: 30 * time.Second, Write: 30 * time.Second}

// logLines is a log that may be read while it is written.
type logLines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

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
