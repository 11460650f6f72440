// What a service manager is told: systemd's sd_notify, one datagram for each change of state.

package serve

import (
	"fmt"
	"net"
	"time"

	"github.com/rs/zerolog"
)

// A notifier tells the service manager that started this process how far it is. Without one,
// where NOTIFY_SOCKET is not set, it says nothing.
type notifier struct {
	log    zerolog.Logger
	socket string // a path, or a name of Linux that begins with @
}

func (n *notifier) ready()     { n.say("READY=1") }
func (n *notifier) reloading() { n.say("RELOADING=1") }

// stopping also asks for the time that it takes, so that no TimeoutStopSec of the unit ends
// streams before server.drain.timeout does.
func (n *notifier) stopping(patience time.Duration) {
	n.say(fmt.Sprintf("STOPPING=1\nEXTEND_TIMEOUT_USEC=%d", (patience + time.Second).Microseconds()))
}

// say sends one message. A manager that cannot be told ends nothing here: it waits, and says so
// itself.
func (n *notifier) say(state string) {
	if n.socket == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err == nil {
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
		_, err = conn.Write([]byte(state))
		_ = conn.Close()
	}
	if err != nil {
		n.log.Warn().Err(err).Str("state", state).Msg("cannot tell the service manager (NOTIFY_SOCKET)")
	}
}
