// Pages: what a web page of somebody else may have a browser send here, and what it may not.

package proxy

import (
	"bytes"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"kvasir/header"
	"kvasir/openai"
)

// A page that is open in a browser of somebody here can ask listeners that its
// author cannot reach, in two ways:
//
//   - across sites, with Origin or Sec-Fetch-Site in the head: what a form can
//     send goes out at once (GET, and POST of text, forms or nothing), all else
//     only after a preflight, which nothing here answers but server.cors;
//   - as the site itself, once its name leads to our address (DNS rebinding):
//     then nothing but Host tells. A name has to be one of ours. An address is
//     always: no name of somebody's is in the way of who asks by it.
//
// Unix sockets are out of every page's reach.

// AdminHeader has to be in requests that change something on the admin
// listener: no page can send it across sites without a preflight.
const AdminHeader = "X-Kvasir-Admin"

// ownName is what this machine calls itself; "": nothing.
var ownName = func() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}()

// hostOf is the name or the address of a Host line, without the port. It and
// what judges it are asked for each request and allocate nothing.
func hostOf(host []byte) []byte {
	if len(host) > 0 && host[0] == '[' {
		if i := bytes.IndexByte(host, ']'); i > 0 {
			return host[1:i]
		}
	}
	if i := bytes.IndexByte(host, ':'); i >= 0 && i == bytes.LastIndexByte(host, ':') {
		host = host[:i]
	}
	return bytes.TrimSuffix(host, dot)
}

var dot = []byte(".")

// isOwnHost says whether no page of a stranger's can have been loaded under this
// name: an address, a name that leads to this machine only, or one of names.
func isOwnHost(host []byte, names []string) bool {
	return len(host) == 0 || isAddress(host) || header.Is(host, "localhost") || foldEnds(host, ".localhost") ||
		strings.EqualFold(string(host), ownName) || contains(names, host)
}

func contains(names []string, host []byte) bool {
	for _, name := range names {
		if strings.EqualFold(string(host), name) {
			return true
		}
	}
	return false
}

// isOwnPage says whether a page that was loaded from this host is of this machine,
// or of one of names: from another address anybody may serve one.
func isOwnPage(host []byte, names []string) bool {
	return header.Is(host, "localhost") || foldEnds(host, ".localhost") || net.ParseIP(string(host)).IsLoopback() || contains(names, host)
}

// isAddress says whether a host is an IP address, or nothing that browsers would
// look up: no name has a colon, or ends in a number (WHATWG URL, 3.5).
func isAddress(host []byte) bool {
	if bytes.IndexByte(host, ':') >= 0 {
		return true
	}
	last := host[bytes.LastIndexByte(host, '.')+1:]
	for _, c := range last {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(last) > 0
}

// isLocalName says whether a name is none that a stranger could have in the
// public DNS: without a dot, or below .local or .internal.
func isLocalName(host []byte) bool {
	return bytes.IndexByte(host, '.') < 0 || foldEnds(host, ".local") || foldEnds(host, ".internal")
}

func foldEnds(b []byte, lower string) bool {
	return len(b) >= len(lower) && header.Is(b[len(b)-len(lower):], lower)
}

// originHost is the host and port of an origin; "": it has none, as `null`.
func originHost(origin []byte) []byte {
	_, host, _ := bytes.Cut(origin, []byte("://"))
	return host
}

// isSite says whether an origin's host and port are those that were asked.
func isSite(host []byte, h *fasthttp.RequestHeader) bool {
	return len(host) > 0 && bytes.EqualFold(host, h.Host())
}

// shown is a name that a client sent, as a message may quote it.
func shown(name []byte) string { return `"` + openai.Clip(string(name)) + `"` }

func forbidden(code, message string) *openai.Error {
	return &openai.Error{Status: fasthttp.StatusForbidden, Type: "invalid_request_error", Code: code, Message: message}
}

func isUnix(ctx *fasthttp.RequestCtx) bool { return ctx.LocalAddr().Network() == "unix" }

// tellsLife says whether a path tells nothing but that somebody is there.
func tellsLife(path []byte) bool { return string(path) == "/livez" || string(path) == "/health" }

// fromElsewhere refuses what a page of somebody else's may have had a browser
// send to the admin listener.
func (a admin) fromElsewhere(ctx *fasthttp.RequestCtx) *openai.Error {
	if isUnix(ctx) || tellsLife(ctx.Path()) {
		return nil
	}
	h := &ctx.Request.Header
	names := a.state.Load().settings.AdminHosts
	if host := hostOf(h.Host()); !isOwnHost(host, names) {
		return forbidden("host_not_allowed", "The admin listener does not answer to the name "+shown(host)+", as any web page could come by a name of its own. "+
			"Ask by an IP address or as localhost, or add the name to server.admin_hosts, as a Prometheus needs that scrapes by name")
	}
	if origin := h.Peek("Origin"); len(origin) > 0 {
		from := originHost(origin)
		if !isSite(from, h) && !contains(names, hostOf(from)) {
			return forbidden("origin_not_allowed", "Web pages of "+shown(origin)+" may not ask the admin listener")
		}
	}
	if string(h.Peek("Sec-Fetch-Site")) == "cross-site" && !(ctx.IsGet() && string(h.Peek("Sec-Fetch-Mode")) == "navigate") { // a link may lead here
		return forbidden("origin_not_allowed", "Web pages of other sites may not ask the admin listener")
	}
	return nil
}

// changing is a route of the admin listener that changes something.
func (a admin) changing(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		h := &ctx.Request.Header
		if len(h.Peek(AdminHeader)) == 0 {
			writeError(ctx, forbidden("admin_header_missing", "What changes something here asks for a header that no web page can send unasked: add `"+AdminHeader+": 1`, as in curl -H '"+AdminHeader+": 1'"))
			return
		}
		switch site := string(h.Peek("Sec-Fetch-Site")); site {
		case "", "same-origin", "none":
			next(ctx)
		default:
			writeError(ctx, forbidden("origin_not_allowed", "Web pages of other sites may change nothing here"))
		}
	}
}

// fromElsewhere refuses what a page of somebody else's may have had a browser
// send to an API that only this machine reaches and that asks for no key. With
// keys a page has none, and what listens on a network is there for whoever
// reaches it.
func (p *Proxy) fromElsewhere(ctx *fasthttp.RequestCtx) *openai.Error {
	s := p.state.Load()
	if !p.loopback.Load() || s.keys.required() || tellsLife(ctx.Path()) {
		return nil
	}
	h := &ctx.Request.Header
	if host := hostOf(h.Host()); !isOwnHost(host, s.settings.Hosts) && !isLocalName(host) && !slices.Contains(s.settings.Hosts, "*") {
		return forbidden("host_not_allowed", "Without keys and on a loopback address this gateway does not answer to the name "+shown(host)+
			", as any web page could come by a name of its own. Ask by an IP address or as localhost, or add the name to server.hosts, as a reverse proxy needs that passes Host on")
	}
	if !ctx.IsPost() || isPlainJSON(h.ContentType()) || openai.IsJSON(h.ContentType()) {
		return nil // what else a page sends across sites comes after a preflight
	}
	switch origin := h.Peek("Origin"); {
	case len(origin) > 0:
		from := originHost(origin)
		if allowsOrigin(s.settings.CORS, string(origin)) || isSite(from, h) || isOwnPage(hostOf(from), s.settings.Hosts) {
			return nil
		}
		return forbidden("origin_not_allowed", "Web pages of "+shown(origin)+" may not ask this gateway; name them in server.cors if they shall")
	case isForm(h.ContentType()):
		return nil // a browser would have said of which page
	}
	return &openai.Error{
		Status: fasthttp.StatusUnsupportedMediaType, Type: "invalid_request_error", Code: "content_type_not_allowed",
		Message: "Without keys and on a loopback address this gateway takes JSON only where the head says so, since a web page could send anything else unasked: add `Content-Type: application/json`, not " +
			shown(h.ContentType()),
	}
}

// isPlainJSON is IsJSON for what nearly all clients send, without an allocation.
func isPlainJSON(contentType []byte) bool { return header.Is(contentType, "application/json") }

func isForm(contentType []byte) bool {
	kind, _, _ := strings.Cut(string(contentType), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "multipart/form-data")
}

// onLoopback says whether only this machine reaches a listener by TCP.
func onLoopback(ln net.Listener) bool {
	at, ok := ln.Addr().(*net.TCPAddr)
	return ok && at.IP.IsLoopback()
}
