// Processors without assembly of our own.

//go:build !amd64 && !arm64

package embedded

func forms() []form { return []form{formGo} }

func (s *scanned) scanBlocks(c *chunk, n int, e *estimate, bound int) { s.scanPlain(c, n, e, bound) }

func (s *scanned) refineBlocks(blocks int, c *chunk, e *estimate, bound int) {
	s.refinePlain(blocks, c, e, bound)
}

func prefetch(*item) {}

func dot(a, b *vector) int32 { return dotPlain(a, b) }
