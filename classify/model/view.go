// The only unsafe code outside of the kernels' calls: other types of the same bytes.

package model

import "unsafe"

// int8View returns b's bytes as int8, in place; valid as long as b is.
func int8View(b []byte) []int8 {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(b))), len(b))
}

// bytesOf returns the bytes of a string, in place; they must not be written to.
func bytesOf(s string) []byte {
	return unsafe.Slice(unsafe.StringData(s), len(s))
}
