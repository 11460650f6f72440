// Pooled buffers in a few sizes.

package wire

import (
	"math/bits"
	"sync"
	"unsafe"
)

// SmallBuffer is the size of the smallest buffer, in bytes: an idle stream holds one.
const SmallBuffer = 1 << smallestBuffer

const (
	smallestBuffer = 12 // log2: 4 KiB
	largestBuffer  = 21 // log2: 2 MiB; larger ones are left to the collector
)

// Buffers are kept as pointers to their first byte: a slice in a sync.Pool
// costs an allocation for its header each time.
var buffers [largestBuffer - smallestBuffer + 1]sync.Pool

// TakeBuffer returns a buffer of at least n bytes, n > 0. The caller owns it until GiveBuffer.
// Its contents are undefined.
func TakeBuffer(n int) []byte {
	class := max(bits.Len(uint(n-1)), smallestBuffer)
	if class > largestBuffer {
		return make([]byte, n)
	}
	if p, ok := buffers[class-smallestBuffer].Get().(*byte); ok {
		return unsafe.Slice(p, 1<<class)
	}
	return make([]byte, 1<<class)
}

// BufferSize returns the size of the buffer that TakeBuffer returns for n bytes.
func BufferSize(n int64) int64 {
	class := max(bits.Len64(uint64(n-1)), smallestBuffer)
	if class > largestBuffer {
		return n
	}
	return 1 << class
}

// GiveBuffer returns a buffer of TakeBuffer, at its full length, to the pool. It must not be used
// afterwards.
func GiveBuffer(b []byte) {
	class := bits.Len(uint(len(b) - 1))
	if class >= smallestBuffer && class <= largestBuffer && len(b) == 1<<class {
		buffers[class-smallestBuffer].Put(unsafe.SliceData(b))
	}
}

// Offset returns where sub begins in b. sub must be a sub-slice of b.
func Offset(b, sub []byte) int {
	return int(uintptr(unsafe.Pointer(unsafe.SliceData(sub))) - uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}
