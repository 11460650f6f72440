// Tracing: where traces go, and of which requests.

package wiring

import (
	"kvasir/config"
	"kvasir/tracing"
	"kvasir/tracing/traceparent"
)

// Tracing is where the traces of a generation go; nil: it asks for none.
func Tracing(g *config.Generation, version string) *tracing.Options {
	c := &g.Tracing
	if !c.On {
		return nil
	}
	return &tracing.Options{Endpoint: c.Endpoint, GRPC: c.GRPC, Headers: c.Headers, TLS: c.TLS, TLSName: c.TLSName, Version: version}
}

// sampler says which requests of a generation are traced; nil: tracing is off.
func sampler(c *config.Traces) *traceparent.Sampler {
	if !c.On {
		return nil
	}
	return traceparent.NewSampler(traceparent.ParseMode(c.Sampler), c.Ratio)
}
