// What a web page may have a browser send to either listener.

// Package browser refuses what web pages of other people may have had a browser
// send here, and answers for those that may ask (CORS).
//
//	if err := browser.CheckAPI(ctx, hosts, origins); err != nil { ... } // before any route
//	if browser.CORS(ctx, origins) { return }                            // a preflight, answered
//
// A page that is open in the browser of somebody near can reach listeners that its
// author cannot, in two ways:
//
//   - across sites, with Origin or Sec-Fetch-Site in the head. What a form can send
//     goes out at once (GET, and POST of text, forms or nothing); all else only after
//     a preflight, which nothing here answers but CORS.
//   - as the site itself, once its name resolves to our address (DNS rebinding). Then
//     nothing but Host tells. A name has to be one of ours. An address always passes:
//     who asks by an address has not been led here by a stranger's name.
//
// No page reaches Unix sockets.
package browser

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

// AdminHeader has to be in requests that change something on the admin listener,
// with any value: no page can send it across sites without a preflight.
const AdminHeader = "X-Kvasir-Admin"

// ownName is what this machine calls itself; "" if it cannot be found out.
var ownName = func() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}()

// hostOf is the name or the address of a Host line, without the port. It runs for
// each request, as do the functions that judge what it gives; none allocates.
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

// isOwnHost says whether no stranger's page can have been loaded under this host:
// it is an address, a name that leads to this machine only, or one of names.
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

// isOwnPage says whether a page that was loaded from this host comes from this
// machine, or from one of names. Other addresses do not count: anybody may serve a
// page from there.
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

// isLocalName says whether no stranger can own this name in the public DNS: it has
// no dot, or ends in .local or .internal.
func isLocalName(host []byte) bool {
	return bytes.IndexByte(host, '.') < 0 || foldEnds(host, ".local") || foldEnds(host, ".internal")
}

func foldEnds(b []byte, lower string) bool {
	return len(b) >= len(lower) && header.Is(b[len(b)-len(lower):], lower)
}

// originHost is the host and port of an origin; empty where it has none, as `null`.
func originHost(origin []byte) []byte {
	_, host, _ := bytes.Cut(origin, []byte("://"))
	return host
}

// isSite says whether an origin's host and port are those that the request is for.
func isSite(host []byte, h *fasthttp.RequestHeader) bool {
	return len(host) > 0 && bytes.EqualFold(host, h.Host())
}

// shown is a name that a client sent, shortened and quoted for a message.
func shown(name []byte) string { return `"` + openai.Clip(string(name)) + `"` }

func forbidden(code, message string) *openai.Error {
	return &openai.Error{Status: fasthttp.StatusForbidden, Type: "invalid_request_error", Code: code, Message: message}
}

func isUnix(ctx *fasthttp.RequestCtx) bool { return ctx.LocalAddr().Network() == "unix" }

// tellsLife says whether the answer of a request tells only that the process lives. It
// goes by the path as it was sent, as the routers do.
func tellsLife(ctx *fasthttp.RequestCtx) bool {
	path := ctx.URI().PathOriginal()
	return string(path) == "/livez" || string(path) == "/health"
}

// CheckAdmin refuses, with 403, a request to the admin listener that a web page of
// somebody else may have caused. names are server.admin_hosts: the names by which
// the listener may be asked besides this machine's own.
func CheckAdmin(ctx *fasthttp.RequestCtx, names []string) *openai.Error {
	if isUnix(ctx) || tellsLife(ctx) {
		return nil
	}
	h := &ctx.Request.Header
	if host := hostOf(h.Host()); !isOwnHost(host, names) {
		return forbidden("host_not_allowed", "The admin listener does not accept the name "+shown(host)+", because a web page could make a name of its own lead here. "+
			"Use an IP address or localhost, or add the name to server.admin_hosts; a Prometheus that scrapes by name needs this")
	}
	if origin := h.Peek("Origin"); len(origin) > 0 {
		from := originHost(origin)
		if !isSite(from, h) && !contains(names, hostOf(from)) {
			return forbidden("origin_not_allowed", "Web pages of "+shown(origin)+" may not ask the admin listener")
		}
	}
	if string(h.Peek("Sec-Fetch-Site")) == "cross-site" && !isLink(ctx) {
		return forbidden("origin_not_allowed", "Web pages of other sites may not ask the admin listener")
	}
	return nil
}

// isLink says whether a link of another page leads here, as one may to all but profiles: those take
// the processor for as long as their query says.
func isLink(ctx *fasthttp.RequestCtx) bool {
	return ctx.IsGet() && string(ctx.Request.Header.Peek("Sec-Fetch-Mode")) == "navigate" && !bytes.HasPrefix(ctx.Path(), []byte("/debug/"))
}

// CheckChange refuses, with 403, a request to a route of the admin listener that
// changes something, where a web page may have caused it.
func CheckChange(ctx *fasthttp.RequestCtx) *openai.Error {
	h := &ctx.Request.Header
	if len(h.Peek(AdminHeader)) == 0 {
		return forbidden("admin_header_missing", "A request that changes something needs a header that no web page can send by itself: add `"+AdminHeader+": 1`, as in curl -H '"+AdminHeader+": 1'")
	}
	switch site := string(h.Peek("Sec-Fetch-Site")); site {
	case "", "same-origin", "none":
		return nil
	default:
		return forbidden("origin_not_allowed", "Web pages of other sites may change nothing here")
	}
}

// CheckAPI refuses, with 403 or 415, a request to the OpenAI API that a web page of
// somebody else may have caused. It is for an API that only this machine reaches and
// that asks for no key: where there are keys a page has none, and an API that listens
// on a network is there for everybody who reaches it. hosts are server.hosts, "*" for
// any name; origins are server.cors.
func CheckAPI(ctx *fasthttp.RequestCtx, hosts, origins []string) *openai.Error {
	if tellsLife(ctx) {
		return nil
	}
	h := &ctx.Request.Header
	if host := hostOf(h.Host()); !isOwnHost(host, hosts) && !isLocalName(host) && !slices.Contains(hosts, "*") {
		return forbidden("host_not_allowed", "Without keys, on a loopback address, this gateway does not accept the name "+shown(host)+
			", because a web page could make a name of its own lead here. Use an IP address or localhost, or add the name to server.hosts; a reverse proxy that passes Host on needs this")
	}
	if !ctx.IsPost() || isPlainJSON(h.ContentType()) || openai.IsJSON(h.ContentType()) {
		return nil // what else a page sends across sites comes after a preflight
	}
	switch origin := h.Peek("Origin"); {
	case len(origin) > 0:
		from := originHost(origin)
		if allowsOrigin(origins, string(origin)) || isSite(from, h) || isOwnPage(hostOf(from), hosts) {
			return nil
		}
		return forbidden("origin_not_allowed", "Web pages of "+shown(origin)+" may not ask this gateway; add them to server.cors to allow it")
	case isForm(h.ContentType()):
		return nil // a browser would have said of which page
	}
	return &openai.Error{
		Status: fasthttp.StatusUnsupportedMediaType, Type: "invalid_request_error", Code: "content_type_not_allowed",
		Message: "Send `Content-Type: application/json`, not " + shown(h.ContentType()) +
			": without keys, on a loopback address, this gateway refuses other bodies, because any web page could send them through a browser",
	}
}

// isPlainJSON is openai.IsJSON for what nearly all clients send, without an allocation.
func isPlainJSON(contentType []byte) bool { return header.Is(contentType, "application/json") }

func isForm(contentType []byte) bool {
	kind, _, _ := strings.Cut(string(contentType), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "multipart/form-data")
}
