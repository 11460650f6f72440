// Real libzmq and msgspec, the libraries of the engines, at the other end of the wire.

package kvevents

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// python starts a script with the packages that scripts/parts.sh zeromq brings, and skips where it could not.
func python(t *testing.T, script string, args ...string) (io.WriteCloser, *bufio.Reader) {
	t.Helper()
	const root = "../../"
	if _, err := os.Stat(root + ".cache/parts/zeromq"); err != nil {
		if os.Getenv("KVASIR_REAL") == "required" {
			t.Fatal("the real part zeromq is missing: scripts/parts.sh zeromq")
		}
		t.Skip("SKIP real part: zeromq: scripts/parts.sh zeromq brings it")
	}
	cmd := exec.Command(root+".cache/zeromq/bin/python", append([]string{"testdata/" + script}, args...)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if t.Failed() {
			_ = cmd.Process.Kill() // it may wait for what never comes
		}
		if err := cmd.Wait(); err != nil && !t.Failed() {
			t.Errorf("%s: %v", script, err)
		}
	})
	return in, bufio.NewReader(out)
}

func line(t *testing.T, out *bufio.Reader) string {
	t.Helper()
	text, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(text)
}

// 100,000 events a second, ten in a message, from a publisher that pings: all are taken, live or by replay, by a
// subscriber that comes when thousands of messages are published already.
func TestLibzmqPublisher(t *testing.T) {
	in, out := python(t, "publisher.py", "500000", "100000", "50")
	var events, replay int
	if _, err := fmt.Sscan(line(t, out), &events, &replay); err != nil {
		t.Fatal(err)
	}
	blocks := 0
	say := func(count, rate, events int) (seq uint64, seconds float64) {
		blocks += count * events
		fmt.Fprintf(in, "%d %d %d\n", count, rate, events)
		if _, err := fmt.Sscanf(line(t, out), "sent %d %f", &seq, &seconds); err != nil {
			t.Fatal(err)
		}
		return seq, seconds
	}
	all, _ := say(5000, 0, 1)
	ear := newEar()
	o := Options{Report: func(err error) { t.Error(err) }}
	source := Source{fmt.Sprintf("tcp://127.0.0.1:%d", events), fmt.Sprintf("tcp://127.0.0.1:%d", replay), "kv"}
	s, _ := listenTo(t, source, ear, o)
	eventually(t, "what was before is learnt", func() bool { return s.Stats().Next == all })
	all, seconds := say(20_000, 10_000, 10)
	began := time.Now()
	eventually(t, "all messages are taken", func() bool { return s.Stats().Next == all })
	st := s.Stats()
	t.Logf("%.0f events a second were sent; the last was taken %v after; %d gaps, %d replayed, %d connections",
		200_000/seconds, time.Since(began), st.Gaps, st.Replayed, st.Connections)
	if st.Messages != all || st.Lost+st.Malformed+st.Clears > 0 || st.Connections != 1 {
		t.Errorf("of %d messages: %+v", all, st)
	}
	ear.mu.Lock()
	defer ear.mu.Unlock()
	for i := range blocks {
		if h := 1<<63 + uint64(i) + 1; ear.blocks[h] != 1 {
			t.Fatalf("block %x is held %d times", h, ear.blocks[h])
		}
	}
	if len(ear.blocks) != blocks {
		t.Errorf("%d blocks are held, want %d", len(ear.blocks), blocks)
	}
}

// The simulated engine's sockets to a subscriber that is not ours.
func TestLibzmqSubscriber(t *testing.T) {
	e := startEngine(t, ":0", ":0", 100_000)
	_, out := python(t, "subscriber.py", "tcp://"+e.events, "tcp://"+e.replay, "kv@w1", "500")
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		if got := line(t, out); got != "ready" {
			t.Errorf("got %q", got)
		}
	}()
	eventually(t, "it listens", func() bool {
		e.Publish(storing(1))
		select {
		case <-ready:
			return true
		default:
			return false
		}
	})
	e.publish(2, 501)
	var first, last, frames, from, to, parts, end, req, answers int
	text := strings.Join([]string{line(t, out), line(t, out), line(t, out), line(t, out)}, " ")
	if _, err := fmt.Sscanf(text, "live %d %d %d dealer %d %d %d %d bare nothing req %d %d",
		&first, &last, &frames, &from, &to, &parts, &end, &req, &answers); err != nil {
		t.Fatal(text, err)
	}
	if last != first+500 || frames != 3 || from != 3 || to < last || parts != 4 || end != -1 || req != 5 || answers != 3 {
		t.Error(text)
	}
}
