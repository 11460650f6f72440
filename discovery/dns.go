// Kind dns: workers behind a name, looked up again and again: its addresses, or its SRV records.

package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"kvasir/wording"
)

// dnsTimeout is how long one look may take, with all that the resolver tries: it gives
// each server of resolv.conf five seconds, twice. Nobody waits for it.
const dnsTimeout = 30 * time.Second

var dnsKind = kind{
	name:  "dns",
	keys:  []string{"name", "port", "refresh", "scheme"},
	label: labelDNS,
	check: checkDNS,
	run:   runDNS,
}

func labelDNS(e *Entry) string {
	if e.Port == 0 {
		return e.Name
	}
	return fmt.Sprintf("%s:%d", e.Name, e.Port)
}

func checkDNS(e *Entry) (key, wrong string) {
	switch {
	case e.Name == "":
		return "name", "is missing; give the name to look up, such as vllm-headless.default.svc, or _http._tcp.NAME for SRV records"
	case strings.ContainsAny(e.Name, ":/ @?#") || len(e.Name) > 253:
		return "name", "is no name of DNS such as vllm-headless.default.svc; port and scheme have keys of their own"
	case isSRV(e.Name) && e.Port != 0:
		return "port", "is set together with a name of SRV records, which have their own port"
	case e.PortName != "":
		return "port", fmt.Sprintf("must be a number from 1 to 65535, not %s", wording.Quote(e.PortName))
	case !isSRV(e.Name) && e.Port == 0:
		return "port", "is missing; give the port of the workers, such as 8000, or a name of SRV records, _service._proto.NAME"
	case e.Port != 0:
		return wrongPort(e)
	}
	return "", ""
}

// isSRV says whether a name is one of SRV records: _service._proto.name (RFC 2782).
func isSRV(name string) bool {
	labels := strings.SplitN(name, ".", 3)
	return len(labels) == 3 && strings.HasPrefix(labels[0], "_") && strings.HasPrefix(labels[1], "_")
}

// resolver is the system's, but for one thing: of the names of a search list it would
// report how the last one fared, so that trouble with the cluster's own zone came to be
// "no such name", which takes all workers away.
var resolver = &net.Resolver{PreferGo: true, StrictErrors: true}

func runDNS(src *source) {
	d := &lookup{name: src.called(), resolver: cmp.Or(src.set.o.Resolver, resolver), timeout: cmp.Or(src.set.o.dnsTime, dnsTimeout)}
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-src.ctx.Done():
			return
		case <-src.again:
		case <-next.C:
		}
		d.entry = src.now()
		// Give or take a tenth, so that the replicas of a gateway do not ask together.
		wait := time.Duration(float64(d.entry.Refresh) * (0.9 + 0.2*rand.Float64()))
		if soon := src.tell(d.look(src.ctx)); soon > 0 {
			wait = min(wait, soon)
		}
		next.Reset(wait)
	}
}

// A lookup is what a source of this kind remembers between two looks.
type lookup struct {
	entry    Entry
	name     string // of the source
	resolver *net.Resolver
	timeout  time.Duration
	known    [2][]netip.Addr // the addresses that each family had last: A and AAAA
}

func (d *lookup) look(ctx context.Context) report {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	find := d.addresses
	if isSRV(d.entry.Name) {
		find = d.services
	}
	hosts, err := find(ctx)
	r := report{err: err}
	for _, at := range hosts {
		s := d.entry.Worker
		s.URL = urlOf(d.entry.Scheme, at.host, at.port)
		s.Name = hostPort(s.URL)
		r.workers = append(r.workers, Worker{Settings: s, From: d.name})
	}
	return r
}

type hostAt struct {
	host string
	port int
}

// addresses are those of the name. A family that fails keeps what it had: with one
// question for both, as resolvers ask, half of the workers would be gone when the server
// has trouble with the other half. That AAAA fails which never had any is no error while A
// answers: some servers cannot be asked for it.
func (d *lookup) addresses(ctx context.Context) ([]hostAt, error) {
	errs := [2]error{}
	found := [2][]netip.Addr{}
	answered := make(chan int, 2)
	for i, network := range [...]string{"ip4", "ip6"} {
		go func() {
			found[i], errs[i] = d.resolver.LookupNetIP(ctx, network, d.entry.Name)
			answered <- i
		}()
	}
	<-answered
	<-answered
	for i := range found {
		if errs[i] != nil && !isNone(errs[i]) {
			continue
		}
		errs[i] = nil
		for j, a := range found[i] {
			found[i][j] = a.Unmap().WithZone("")
		}
		slices.SortFunc(found[i], netip.Addr.Compare)
		found[i] = slices.Compact(found[i])
		if i == 1 {
			// The resolver tells addresses of the other family from its own by their form alone.
			found[i] = slices.DeleteFunc(found[i], func(a netip.Addr) bool { return a.Is4() })
		}
		d.known[i] = found[i]
	}
	var hosts []hostAt
	for _, a := range slices.Concat(d.known[0], d.known[1]) {
		hosts = append(hosts, hostAt{a.String(), d.entry.Port})
	}
	for i, err := range errs {
		if err != nil && (i == 0 || len(d.known[1]) > 0 || len(d.known[0]) == 0) {
			return hosts, d.trouble(err)
		}
	}
	return hosts, nil
}

// services are the targets of the SRV records of the lowest priority: the others stand by
// for when none of these is there (RFC 2782), which only their records can say. Weights
// are not looked at: placement knows better who has room.
func (d *lookup) services(ctx context.Context) ([]hostAt, error) {
	_, records, err := d.resolver.LookupSRV(ctx, "", "", d.entry.Name)
	if err != nil && !isNone(err) {
		return nil, d.trouble(err)
	}
	var hosts []hostAt
	for _, r := range records {
		// The resolver sorts by priority. A target of . says that there is no such service.
		if target := strings.TrimSuffix(r.Target, "."); r.Priority == records[0].Priority && target != "" && r.Port != 0 {
			hosts = append(hosts, hostAt{target, int(r.Port)})
		}
	}
	slices.SortFunc(hosts, func(a, b hostAt) int {
		if c := strings.Compare(a.host, b.host); c != 0 {
			return c
		}
		return a.port - b.port
	})
	return slices.Compact(hosts), nil
}

// isNone says whether an error of the resolver means that there is nothing: the name does
// not exist, or has no such record.
func isNone(err error) bool {
	var d *net.DNSError
	return errors.As(err, &d) && d.IsNotFound && !d.IsTimeout && !d.IsTemporary
}

// trouble is an error of the resolver without what differs from look to look, such as
// the port that it asked from.
func (d *lookup) trouble(err error) error {
	text := err.Error()
	var of *net.DNSError
	if errors.As(err, &of) {
		text = of.Err
		if of.IsTimeout {
			text = "no answer in time"
		}
		if i := strings.LastIndex(text, ": "); i >= 0 && strings.Contains(text, "->") {
			text = text[i+2:]
		}
	}
	return fmt.Errorf("cannot look up %s: %s", d.entry.Name, text)
}
