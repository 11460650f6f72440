// The ids of requests.

package respond

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"

	"github.com/valyala/fasthttp"
)

// requestIDLimit is how long a client's X-Request-Id may be, in bytes.
const requestIDLimit = 128

// RequestID is the client's X-Request-Id where it can stand in a header and in the
// log, else a new one.
func RequestID(ctx *fasthttp.RequestCtx) string {
	if id := ctx.Request.Header.Peek("X-Request-Id"); len(id) > 0 && len(id) <= requestIDLimit && isPrintable(id) {
		return string(id)
	}
	id := NewID()
	return string(id[:])
}

// An ID is a UUID (version 4) as it is written.
type ID [36]byte

// NewID makes an ID. It has to be unlike others, not secret: the kernel's randomness
// would cost more than the rest of a reply's head.
//
// Workers are always sent such an ID, never the client's: vLLM's connectors between
// engines read addresses to dial out of a request's id
// (`___prefill_addr_host:port`), and two clients may send the same.
func NewID() (text ID) {
	var id [16]byte
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	hex.Encode(text[:8], id[:4])
	hex.Encode(text[9:13], id[4:6])
	hex.Encode(text[14:18], id[6:8])
	hex.Encode(text[19:23], id[8:10])
	hex.Encode(text[24:], id[10:])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return text
}

func isPrintable(b []byte) bool {
	for _, c := range b {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}
