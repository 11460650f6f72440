// What the two ends of a request share: the bytes of HTTP/1 on connections.

// Package wire is HTTP/1 below its meaning, alike for clients and workers: how a
// body is framed, when a deadline is moved, and the buffers that bytes lie in.
//
//	f := wire.Chunked()                          // or Sized(n), UntilClose()
//	payload, _, err := f.Decode(buf[start:end])  // of each read, in place
//	s, e := wire.FrameChunk(buf, start, end)     // the payload as a chunk of our own
package wire
