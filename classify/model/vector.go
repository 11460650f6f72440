// The loops over vectors for nets outside of this package.

package model

// Norm normalises a row in place: mean 0, deviation 1, then gain and bias. Its length is a multiple of 16.
func Norm(x, gain, bias []float32, epsilon float32) {
	sum, squares := kernel.moments(x)
	mean, factor := deviation(sum, squares, float32(len(x)), epsilon)
	kernel.normalise(x, gain, bias, mean, factor)
}

// GELU stores x*(1+erf(x/sqrt 2))/2 in x. Its length is a multiple of 16.
func GELU(x []float32) { kernel.gelu(x) }

// Tanh stores the hyperbolic tangents of x in x. Its length is a multiple of 16.
func Tanh(x []float32) { kernel.tanh(x) }

// Exp stores exp((x-largest)*factor) in x and returns their sum: the quotients are the softmax of x*factor, for a
// factor above 0. The length of x is a multiple of 16, and not 0. A value far below the others counts as
// exp(-87).
func Exp(x []float32, factor float32) (sum float32) { return kernel.exp(x, factor) }
