// Processors without assembly of our own.

//go:build !amd64 && !arm64

package embedded

func forms() []form { return []form{formGo} }

func scanBlocks(hits []byte, near, far []uint64, n int, query *sketch, b *bounds) {
	scanPlain(hits, near, far, n, query, b)
}

func dot(a, b *vector) int32 { return dotPlain(a, b) }
