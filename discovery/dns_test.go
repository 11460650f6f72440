// Tests of kind dns against a DNS server on a UDP port.

package discovery

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"

	"kvasir/upstream"
)

// A dnsServer answers by its table; a type that is not there has no record of a name that
// exists.
type dnsServer struct {
	conn  net.PacketConn
	ended chan struct{}

	mu     sync.Mutex // guards all below
	code   map[dnsmessage.Type]dnsmessage.RCode
	silent bool
	has    map[dnsmessage.Type][]dnsmessage.ResourceBody
	asked  int
}

const dnsName = "vllm.kvasir.test."

func startDNS(t *testing.T) *dnsServer {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &dnsServer{conn: conn, ended: make(chan struct{})}
	go s.serve()
	t.Cleanup(func() {
		_ = conn.Close()
		<-s.ended
	})
	return s
}

func (s *dnsServer) serve() {
	defer close(s.ended)
	buf := make([]byte, 1500)
	for {
		n, from, err := s.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		if reply := s.reply(buf[:n]); reply != nil {
			_, _ = s.conn.WriteTo(reply, from)
		}
	}
}

func (s *dnsServer) reply(query []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	var m dnsmessage.Message
	if m.Unpack(query) != nil || len(m.Questions) != 1 || s.silent {
		return nil
	}
	s.asked++
	q := m.Questions[0]
	m.Header = dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true, RecursionAvailable: true, RCode: s.code[q.Type]}
	m.Additionals, m.Answers = nil, nil
	if m.RCode == dnsmessage.RCodeSuccess {
		for _, body := range s.has[q.Type] {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1}, Body: body})
		}
	}
	reply, err := m.Pack()
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return reply
}

// says makes these the answers from now on, each an address, or priority port target.
func (s *dnsServer) says(records ...string) {
	has := map[dnsmessage.Type][]dnsmessage.ResourceBody{}
	for _, r := range records {
		if a, err := netip.ParseAddr(r); err == nil && a.Is4() {
			has[dnsmessage.TypeA] = append(has[dnsmessage.TypeA], &dnsmessage.AResource{A: a.As4()})
		} else if err == nil {
			has[dnsmessage.TypeAAAA] = append(has[dnsmessage.TypeAAAA], &dnsmessage.AAAAResource{AAAA: a.As16()})
		} else {
			srv := &dnsmessage.SRVResource{}
			target := ""
			if _, err := fmt.Sscan(r, &srv.Priority, &srv.Port, &target); err != nil {
				panic("BUG: " + r)
			}
			srv.Target = dnsmessage.MustNewName(target)
			has[dnsmessage.TypeSRV] = append(has[dnsmessage.TypeSRV], srv)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.has, s.code, s.silent = has, nil, false
}

// fails makes questions for the types end with the code.
func (s *dnsServer) fails(code dnsmessage.RCode, types ...dnsmessage.Type) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.code = map[dnsmessage.Type]dnsmessage.RCode{}
	for _, t := range types {
		s.code[t] = code
	}
}

func (s *dnsServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", s.conn.LocalAddr().String())
	}}
}

// A watched is a set of one source, and what it says.
type watched struct {
	t   *testing.T
	set *Set
}

func watchDNS(t *testing.T, s *dnsServer, e Entry) *watched {
	t.Helper()
	e.Kind, e.Refresh = "dns", 10*time.Millisecond
	if e.Name == "" {
		e.Name, e.Port = dnsName, 8000
	}
	if e.Scheme == "" {
		e.Scheme = "http"
	}
	set := Start(Options{Log: zerolog.Nop(), Resolver: s.resolver(), Changed: func() {}})
	t.Cleanup(set.Close)
	set.Follow([]Entry{e})
	return &watched{t, set}
}

// until waits for the workers, in short, and the problem.
func (w *watched) until(after, workers, problem string) {
	w.t.Helper()
	got, is := "", ""
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for {
		got, is = urls(w.set.Found()[0].Workers), w.set.Status()[0].Problem
		if got == workers && strings.Contains(is, problem) && (problem != "" || is == "") {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			w.t.Fatalf("%s: %q with problem %q, want %q with %q", after, got, is, workers, problem)
		}
	}
}

// looks waits until the server was asked some more.
func (w *watched) looks(s *dnsServer) {
	w.t.Helper()
	asked := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.asked
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for before := asked(); asked() < before+4; {
		<-tick.C
	}
}

func TestDNSAddresses(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) }) // after the server has ended
	s := startDNS(t)
	s.says("10.0.0.7", "10.0.0.5", "fd00::5", "10.0.0.5")
	w := watchDNS(t, s, Entry{Grace: time.Hour})
	w.until("started", "10.0.0.5:8000 10.0.0.7:8000 [fd00::5]:8000", "")
	s.says("10.0.0.7", "10.0.0.8")
	w.until("another answer", "10.0.0.7:8000 10.0.0.8:8000", "")
	s.fails(dnsmessage.RCodeServerFailure, dnsmessage.TypeA, dnsmessage.TypeAAAA)
	w.until("SERVFAIL", "10.0.0.7:8000 10.0.0.8:8000", "cannot look up vllm.kvasir.test.: server misbehaving")
	s.fails(dnsmessage.RCodeNameError, dnsmessage.TypeA, dnsmessage.TypeAAAA)
	w.until("NXDOMAIN, which is no error, within the grace", "10.0.0.7:8000 10.0.0.8:8000", "")
	w.looks(s)
	w.until("still within it", "10.0.0.7:8000 10.0.0.8:8000", "")
	s.says("10.0.0.9")
	w.until("back", "10.0.0.9:8000", "")
}

// TestDNSNone: a name without any address, or that does not exist, is believed after the grace.
func TestDNSNone(t *testing.T) {
	t.Parallel()
	for name, none := range map[string]func(*dnsServer){
		"no record": func(s *dnsServer) { s.says() },
		"NXDOMAIN":  func(s *dnsServer) { s.fails(dnsmessage.RCodeNameError, dnsmessage.TypeA, dnsmessage.TypeAAAA) },
	} {
		s := startDNS(t)
		s.says("10.0.0.5")
		w := watchDNS(t, s, Entry{Grace: 50 * time.Millisecond})
		w.until("started", "10.0.0.5:8000", "")
		none(s)
		w.until(name, "", "")
	}
}

// TestDNSHalf: a family of addresses whose question fails keeps what it had; one that
// never had any is not missed.
func TestDNSHalf(t *testing.T) {
	t.Parallel()
	s := startDNS(t)
	s.says("10.0.0.5", "fd00::5")
	w := watchDNS(t, s, Entry{})
	w.until("started", "10.0.0.5:8000 [fd00::5]:8000", "")
	s.says("10.0.0.6", "fd00::5")
	s.fails(dnsmessage.RCodeServerFailure, dnsmessage.TypeAAAA)
	w.until("AAAA fails", "10.0.0.6:8000 [fd00::5]:8000", "server misbehaving")

	only := startDNS(t)
	only.says("10.0.0.5")
	only.fails(dnsmessage.RCodeServerFailure, dnsmessage.TypeAAAA)
	watchDNS(t, only, Entry{}).until("AAAA never answers", "10.0.0.5:8000", "")

	// A v6 host alone, whose A records cannot be had: nothing is known, and that is said.
	none := startDNS(t)
	none.says()
	none.fails(dnsmessage.RCodeServerFailure, dnsmessage.TypeA)
	watchDNS(t, none, Entry{}).until("A never answers", "", "server misbehaving")
}

// TestDNSSilent: a server that does not answer is an error, which other sources, and the
// start, do not wait for.
func TestDNSSilent(t *testing.T) {
	t.Parallel()
	s := startDNS(t)
	s.mu.Lock()
	s.silent = true
	s.mu.Unlock()
	set := Start(Options{Log: zerolog.Nop(), Changed: func() {}, Resolver: s.resolver(), dnsTime: 3 * time.Second})
	defer set.Close()
	set.Follow([]Entry{{Kind: "dns", Name: dnsName, Port: 1, Scheme: "http", Refresh: time.Second}})
	began := time.Now()
	set.Settle(20 * time.Millisecond)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the start waited for %v", took)
	}
	if got := set.Status()[0].Problem; got != "it has not answered yet" {
		t.Errorf("problem is %q", got)
	}
	(&watched{t, set}).until("after the timeout", "", "no answer in time")
}

func TestDNSServices(t *testing.T) {
	t.Parallel()
	s := startDNS(t)
	s.says("10 8001 b.kvasir.test.", "10 8000 a.kvasir.test.", "20 8000 spare.kvasir.test.", "10 8000 a.kvasir.test.")
	w := watchDNS(t, s, Entry{Name: "_http._tcp." + dnsName, Scheme: "https", Grace: 10 * time.Millisecond})
	w.until("started", "https://a.kvasir.test:8000 https://b.kvasir.test:8001", "")
	s.says("20 8000 spare.kvasir.test.")
	w.until("the lowest priority is gone", "https://spare.kvasir.test:8000", "")
	s.fails(dnsmessage.RCodeServerFailure, dnsmessage.TypeSRV)
	w.until("SERVFAIL", "https://spare.kvasir.test:8000", "server misbehaving")
	s.says("0 0 .")
	w.until("no such service", "", "")
}

// TestDNSRefused: who asks at a closed port is told so, in words that do not change from
// look to look, or each would be logged.
func TestDNSRefused(t *testing.T) {
	t.Parallel()
	s := startDNS(t)
	_ = s.conn.Close()
	watchDNS(t, s, Entry{}).until("nobody listens", "", "cannot look up vllm.kvasir.test.: connection refused")
}

// TestDNSTellsWorkers: workers are what the entry says, and are called by host and port.
func TestDNSTellsWorkers(t *testing.T) {
	t.Parallel()
	s := startDNS(t)
	s.says("10.0.0.5")
	w := watchDNS(t, s, Entry{Worker: upstream.Settings{Engine: "vllm", Role: "decode", Models: []string{"m"}, MaxRequests: 3}})
	w.until("started", "10.0.0.5:8000", "")
	got := Merge(nil, w.set.Found()).Workers[0]
	if got.Name != "10.0.0.5:8000" || got.Engine != "vllm" || got.Role != "decode" || got.Models[0] != "m" || got.MaxRequests != 3 || got.Source != "dns vllm.kvasir.test.:8000" {
		t.Errorf("the worker is %+v", got)
	}
}

// TestDNSHalfAtTheStart: addresses of the first version that cannot be had are missed, even
// where the others can: half of the workers would not be there, and nothing would say so.
func TestDNSHalfAtTheStart(t *testing.T) {
	t.Parallel()
	s := startDNS(t)
	s.says("10.0.0.5", "fd00::5")
	s.fails(dnsmessage.RCodeServerFailure, dnsmessage.TypeA)
	watchDNS(t, s, Entry{}).until("A fails", "[fd00::5]:8000", "server misbehaving")
}

// TestDNSChangedEntry: a source that looks in another way from now on keeps what a family of
// addresses had that fails just now.
func TestDNSChangedEntry(t *testing.T) {
	t.Parallel()
	s := startDNS(t)
	s.says("10.0.0.5", "fd00::5")
	e := Entry{Kind: "dns", Name: dnsName, Port: 8000, Scheme: "http", Refresh: 10 * time.Millisecond}
	w := watchDNS(t, s, e)
	w.until("started", "10.0.0.5:8000 [fd00::5]:8000", "")
	s.fails(dnsmessage.RCodeServerFailure, dnsmessage.TypeA)
	w.until("A fails", "10.0.0.5:8000 [fd00::5]:8000", "server misbehaving")
	e.Grace = time.Minute
	w.set.Follow([]Entry{e})
	w.looks(s)
	w.until("by another entry", "10.0.0.5:8000 [fd00::5]:8000", "server misbehaving")
}

// TestResolver: with a search list the system's resolver tells of the last name alone, see resolver.
func TestResolver(t *testing.T) {
	t.Parallel()
	if !resolver.StrictErrors || !resolver.PreferGo {
		t.Error("SERVFAIL of one name of a search list would be taken for no such name")
	}
}

// TestDNSGraceEnds: an empty list is looked at again when its grace ends, however rarely the source looks.
func TestDNSGraceEnds(t *testing.T) {
	t.Parallel()
	s := startDNS(t)
	s.says("10.0.0.5")
	set := Start(Options{Log: zerolog.Nop(), Resolver: s.resolver(), Changed: func() {}})
	t.Cleanup(set.Close)
	e := Entry{Kind: "dns", Name: dnsName, Port: 8000, Scheme: "http", Refresh: time.Hour, Grace: 50 * time.Millisecond}
	set.Follow([]Entry{e})
	w := &watched{t, set}
	w.until("started", "10.0.0.5:8000", "")
	s.says()
	e.Refresh = 2 * time.Hour // so that it looks now
	set.Follow([]Entry{e})
	w.until("the grace is over", "", "")
}

// TestDNSServer: an entry may name the server that is asked, and another one by a reload.
func TestDNSServer(t *testing.T) {
	a, b := startDNS(t), startDNS(t)
	a.says("10.0.0.5")
	b.says("10.0.0.6")
	set := Start(Options{Log: zerolog.Nop(), Changed: func() {}})
	t.Cleanup(set.Close)
	e := Entry{Kind: "dns", Name: dnsName, Port: 8000, Scheme: "http", Refresh: time.Hour, Server: a.conn.LocalAddr().String()}
	set.Follow([]Entry{e})
	w := &watched{t, set}
	w.until("started", "10.0.0.5:8000", "")
	e.Server = b.conn.LocalAddr().String()
	set.Follow([]Entry{e})
	w.until("another server", "10.0.0.6:8000", "")
	if found := set.Found()[0]; found.Workers[0].From != found.Source || !strings.HasSuffix(found.Source, " at "+e.Server) {
		t.Errorf("%+v", found)
	}
}
