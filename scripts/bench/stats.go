//go:build linux

// Quantiles and medians of small samples.

package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// quantile returns the q-quantile (0..1) of samples by nearest rank, and zero
// for none. It sorts samples.
func quantile[T cmp.Ordered](samples []T, q float64) T {
	var zero T
	if len(samples) == 0 {
		return zero
	}
	slices.Sort(samples)
	rank := int(q*float64(len(samples)) + 0.999999)
	return samples[min(max(rank, 1), len(samples))-1]
}

// median leaves samples as they are.
func median[T cmp.Ordered](samples []T) T {
	return quantile(slices.Clone(samples), 0.5)
}

// ratios divides round by round, because what slowed a whole round down slowed both values.
func ratios(a, b []float64) []float64 {
	out := make([]float64, min(len(a), len(b)))
	for i := range out {
		out[i] = a[i] / b[i]
	}
	return out
}

func micros(d time.Duration) string {
	return fmt.Sprintf("%.1f us", float64(d)/float64(time.Microsecond))
}

func millis(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

func mebibytes(bytes int64) string {
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}
