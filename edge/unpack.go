// Unpacking: decompressing bodies that have a content coding.

package edge

import (
	"bytes"
	"errors"

	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"

	"kvasir/header"
	"kvasir/openai"
)

// Unpack returns the decompressed body of a received request, valid until Forget. Workers
// understand no content coding, and the guards must see the text. The limit, in bytes, holds for
// the decompressed size too, and the output counts against the budget as it grows.
func Unpack(ctx *fasthttp.RequestCtx, budget *Budget, limit int64) ([]byte, *openai.Error) {
	coding := ctx.Request.Header.ContentEncoding()
	if len(coding) == 0 || header.Is(coding, "identity") {
		return ctx.Request.Body(), nil
	}
	out := body{budget: budget, most: limit}
	kept := false
	defer func() { // also when a decoder panics on a client's bytes
		if !kept {
			out.letGo()
		}
	}()
	err := unpackInto(&out, coding, ctx.Request.Body())
	if err == nil {
		kept = true
		Forget(ctx)
		ctx.Conn().(*Conn).body = out
		return out.bytes(), nil
	}
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		return nil, maxBodyExceeded(limit)
	case errors.Is(err, ErrNoRoom):
		return nil, NoRoom()
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return nil, openai.Invalid("", "The zstd body asks its reader for a window of more than 8 MiB; compress it with a smaller one (RFC 9659)")
	case errors.Is(err, fasthttp.ErrContentEncodingUnsupported):
		return nil, &openai.Error{
			Status: 415, Type: "invalid_request_error",
			Message: "The Content-Encoding " + openai.Quoted(string(coding)) + " is not supported; send gzip, deflate, br, zstd or none",
		}
	default:
		return nil, openai.Invalid("", "The request body is not valid %s; send it uncompressed, or compress it anew", coding)
	}
}

// unpackInto decodes one content coding into out. While it works, the decoder's own window is
// reserved from the budget: up to 8 MiB for zstd and 16 MiB for br, as the body itself declares.
func unpackInto(out *body, coding, packed []byte) error {
	var err error
	switch {
	case header.Is(coding, "gzip"):
		_, err = fasthttp.WriteGunzip(out, packed)
	case header.Is(coding, "deflate"):
		_, err = fasthttp.WriteInflate(out, packed)
	case header.Is(coding, "br"):
		window := brotliWindow(packed)
		if !out.budget.take(window) {
			return ErrNoRoom
		}
		defer out.budget.give(window)
		_, err = fasthttp.WriteUnbrotli(out, packed)
	case header.Is(coding, "zstd"):
		err = unpackZstd(out, packed)
	default:
		err = fasthttp.ErrContentEncodingUnsupported
	}
	return err
}

// maxZstdWindow is the largest window of a zstd body: RFC 9659, 3.
const maxZstdWindow = 8 << 20

// unpackZstd decodes a zstd body. Decoders are not reused: one that has read a body with a large
// window would keep that memory.
func unpackZstd(out *body, packed []byte) error {
	window := zstdWindow(packed)
	if window > maxZstdWindow {
		return zstd.ErrWindowSizeExceeded
	}
	if !out.budget.take(window) {
		return ErrNoRoom
	}
	defer out.budget.give(window)
	r, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(uint64(window)))
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = r.WriteTo(out)
	return err
}

// zstdWindow returns the window, in bytes, that a decoder of packed needs. Later frames get no
// larger window than the first one declares.
func zstdWindow(packed []byte) int64 {
	var h zstd.Header
	switch err := h.Decode(packed); {
	case err != nil || h.Skippable:
		return maxZstdWindow
	case h.SingleSegment:
		return int64(max(min(h.FrameContentSize, maxZstdWindow+1), zstd.MinWindowSize))
	default:
		return int64(min(h.WindowSize, maxZstdWindow+1))
	}
}

// brotliWindow returns the window, in bytes, that a decoder of packed needs (RFC 7932, 9.1).
func brotliWindow(packed []byte) int64 {
	if len(packed) == 0 {
		return 0
	}
	bits := 16
	switch first := packed[0]; {
	case first&1 == 0:
	case first>>1&7 != 0:
		bits = 17 + int(first>>1&7)
	case first>>4&7 == 0:
		bits = 17
	default:
		bits = 8 + int(first>>4&7)
	}
	return 1 << bits
}
