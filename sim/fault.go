// Faults on request: the x-sim-fault header, read here and acted on where the bytes go out.

package sim

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// fault is one x-sim-fault; the zero value means none. The package doc describes each kind.
type fault struct {
	failure func(*failure) []byte // the body of an error reply
	kind    string
	events  int           // N of die-after, hang-after, error-after
	wait    time.Duration // of slow
	status  int           // of status
}

// readFault parses a header value; "" means none.
func readFault(value string) (fault, error) {
	kind, argument, _ := strings.Cut(value, "=")
	f := fault{kind: kind}
	var err error
	switch kind {
	case "", "die", "hang", "error-event", "role-then-error", "keepalive", "close", "truncate-json":
		if argument != "" {
			err = fmt.Errorf("it takes no value")
		}
	case "die-after", "hang-after", "error-after":
		f.events, err = strconv.Atoi(argument)
		if err == nil && f.events < 0 {
			err = fmt.Errorf("%d events", f.events)
		}
	case "slow":
		f.wait, err = time.ParseDuration(argument)
	case "status":
		f.status, err = strconv.Atoi(argument)
		if err == nil && (f.status < 400 || f.status > 599) {
			err = fmt.Errorf("%d is not between 400 and 599", f.status)
		}
	default:
		err = fmt.Errorf("no such fault")
	}
	if err != nil {
		return fault{}, fmt.Errorf("cannot read x-sim-fault %q: %w", value, err)
	}
	return f, nil
}

// simulated returns the error of the error faults and of status.
func simulated(status int) *failure {
	return &failure{status, kindOf(status), fmt.Sprintf("Simulated fault: status %d", status), ""}
}

// before acts on the faults that replace or suppress the reply, and reports whether it did.
func (f fault) before(ctx context.Context, w http.ResponseWriter) bool {
	switch f.kind {
	case "die":
		abort()
	case "hang":
		<-ctx.Done()
		abort()
	case "status":
		f.refuse(w, f.status)
	default:
		return false
	}
	return true
}

// refuse replies with the error of a fault.
func (f fault) refuse(w http.ResponseWriter, status int) {
	writeJSON(w, status, f.failure(simulated(status)))
}

// whole acts on the faults of a reply that is not streamed, and reports whether it sent the reply
// itself.
func (f fault) whole(ctx context.Context, w http.ResponseWriter, body []byte) bool {
	switch f.kind {
	case "die-after":
		abort()
	case "hang-after":
		<-ctx.Done()
		abort()
	case "error-event", "error-after", "role-then-error":
		f.refuse(w, http.StatusInternalServerError)
	case "slow":
		sleep(ctx, f.wait)
		return false
	case "close":
		endByClose(w)
		return false
	case "truncate-json":
		w.Header().Set("Content-Length", strconv.Itoa(len(body)+8))
		_, _ = w.Write(body)
		_ = http.NewResponseController(w).Flush()
		abort()
	default:
		return false
	}
	return true
}

// endByClose makes the reply end with the connection.
func endByClose(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	w.Header().Set("Transfer-Encoding", "identity") // tells net/http to use no framing; it is not sent
}

// sleep waits, and aborts the reply if its client or the server goes away meanwhile.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		abort()
	}
}

// abort leaves a handler and makes net/http close the connection without sending anything more:
// no last chunk, no empty 200. Returning instead would make a cut reply look complete.
func abort() { panic(http.ErrAbortHandler) }
