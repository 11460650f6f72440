// Buffers: lent to calls in a few sizes.
package proxy

import (
	"math/bits"
	"sync"
	"unsafe"
)

const (
	smallestBuffer = 12 // log2: 4 KiB
	largestBuffer  = 21 // log2: 2 MiB; larger ones are left to the collector
)

// Buffers are kept as pointers to their first byte: a slice in a sync.Pool
// costs an allocation for its header each time.
var buffers [largestBuffer - smallestBuffer + 1]sync.Pool

// takeBuffer lends a buffer of at least n bytes. The caller owns it until giveBuffer.
func takeBuffer(n int) []byte {
	class := max(bits.Len(uint(n-1)), smallestBuffer)
	if class > largestBuffer {
		return make([]byte, n)
	}
	if p, ok := buffers[class-smallestBuffer].Get().(*byte); ok {
		return unsafe.Slice(p, 1<<class)
	}
	return make([]byte, 1<<class)
}

// bufferSize is how large a buffer takeBuffer lends for n bytes.
func bufferSize(n int64) int64 {
	class := max(bits.Len64(uint64(n-1)), smallestBuffer)
	if class > largestBuffer {
		return n
	}
	return 1 << class
}

// giveBuffer takes back what takeBuffer lent; nobody may use it after.
func giveBuffer(b []byte) {
	class := bits.Len(uint(len(b) - 1))
	if class >= smallestBuffer && class <= largestBuffer && len(b) == 1<<class {
		buffers[class-smallestBuffer].Put(unsafe.SliceData(b))
	}
}

// offset is where sub begins in b; sub must be a sub-slice of b.
func offset(b, sub []byte) int {
	return int(uintptr(unsafe.Pointer(unsafe.SliceData(sub))) - uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}
