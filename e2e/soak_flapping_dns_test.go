// Workers that come and go behind a name of DNS: a server that answers with those that are there.

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

const flappingName = "vllm.kvasir.test."

// flappingDNS are workers at addresses of their own and one port. Kvasir looks each second, which is as often as it
// may.
func flappingDNS(t *testing.T, _ []string) flapper {
	port := ""
	for i := range flapping {
		in, err := net.Listen("tcp", fmt.Sprintf("127.0.78.%d:%s", i+1, port))
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ = net.SplitHostPort(in.Addr().String())
		worker := &httptest.Server{Listener: in, Config: &http.Server{Handler: http.HandlerFunc(soakAnswer)}}
		worker.Start()
		t.Cleanup(worker.Close)
	}
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var there atomic.Pointer[[]bool]
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		answerNames(server, &there)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	return flapper{
		entry: fmt.Sprintf("kind: dns, name: %s, port: %s, refresh: 1s, server: '%s'", flappingName, port, server.LocalAddr()),
		list: func(_ *testing.T, now []bool) {
			are := append([]bool{}, now...)
			there.Store(&are)
		},
	}
}

// answerNames answers each question for addresses with those of the workers that are there, until the server is closed.
func answerNames(server net.PacketConn, there *atomic.Pointer[[]bool]) {
	buf := make([]byte, 1500)
	for {
		n, from, err := server.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		q := m.Questions[0]
		m.Header = dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true}
		m.Answers, m.Additionals = nil, nil
		if now := there.Load(); now != nil && q.Type == dnsmessage.TypeA {
			for i, is := range *now {
				if is {
					m.Answers = append(m.Answers, dnsmessage.Resource{
						Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class},
						Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 78, byte(i + 1)}},
					})
				}
			}
		}
		reply, err := m.Pack()
		if err != nil {
			panic("BUG: " + err.Error())
		}
		_, _ = server.WriteTo(reply, from)
	}
}
