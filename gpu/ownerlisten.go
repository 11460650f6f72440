// Listeners: the listening TCP sockets of this network namespace, and resolving a worker's
// address.

package gpu

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// A listener is a TCP socket that waits for connections.
type listener struct {
	at    netip.AddrPort
	inode uint64
}

// Bounds on reading one table. Linux lists listening sockets before all others (tcp_seq_start),
// so after a long row of others no more will come. Stopping there makes a host with 100,000
// connections as cheap as one with none.
const (
	maxListeners = 16 << 10
	othersInARow = 256
)

// appendListeners appends the listeners on the given ports, from net/tcp and net/tcp6.
func appendListeners(dst []listener, proc fs.FS, ports []uint16) []listener {
	for _, name := range []string{"net/tcp", "net/tcp6"} {
		file, err := proc.Open(name)
		if err != nil {
			continue // no /proc, or no IPv6
		}
		dst = readListeners(dst, file, ports)
		_ = file.Close() // opened only for reading
	}
	return dst
}

func readListeners(dst []listener, table io.Reader, ports []uint16) []listener {
	r := bufio.NewReaderSize(table, 4<<10)
	others := 0
	for range maxListeners {
		line, err := r.ReadSlice('\n')
		if l, listens, ok := parseSocket(line); ok && listens {
			others = 0
			if l.inode != 0 && slices.Contains(ports, l.at.Port()) {
				dst = append(dst, l)
			}
		} else if others++; others == othersInARow {
			break
		}
		if err != nil {
			break
		}
	}
	return dst
}

// parseSocket reads a line of /proc/net/tcp or tcp6 (proc_net_tcp.txt of the
// kernel's documentation): number, local address, remote address, state, queues,
// timer, retransmits, user, timeout, inode. Addresses are words in the byte order of
// this machine.
func parseSocket(line []byte) (l listener, listens, ok bool) {
	n := 0
	for field := range bytes.FieldsSeq(line) {
		switch n {
		case 1:
			if l.at, ok = parseAddress(field); !ok {
				return l, false, false
			}
		case 3:
			listens = string(field) == "0A" // TCP_LISTEN
		case 9:
			inode, err := strconv.ParseUint(string(field), 10, 64)
			l.inode = inode
			return l, listens, err == nil
		}
		n++
	}
	return l, false, false
}

func parseAddress(field []byte) (at netip.AddrPort, ok bool) {
	host, port, _ := bytes.Cut(field, []byte(":"))
	number, err := strconv.ParseUint(string(port), 16, 16)
	var b [16]byte
	if err != nil || len(host) != 8 && len(host) != 32 {
		return at, false
	}
	size, err := hex.Decode(b[:], host)
	if err != nil {
		return at, false
	}
	for i := 0; i < size; i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	addr, _ := netip.AddrFromSlice(b[:size])
	return netip.AddrPortFrom(addr.Unmap(), uint16(number)), true
}

// reached returns the sockets that a connection would reach, for the first address with a
// listener: those bound to the address, else to all addresses of its family, else to all IPv6
// addresses, which accept IPv4 too.
func reached(listeners []listener, addresses []netip.AddrPort) []uint64 {
	for _, at := range addresses {
		every := netip.IPv6Unspecified()
		family := every
		if at.Addr().Is4() {
			family = netip.IPv4Unspecified()
		}
		for _, bound := range [...]netip.Addr{at.Addr(), family, every} {
			var inodes []uint64
			for _, l := range listeners {
				if l.at == netip.AddrPortFrom(bound, at.Port()) {
					inodes = append(inodes, l.inode)
				}
			}
			if inodes != nil {
				return inodes
			}
		}
	}
	return nil
}

// A target is a resolved worker address.
type target struct {
	at  []netip.AddrPort // addresses of this host, in the order in which they are tried
	why string           // why there is no address
}

func ports(targets []target) (ports []uint16) {
	for _, t := range targets {
		for _, at := range t.at {
			ports = append(ports, at.Port())
		}
	}
	return ports
}

// Lookups of names. A name of this host rarely changes; one that cannot be resolved is retried
// soon.
const (
	lookupLimit   = 500 * time.Millisecond // for all lookups of one round
	resolvedFor   = time.Minute
	unresolvedFor = 10 * time.Second
	ownFor        = 10 * time.Second // addresses of this host
)

// hosts caches the addresses of this host and of names.
type hosts struct {
	interfaces func() ([]net.Addr, error)                                   // nil: net.InterfaceAddrs
	lookup     func(ctx context.Context, name string) ([]netip.Addr, error) // nil: the system resolver

	own   []netip.Addr
	ownAt time.Time
	names map[string]resolved
	left  time.Duration // time left for lookups in this round
}

type resolved struct {
	addresses []netip.Addr
	until     time.Time
}

// begin begins a round of targets.
func (h *hosts) begin(now time.Time) {
	h.left = lookupLimit
	if h.names == nil || len(h.names) > 4096 { // configuration reloads may leave old names behind
		h.names = map[string]resolved{}
	}
	if h.interfaces == nil {
		h.interfaces = net.InterfaceAddrs
	}
	if h.lookup == nil {
		h.lookup = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		}
	}
	if h.ownAt.IsZero() || now.Sub(h.ownAt) >= ownFor {
		h.ownAt, h.own = now, h.own[:0]
		addresses, _ := h.interfaces() // if that fails, only loopback counts as ours
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok {
				if ip, ok := netip.AddrFromSlice(n.IP); ok {
					h.own = append(h.own, ip.Unmap())
				}
			}
		}
	}
}

// target resolves the address of a worker; it looks names up only if lookups is set.
func (h *hosts) target(now time.Time, address string, lookups bool) target {
	if at, err := netip.ParseAddrPort(address); err == nil {
		if !h.isOwn(at.Addr()) {
			return target{why: at.Addr().String() + " is not an address of this host"}
		}
		return target{at: []netip.AddrPort{reachable(at)}}
	}
	name, portName, err := net.SplitHostPort(address)
	port, err2 := strconv.ParseUint(portName, 10, 16)
	if err != nil || err2 != nil || name == "" {
		return target{why: "cannot read the address " + strconv.Quote(address)}
	}
	if !lookups {
		return target{}
	}
	addresses := h.resolve(now, name)
	if len(addresses) == 0 {
		return target{why: "the name " + name + " has no address"}
	}
	var t target
	for _, a := range addresses {
		// If one of two addresses is another host's, it is unknown which host gets a request.
		if !h.isOwn(a) {
			return target{why: name + " is " + a.String() + ", not an address of this host"}
		}
		t.at = append(t.at, reachable(netip.AddrPortFrom(a.Unmap(), uint16(port))))
	}
	return t
}

// reachable replaces the unspecified address by loopback, which a connection to it reaches.
func reachable(at netip.AddrPort) netip.AddrPort {
	a := at.Addr().Unmap().WithZone("")
	switch {
	case a.IsUnspecified() && a.Is4():
		a = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case a.IsUnspecified():
		a = netip.IPv6Loopback()
	}
	return netip.AddrPortFrom(a, at.Port())
}

func (h *hosts) isOwn(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return a.IsLoopback() || a.IsUnspecified() || slices.Contains(h.own, a)
}

// resolve returns the addresses of a name, cached or looked up within the rest of this round's
// time.
func (h *hosts) resolve(now time.Time, name string) []netip.Addr {
	if r, ok := h.names[name]; ok && now.Before(r.until) {
		return r.addresses
	}
	if h.left <= 0 {
		return h.names[name].addresses // the old ones; the next round tries again
	}
	begin := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), h.left)
	defer cancel()
	addresses, err := h.lookup(ctx, name)
	h.left -= time.Since(begin)
	r := resolved{addresses, now.Add(resolvedFor)}
	if err != nil || len(addresses) == 0 {
		// A short failure of the resolver must not take a worker's GPU away.
		r = resolved{h.names[name].addresses, now.Add(unresolvedFor)}
	}
	h.names[name] = r
	return r.addresses
}
