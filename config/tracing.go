// Tracing: what the keys of tracing and the standard OTEL_* variables ask for together.

package config

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"kvasir/wording"
)

// Traces is what is asked for of tracing. A key that is not at its default goes before the variable
// of OpenTelemetry that says the same; OTEL_SDK_DISABLED goes before all. Variables that are not
// named here are read by the exporter itself.
type Traces struct {
	On       bool
	Endpoint string            // with its path, for HTTP; "": OTEL_EXPORTER_OTLP_(TRACES_)ENDPOINT says it
	GRPC     bool              // else HTTP with protobuf
	Headers  map[string]string // nil: the exporter's variables say them
	Sampler  string            // parent, ratio, always, never
	Ratio    float64
	TLS      *tls.Config // nil: the exporter's variables say it
	TLSName  string

	Ignored []string // variables that say what Kvasir does not know, each a sentence
}

// otlpPath is where a collector takes traces over HTTP, below the endpoint.
const otlpPath = "/v1/traces"

func (b *loader) tracing(env func(string) (string, bool)) (t Traces) {
	c := &b.config.Tracing
	get := func(names ...string) string { // the first that is set
		for _, name := range names {
			if v, _ := env(name); strings.TrimSpace(v) != "" {
				return strings.TrimSpace(v)
			}
		}
		return ""
	}
	if strings.EqualFold(get("OTEL_SDK_DISABLED"), "true") {
		return t
	}
	t.Endpoint = c.Endpoint
	exporter := get("OTEL_TRACES_EXPORTER")
	if t.Endpoint == "" {
		if exporter == "none" || get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT") == "" {
			return t
		}
		if exporter != "" && exporter != "otlp" {
			t.ignore("OTEL_TRACES_EXPORTER", exporter, "otlp or none")
		}
	}
	t.On, t.Headers = true, c.Headers
	t.GRPC = c.Protocol == "grpc"
	if c.Protocol == "http" {
		t.protocol(get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"))
	}
	if !t.GRPC && t.Endpoint != "" && !strings.HasSuffix(t.Endpoint, otlpPath) {
		t.Endpoint = strings.TrimRight(t.Endpoint, "/") + otlpPath
	}
	t.Sampler, t.Ratio = c.Sampler, c.Ratio
	if c.Sampler == "parent" && c.Ratio == 1 {
		t.sampler(get("OTEL_TRACES_SAMPLER"), get("OTEL_TRACES_SAMPLER_ARG"))
	}
	t.TLS, t.TLSName = b.peerTLS("tracing.tls", c.TLS)
	return t
}

func (t *Traces) ignore(name, value, wants string) {
	t.Ignored = append(t.Ignored, fmt.Sprintf("%s is %s, and not taken: Kvasir knows %s", name, wording.Quote(value), wants))
}

// protocol takes what OTEL_EXPORTER_OTLP_PROTOCOL says; "": nothing.
func (t *Traces) protocol(v string) {
	switch v {
	case "", "http/protobuf":
	case "grpc":
		t.GRPC = true
	default:
		t.ignore("OTEL_EXPORTER_OTLP_PROTOCOL", v, "http/protobuf and grpc")
	}
}

// sampler takes what OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG say.
func (t *Traces) sampler(v, arg string) {
	ratio := 1.0
	if arg != "" {
		n, err := strconv.ParseFloat(arg, 64)
		if err != nil || !(n >= 0 && n <= 1) {
			t.ignore("OTEL_TRACES_SAMPLER_ARG", arg, "numbers from 0 to 1")
		} else {
			ratio = n
		}
	}
	switch cmp.Or(v, "parentbased_always_on") {
	case "parentbased_always_on":
	case "parentbased_always_off":
		t.Ratio = 0
	case "parentbased_traceidratio":
		t.Ratio = ratio
	case "traceidratio":
		t.Sampler, t.Ratio = "ratio", ratio
	case "always_on":
		t.Sampler = "always"
	case "always_off":
		t.Sampler = "never"
	default:
		t.ignore("OTEL_TRACES_SAMPLER", v, "always_on, always_off, traceidratio, and these with parentbased_ before them")
	}
}

// tracing finds what is wrong with where traces go.
func (v *validation) tracing(t *Tracing) {
	v.pair("tracing.tls", t.TLS.Cert, t.TLS.Key)
	if t.TLS.Insecure && t.TLS.CA != "" {
		v.add("turns off the check that tls.ca is for; set only one of the two", "tracing.tls.insecure")
	}
	v.headers("tracing.headers.", knownKeys.child("tracing").child("headers"), t.Headers, func(string, string) {})
	if t.Endpoint == "" {
		return
	}
	if text := badEndpoint(t.Endpoint); text != "" {
		v.add(text, "tracing.endpoint")
	} else if u, _ := url.Parse(t.Endpoint); t.Protocol == "grpc" && u.Path != "" && u.Path != "/" {
		v.add("has a path, which gRPC does not send; leave it out, or set tracing.protocol: http", "tracing.endpoint")
	} else if t.TLS != (PeerTLS{}) && strings.HasPrefix(t.Endpoint, "http:") {
		v.add("has no effect on a collector that is asked by http; write https:// in tracing.endpoint", "tracing.tls")
	}
}

// badEndpoint says what is wrong with the URL of a collector; "": nothing. What may be a password is
// not quoted.
func badEndpoint(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "must be the URL of a collector, such as http://10.0.0.9:4318"
	case u.User != nil:
		return "must not hold a user or password; send them with headers: {Authorization: ...}"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "must not have a query or fragment after it"
	}
	return ""
}
