// The key of the admin listener.

package admin

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"

	"github.com/valyala/fasthttp"

	"kvasir/header"
	"kvasir/openai"
)

// A KeySum is the SHA-256 of a key. Sums are compared, and not keys, since all are of one length.
type KeySum = [sha256.Size]byte

// checkKey refuses, with 401, a request that does not show the key, where one is required.
func (o *Options) checkKey(ctx *fasthttp.RequestCtx) *openai.Error {
	if o.Key == nil {
		return nil
	}
	want := o.Key()
	if want == nil {
		return nil
	}
	shown := sha256.Sum256(bearer(ctx.Request.Header.Peek("Authorization")))
	if subtle.ConstantTimeCompare(shown[:], want[:]) == 1 {
		return nil
	}
	return &openai.Error{
		Status: fasthttp.StatusUnauthorized, Type: "invalid_request_error", Code: "invalid_admin_key",
		Message: "The admin listener requires its key: send Authorization: Bearer with the content of server.admin_key_file",
	}
}

// bearer is the token of an Authorization line; empty where it has none.
func bearer(line []byte) []byte {
	scheme, token, _ := bytes.Cut(line, []byte(" "))
	if !header.Is(scheme, "bearer") {
		return nil
	}
	return bytes.TrimSpace(token)
}

// forAnybody says whether a path needs no key: probes have none, and a browser cannot send one
// before the page has asked for it. None of them shows what is not public.
func forAnybody(path []byte) bool {
	switch string(path) {
	case "/", "/livez", "/readyz", "/health":
		return true
	}
	return bytes.HasPrefix(path, []byte("/page/"))
}

// needsNoKey says whether the route of a request is for anybody. The router goes by the path as it
// was sent, where %2f is part of a name: /api/requests/..%2f..%2fpage%2fx is no file of the page.
func needsNoKey(ctx *fasthttp.RequestCtx) bool {
	return forAnybody(ctx.Path()) && forAnybody(ctx.URI().PathOriginal())
}
