// Framing: finding the end of a body, and extracting its bytes from raw reads in place.

package wire

import (
	"errors"

	"kvasir/header"
)

const (
	maxChunkLine = 4 << 10  // bytes of a chunk's size line, extensions included
	maxTrailers  = 64 << 10 // bytes after the last chunk
	maxChunk     = 1 << 40  // bytes of one chunk
)

// ErrCut is returned for a body that ended before its framing says so: the peer died.
var ErrCut = errors.New("the reply was cut before its end")

var (
	errChunkSize = errors.New("broken chunked body: a chunk's size is no hexadecimal number up to 2^40")
	errChunkLine = errors.New("broken chunked body: a size line over 4 KiB or with a control character")
	errChunkEnd  = errors.New("broken chunked body: a chunk does not end in CRLF")
	errTrailers  = errors.New("broken chunked body: trailers over 64 KiB or malformed")
)

// A Framing decodes one body (RFC 9112, sections 6 and 7). Pass every raw read once, in order.
// The caller need not keep bytes between reads, wherever they split the body. Trailers are read
// and dropped. The zero value is UntilClose.
//
//  1. Done is true exactly when the body has ended as its framing says.
//  2. After an error nothing more is decoded, and the connection is dead.
//  3. Dirty is true once bytes came after the end. Such a connection must not be used again:
//     those bytes would be read as the next message.
type Framing struct {
	how   frameKind
	state chunkState // of a chunked body: what the next byte must be
	left  int64      // bytes still to come, of the body or of the chunk
	line  int        // bytes so far of the size line, or of the trailers
	ended bool       // the body ended as its framing says
	dirty bool       // bytes came after its end
	err   error      // the first error; it stays
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
	inSize                        // after a digit
	behindSize                    // blanks between the size and ; or CR
	inExtension                   // after ;
	atSizeLF                      // after the CR of the size line
	inData                        // within the chunk's bytes
	atDataCR                      // after the chunk's bytes
	atDataLF                      //
	atTrailer                     // at the start of a trailer line, or of the last CRLF
	inTrailer                     // in a trailer line
	atTrailerLF                   // after the CR of a trailer line
	atLastLF                      // after the last CR of the body
)

// UntilClose returns the framing of a body that ends when its connection does.
func UntilClose() Framing { return Framing{} }

// Sized returns the framing of a body of n bytes, n >= 0. With 0 bytes it is done at once.
func Sized(n int64) Framing { return Framing{how: frameLength, left: n, ended: n == 0} }

// Chunked returns the framing of Transfer-Encoding: chunked.
func Chunked() Framing { return Framing{how: frameChunked} }

// Done reports whether the body has ended as its framing says. A body that ends with its
// connection is done after AtEOF.
func (f *Framing) Done() bool { return f.ended }

// Dirty reports whether bytes came after the end of the body.
func (f *Framing) Dirty() bool { return f.dirty }

// Left returns how many bytes are known to be still to come: of the body or, if it is chunked, of
// the current chunk.
func (f *Framing) Left() int64 { return f.left }

// Size returns how many bytes are left of a body with a Content-Length; false: it has none.
func (f *Framing) Size() (int64, bool) { return f.left, f.how == frameLength }

// Plain reports whether the next Left bytes are bytes of the body, without framing between them.
func (f *Framing) Plain() bool { return f.how == frameLength || f.state == inData }

// AtEOF returns what the end of the connection means for the body: nil if the body is complete,
// else ErrCut or the error that Decode returned.
func (f *Framing) AtEOF() error {
	if f.err == nil && f.how == frameClose {
		f.ended = true
	}
	switch {
	case f.err != nil:
		return f.err
	case !f.ended:
		return ErrCut
	}
	return nil
}

// Decode decodes one raw read. payload has the bytes of the body in it, as a sub-slice of b. If b
// holds several chunks, Decode moves them together, over the framing between them; a read inside
// one chunk is not moved. rest has the bytes of b after the end of the body, if any; then the
// framing is dirty. With an error, payload has the bytes before the fault.
func (f *Framing) Decode(b []byte) (payload, rest []byte, err error) {
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

func (f *Framing) decodeChunks(b []byte) (payload, rest []byte, err error) {
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

// step processes one byte of the framing around chunks.
func (f *Framing) step(c byte) error {
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

func (f *Framing) stepSize(c byte) error {
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

func (f *Framing) stepTrailer(c byte) error {
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

// chunkDigit maps a byte to its value as a hexadecimal digit; -1: it is none.
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
