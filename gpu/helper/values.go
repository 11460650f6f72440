//go:build linux && cgo

// Values: conversion of the driver's numbers, and the ones that mean "no value".

package main

// The driver and DCGM write "not supported" and "blank" as the largest numbers of a type:
// 0x7ffffff0 to 0x7fffffff and all ones in 32 bits, 2^63-16 to 2^63-1 and all ones in 64.
func blank32(v uint32) bool { return v >= 0x7ffffff0 }
func blank64(v uint64) bool { return v >= 0x7ffffffffffffff0 }

func count64(v uint64) *uint64 {
	if blank64(v) {
		return nil
	}
	return new(v)
}

// scaled converts v to the snapshot's unit: units is how many of the driver's units make one.
func scaled(v uint32, units float64) *float64 {
	if blank32(v) {
		return nil
	}
	return new(float64(v) / units)
}

// percent converts a percentage; some drivers return invalid values above 100.
func percent(v uint32) *float64 {
	if v > 100 {
		return nil
	}
	return new(float64(v))
}
