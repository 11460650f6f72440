// What a configuration becomes.

// Package wiring makes of a configuration the parts that serve it: settings of
// the proxy, options of the classifier, the cache on its store, and simulated
// engines. It is the one place that knows both the keys of the configuration
// and what they are called in the packages that they reach.
//
//	g, _, err := layers.Load()
//	settings := wiring.Settings(g)
package wiring
