// Chunks: framing bytes for a chunked body that we send.

package wire

import "strconv"

// Headroom and Tailroom are how many bytes to keep free before and after a payload, so that
// FrameChunk can frame it in place.
const (
	Headroom = 16 // chunkHeadroom, rounded up
	Tailroom = chunkTailroom
)

// How many bytes FrameChunk writes around a payload.
const (
	chunkHeadroom = 10 // 8 hexadecimal digits and CRLF
	chunkTailroom = 2  // CRLF
)

// LastChunk ends a chunked body without trailers.
const LastChunk = "0\r\n\r\n"

// AppendChunkHead appends the size line of a chunk of n bytes, n > 0. The chunk's bytes and a
// CRLF must follow.
func AppendChunkHead(dst []byte, n int) []byte {
	return append(strconv.AppendUint(dst, uint64(n), 16), '\r', '\n')
}

// FrameChunk makes buf[start:end] a chunk: it writes the size line directly before it and CRLF
// directly after it. The caller can then send buf[s:e] in one write, without copying the payload.
// FrameChunk overwrites up to Headroom bytes before start and Tailroom bytes after end. An empty
// payload is a bug: its chunk would end the body.
func FrameChunk(buf []byte, start, end int) (s, e int) {
	if start < chunkHeadroom || end <= start || uint64(end-start) >= 1<<32 {
		panic("BUG: FrameChunk of an empty or huge payload, or without headroom")
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
