// Framing: where a reply's body ends, decoded out of raw reads in place, and chunks written around a read.
package proxy

import (
	"errors"
	"strconv"

	"kvasir/header"
)

const (
	maxChunkLine = 4 << 10  // bytes of a chunk's size line, extensions included
	maxTrailers  = 64 << 10 // bytes behind the last chunk
	maxChunk     = 1 << 40  // bytes of one chunk
)

// errCut is a body that ended before its framing says so: the worker died.
var errCut = errors.New("the reply was cut before its end")

var (
	errChunkSize = errors.New("broken chunked body: a chunk's size is no hexadecimal number up to 2^40")
	errChunkLine = errors.New("broken chunked body: a size line over 4 KiB or with a control character")
	errChunkEnd  = errors.New("broken chunked body: a chunk does not end in CRLF")
	errTrailers  = errors.New("broken chunked body: trailers over 64 KiB or malformed")
)

// A framing decodes one reply body (RFC 9112, section 6 and 7). Raw reads go
// in, in order, each once; whatever they split, nothing has to be kept between
// them. Trailers are read and dropped.
//
//  1. done is true exactly when the body has ended as its framing says.
//  2. After an error nothing more is decoded, and the connection is dead.
//  3. dirty is true once bytes came behind the end; such a connection must not
//     be used again, they would be taken for the next reply.
type framing struct {
	how   frameKind
	state chunkState
	left  int64 // bytes still to come, of the body or of the chunk
	line  int   // bytes so far of the size line, or of the trailers
	ended bool
	dirty bool
	err   error
}

type frameKind uint8

const (
	frameClose   frameKind = iota // until the connection closes
	frameLength                   // Content-Length, or no body at all
	frameChunked                  // Transfer-Encoding: chunked
)

type chunkState uint8

const (
	atSize      chunkState = iota // before the first digit
	inSize                        // behind a digit
	behindSize                    // blanks between the size and ; or CR
	inExtension                   // behind ;
	atSizeLF                      // behind the CR of the size line
	inData                        // in the chunk's bytes
	atDataCR                      // behind them
	atDataLF                      //
	atTrailer                     // at the start of a trailer line, or of the last CRLF
	inTrailer                     // in a trailer line
	atTrailerLF                   // behind its CR
	atLastLF                      // behind the last CR of the body
)

// init starts the body that follows h; isHead says that the request was HEAD.
// An interim reply (1xx) has no body and is not to be given here.
func (f *framing) init(h *replyHead, isHead bool) {
	*f = framing{}
	switch {
	case isHead || h.status == 204 || h.status == 304 || h.status < 200:
		f.how, f.ended = frameLength, true
	case h.chunked:
		f.how = frameChunked
	case h.length >= 0:
		f.how, f.left, f.ended = frameLength, h.length, h.length == 0
	}
}

// done says whether the body has ended rightly. One that is framed by the
// connection's close is done with atEOF.
func (f *framing) done() bool { return f.ended }

// atEOF tells what the end of the connection means for the body: nil if it is
// a right end, else errCut or the error that decode returned.
func (f *framing) atEOF() error {
	if f.err == nil && f.how == frameClose {
		f.ended = true
	}
	switch {
	case f.err != nil:
		return f.err
	case !f.ended:
		return errCut
	}
	return nil
}

// decode takes one raw read. payload is the body's bytes in it, a sub-slice of
// b: where b holds several chunks they are moved together, over the framing
// between them, so a read inside one chunk is not copied. rest is what b holds
// behind the end of the body (dirty is set then); before the end it is always
// empty. With an error, payload is what came before it.
func (f *framing) decode(b []byte) (payload, rest []byte, err error) {
	switch {
	case f.err != nil:
		return nil, nil, f.err
	case f.ended:
		rest = b
	case f.how == frameClose:
		payload = b
	case f.how == frameLength:
		n := min(f.left, int64(len(b)))
		payload, rest = b[:n], b[n:]
		f.left -= n
		f.ended = f.left == 0
	default:
		payload, rest, err = f.decodeChunks(b)
	}
	f.dirty = f.dirty || len(rest) > 0
	f.err = err
	return payload, rest, err
}

func (f *framing) decodeChunks(b []byte) (payload, rest []byte, err error) {
	start, end := 0, 0 // the payload is b[start:end]
	for i := 0; i < len(b); {
		if f.state != inData {
			c := b[i]
			i++
			if err := f.step(c); err != nil {
				return b[start:end], nil, err
			}
			if f.ended {
				return b[start:end], b[i:], nil
			}
			continue
		}
		n := int(min(f.left, int64(len(b)-i)))
		if end == 0 {
			start, end = i, i
		}
		if end != i {
			copy(b[end:], b[i:i+n])
		}
		end += n
		i += n
		f.left -= int64(n)
		if f.left == 0 {
			f.state = atDataCR
		}
	}
	return b[start:end], nil, nil
}

// step takes one byte of what stands around the chunks' bytes.
func (f *framing) step(c byte) error {
	switch f.state {
	case atSize, inSize, behindSize, inExtension:
		if f.line++; f.line > maxChunkLine {
			return errChunkLine
		}
		return f.stepSize(c)
	case atSizeLF:
		if c != '\n' {
			return errChunkLine
		}
		f.line, f.state = 0, inData
		if f.left == 0 {
			f.state = atTrailer
		}
	case atDataCR:
		if c != '\r' {
			return errChunkEnd
		}
		f.state = atDataLF
	case atDataLF:
		if c != '\n' {
			return errChunkEnd
		}
		f.state = atSize
	default:
		if f.line++; f.line > maxTrailers {
			return errTrailers
		}
		return f.stepTrailer(c)
	}
	return nil
}

func (f *framing) stepSize(c byte) error {
	if f.state <= inSize {
		if v := chunkDigit[c]; v >= 0 {
			f.left = f.left<<4 | int64(v)
			f.state = inSize
			if f.left > maxChunk {
				return errChunkSize
			}
			return nil
		}
		if f.state == atSize {
			return errChunkSize
		}
	}
	switch {
	case c == '\r':
		f.state = atSizeLF
	case f.state == inExtension:
		if !header.IsValue(c) {
			return errChunkLine
		}
	case c == ';':
		f.state = inExtension
	case c == ' ' || c == '\t':
		f.state = behindSize
	default:
		return errChunkSize
	}
	return nil
}

func (f *framing) stepTrailer(c byte) error {
	switch {
	case f.state == atTrailer && c == '\r':
		f.state = atLastLF
	case f.state == atTrailer && header.IsToken(c):
		f.state = inTrailer
	case f.state == inTrailer && c == '\r':
		f.state = atTrailerLF
	case f.state == inTrailer && header.IsValue(c):
	case f.state == atTrailerLF && c == '\n':
		f.state = atTrailer
	case f.state == atLastLF && c == '\n':
		f.ended = true
	default:
		return errTrailers
	}
	return nil
}

// Room that frameChunk needs around a payload, in bytes.
const (
	chunkHeadroom = 10 // 8 hexadecimal digits and CRLF
	chunkTailroom = 2
)

// lastChunk ends a chunked body without trailers.
const lastChunk = "0\r\n\r\n"

// appendChunkHead appends the size line of a chunk of n bytes, n > 0. The
// chunk's bytes and CRLF have to follow.
func appendChunkHead(dst []byte, n int) []byte {
	return append(strconv.AppendUint(dst, uint64(n), 16), '\r', '\n')
}

// frameChunk makes buf[start:end] a chunk: it writes the size line directly
// before it and CRLF directly behind it, so that buf[s:e] can be sent in one
// write and the payload was not copied. chunkHeadroom bytes before start and
// chunkTailroom behind end are overwritten. An empty payload is a bug: its
// chunk would end the body.
func frameChunk(buf []byte, start, end int) (s, e int) {
	if start < chunkHeadroom || end <= start || uint64(end-start) >= 1<<32 {
		panic("BUG: frameChunk of an empty or huge payload, or without headroom")
	}
	buf[end], buf[end+1] = '\r', '\n'
	s = start - 2
	buf[s], buf[s+1] = '\r', '\n'
	for n := end - start; n > 0; n >>= 4 {
		s--
		buf[s] = "0123456789abcdef"[n&15]
	}
	return s, end + chunkTailroom
}

// chunkDigit is the value of a hexadecimal digit, -1 for every other byte.
var chunkDigit = func() (t [256]int8) {
	for c := range 256 {
		switch {
		case c >= '0' && c <= '9':
			t[c] = int8(c - '0')
		case c >= 'a' && c <= 'f':
			t[c] = int8(c - 'a' + 10)
		case c >= 'A' && c <= 'F':
			t[c] = int8(c - 'A' + 10)
		default:
			t[c] = -1
		}
	}
	return t
}()
