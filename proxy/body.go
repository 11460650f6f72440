// Bodies: how a client's body is unpacked and handed to the parser.
package proxy

import (
	"bytes"
	"errors"

	"github.com/valyala/fasthttp"
)

// read unpacks and parses the body, once.
func (x *exchange) read() *apiError {
	body, err := x.unpack()
	if err != nil {
		return err
	}
	x.body, x.prompt = body, len(body)
	if err := x.req.parse(*x.route, body, x.ctx.Request.Header.ContentType()); err != nil {
		return err
	}
	if err := x.req.refuseTemplate(x.state.settings.Guards.ClientTemplates); err != nil {
		return err
	}
	x.facts.asked = string(x.req.model) // the body's bytes do not outlive the request
	x.facts.streamed = x.req.stream
	return nil
}

// unpack takes a content coding off the body. No worker understands one, and
// what is inside must be judged. The limit holds for the unpacked size too.
func (x *exchange) unpack() ([]byte, *apiError) {
	coding := x.ctx.Request.Header.ContentEncoding()
	if len(coding) == 0 || string(coding) == "identity" {
		return x.ctx.Request.Body(), nil
	}
	x.ctx.Request.Header.SetContentEncodingBytes(bytes.ToLower(coding)) // names of codings have no case, but fasthttp's have
	limit := x.state.settings.MaxBody
	body, err := x.ctx.Request.BodyUncompressedWithLimit(int(limit))
	switch {
	case err == nil:
		return body, nil
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		return nil, tooLarge(limit)
	case errors.Is(err, fasthttp.ErrContentEncodingUnsupported):
		return nil, &apiError{
			status: 415, kind: "invalid_request_error",
			message: "The Content-Encoding " + quoted(string(coding)) + " is not supported; send gzip, deflate, br, zstd or none",
		}
	default:
		return nil, invalid("", "The request body is not valid %s; send it uncompressed, or compress it anew", coding)
	}
}
