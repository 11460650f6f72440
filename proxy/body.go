// Bodies: how a client's body is unpacked and handed to the parser.

package proxy

import (
	"bytes"
	"errors"

	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"

	"kvasir/header"
	"kvasir/openai"
)

// read unpacks and parses the body, once.
func (x *exchange) read() *openai.Error {
	body, err := unpackBody(x.ctx, &x.p.bodies, x.plan.state.settings.MaxBody)
	if err != nil {
		return err
	}
	if err := x.plan.parse(body, x.ctx.Request.Header.ContentType()); err != nil {
		return err
	}
	if n := len(x.plan.req.Content.Texts); n > fewTexts && !x.conn.body.charge(&x.p.bodies, int64(n)*textCost) {
		return noRoom()
	}
	x.facts.streamed = x.plan.req.Stream
	return nil
}

// Each text of a request takes textCost bytes besides its own, in the parser and in the classifier.
// A few packed kilobytes can hold so many texts that they take ten megabytes. Above fewTexts these
// bytes are counted as the body is.
const (
	fewTexts = 1024
	textCost = 96
)

// unpackBody takes a content coding off the body. No worker understands one, and
// what is inside must be judged. The limit holds for the unpacked size too, and
// what is unpacked is counted as it is made.
func unpackBody(ctx *fasthttp.RequestCtx, budget *bodyBudget, limit int64) ([]byte, *openai.Error) {
	coding := ctx.Request.Header.ContentEncoding()
	if len(coding) == 0 || header.Is(coding, "identity") {
		return ctx.Request.Body(), nil
	}
	out := body{budget: budget, most: limit}
	kept := false
	defer func() { // also where a reader of foreign bytes panics
		if !kept {
			out.letGo()
		}
	}()
	err := unpackInto(&out, coding, ctx.Request.Body())
	if err == nil {
		kept = true
		forgetBody(ctx)
		ctx.Conn().(*clientConn).body = out
		return out.bytes(), nil
	}
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		return nil, tooLarge(limit)
	case errors.Is(err, errNoRoom):
		return nil, noRoom()
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

// unpackInto unpacks one content coding into out. What the reader of a coding
// needs beside its result is taken from the budget while it works: up to 8 MiB
// for zstd and 16 MiB for br, as the body itself says.
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
			return errNoRoom
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

// unpackZstd unpacks a zstd body. Readers are not kept: one that has read a body
// with a large window would hold as much for the next one.
func unpackZstd(out *body, packed []byte) error {
	window := zstdWindow(packed)
	if window > maxZstdWindow {
		return zstd.ErrWindowSizeExceeded
	}
	if !out.budget.take(window) {
		return errNoRoom
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

// zstdWindow is how many bytes a reader of packed must keep. Frames behind the
// first one get no larger window than that one asks for.
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

// brotliWindow is how many bytes a reader of packed must keep (RFC 7932, 9.1).
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
