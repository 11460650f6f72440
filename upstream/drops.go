// Drops: the headers that go no further, from clients to workers and back.

package upstream

import (
	"bytes"
	"kvasir/header"
	"slices"
)

// replyDrops are the headers of a worker that do not go on to a client, besides
// the hop-by-hop ones and the families below: a worker speaks for a model, not
// for the site that clients know. By these it would set cookies there, switch
// browsers over, have them report or ask for passwords, have a proxy in front of
// us hand out its files, or speak of a limit that is not the key's.
var replyDrops = byLength(
	"content-length", "x-request-id",
	"set-cookie", "set-cookie2", "clear-site-data", "strict-transport-security", "public-key-pins", "public-key-pins-report-only",
	"expect-ct", "refresh", "location", "content-location", "alt-svc", "alt-used", "link", "service-worker-allowed", "sourcemap", "x-sourcemap",
	"content-security-policy", "content-security-policy-report-only", "report-to", "reporting-endpoints", "nel", "timing-allow-origin",
	"www-authenticate", "authentication-info", "x-sendfile", "x-lighttpd-send-file", "x-reproxy-url", "x-accel-redirect",
)

// byLength has names by how long they are, so that a header is compared with few.
func byLength(names ...string) (table [48][]string) {
	for _, name := range names {
		table[len(name)] = append(table[len(name)], name)
	}
	return table
}

func droppedFromReply(name []byte) bool {
	if len(name) < len(replyDrops) {
		for _, drop := range replyDrops[len(name)] {
			if header.Is(name, drop) {
				return true
			}
		}
	}
	return header.HopByHop(name) || header.HasPrefix(name, "x-kvasir-") || header.HasPrefix(name, "x-vsr-") ||
		header.HasPrefix(name, "x-ratelimit-") || header.HasPrefix(name, "access-control-") // which pages may ask is for server.cors to say
}

// requestDrops are the headers of a client that do not go on to a worker, besides
// the hop-by-hop ones and two families:
//
//   - what is written anew: Host, Content-Length, Content-Type (as the body was
//     read), Content-Encoding (it is sent decompressed), Accept-Encoding, Expect,
//     X-Request-Id;
//   - credentials. Whoever may pass the client's own on adds it;
//   - what steers an engine from the inside (prefill and decode addresses,
//     data-parallel ranks, Dynamo's worker ids) and is for routers only: from a
//     client it is a way past the placement;
//   - what makes another request of this one at some servers: its method or path.
//
// A name with _ for - is the same one to CGI and WSGI, and does not go on either.
var requestDrops = byLength(
	"host", "expect", "content-length", "content-type", "content-encoding", "accept-encoding", "x-request-id",
	"authorization", "x-api-key", "api-key",
	"x-kvasir-via", // it is written anew, with the mark of this gateway
	"x-data-parallel-rank", "x-data-parallel-host-port", "x-prefiller-host-port", "x-encoder-hosts-ports",
	"x-kv-cache-source-host-port", "x-worker-instance-id", "x-prefill-instance-id", "x-dp-rank", "x-prefill-dp-rank",
	"x-original-url", "x-rewrite-url", "x-http-method", "x-http-method-override", "x-method-override",
)

// DroppedFromRequest says whether a client's header of this name does not go on to
// a worker.
func DroppedFromRequest(name []byte) bool {
	if len(name) < len(requestDrops) {
		for _, drop := range requestDrops[len(name)] {
			if header.Alike(name, drop) {
				return true
			}
		}
	}
	return header.HopByHop(name) || header.BeginsAlike(name, "x-dynamo-") || header.BeginsAlike(name, "x-gateway-destination-endpoint")
}

// queryNames are the parameters of a query that go on to workers: those that SDKs
// send (Azure's, Anthropic's).
var queryNames = [...]string{"api-version", "beta"}

// appendQuery appends what of a client's query goes on, with its question mark.
// Gateways behind us prefer a model that the query names to that of the body, which
// was judged (LiteLLM).
func appendQuery(dst, query []byte) []byte {
	for mark := byte('?'); len(query) > 0; {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte("&"))
		name, value, _ := bytes.Cut(pair, []byte("="))
		if slices.Contains(queryNames[:], string(name)) && !bytes.ContainsFunc(value, oddInQueries) {
			dst = append(append(dst, mark), pair...)
			mark = '&'
		}
	}
	return dst
}

// oddInQueries are the characters that no value has of those that go on: what stands
// for another one, or for the end of a pair, is not passed.
func oddInQueries(c rune) bool {
	return !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '.' || c == '_' || c == '~')
}
