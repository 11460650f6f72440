// Tests of the keys of tracing and OpenTelemetry's variables.

package config

import (
	"fmt"
	"strings"
	"testing"
)

// TestTraces has who goes before whom: a key that is not at its default, then the variable of
// OpenTelemetry, then the default.
func TestTraces(t *testing.T) {
	t.Parallel()
	const (
		at     = "tracing.endpoint=http://c:4318"
		otlp   = "OTEL_EXPORTER_OTLP_ENDPOINT=http://e:4318"
		grpc   = "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"
		off    = "OTEL_SDK_DISABLED=true"
		always = "OTEL_TRACES_SAMPLER=always_on"
	)
	for _, c := range []struct {
		set  string // keys and variables
		want string
	}{
		{"", "off"},
		{"tracing.ratio=0.5", "off"},
		{at, `"http://c:4318/v1/traces" http parent 1`},
		{"tracing.endpoint=http://c:4318/v1/traces", `"http://c:4318/v1/traces" http parent 1`},
		{"tracing.endpoint=https://c/api/otel/", `"https://c/api/otel/v1/traces" http parent 1`},
		{"tracing.endpoint=http://c:4317 tracing.protocol=grpc", `"http://c:4317" grpc parent 1`},
		{otlp, `"" http parent 1`},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://e:4318/x", `"" http parent 1`},
		{at + " " + otlp, `"http://c:4318/v1/traces" http parent 1`},
		{otlp + " " + off, "off"},
		{at + " " + off, "off"},
		{otlp + " OTEL_TRACES_EXPORTER=none", "off"},
		{at + " OTEL_TRACES_EXPORTER=none", `"http://c:4318/v1/traces" http parent 1`},
		{otlp + " OTEL_TRACES_EXPORTER=zipkin", `"" http parent 1 OTEL_TRACES_EXPORTER`},
		{otlp + " " + grpc, `"" grpc parent 1`},
		{otlp + " " + grpc + " OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf", `"" http parent 1`},
		{otlp + " OTEL_EXPORTER_OTLP_PROTOCOL=http/json", `"" http parent 1`},
		{otlp + " OTEL_EXPORTER_OTLP_PROTOCOL=http/xml", `"" http parent 1 OTEL_EXPORTER_OTLP_PROTOCOL`},
		{otlp + " OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=x", `"" http parent 1 OTEL_EXPORTER_OTLP_TRACES_PROTOCOL`},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=c:4318", "off OTEL_EXPORTER_OTLP_ENDPOINT"}, // the exporter would send to this host
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=user:secret@10.0.0.9:4318", "off OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=c:4317 " + grpc, `"" grpc parent 1`},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=10.0.0.9:4317 " + grpc, "off OTEL_EXPORTER_OTLP_ENDPOINT"},
		{at + " OTEL_EXPORTER_OTLP_ENDPOINT=c:4318", `"http://c:4318/v1/traces" http parent 1`},
		{otlp + " OTEL_EXPORTER_OTLP_COMPRESSION=gzip OTEL_EXPORTER_OTLP_TIMEOUT=5000 OTEL_EXPORTER_OTLP_INSECURE=true OTEL_EXPORTER_OTLP_HEADERS=a=b", `"" http parent 1`},
		{otlp + " OTEL_EXPORTER_OTLP_COMPRESSION=none", `"" http parent 1`},
		{otlp + " OTEL_EXPORTER_OTLP_COMPRESSION=zstd", `"" http parent 1 OTEL_EXPORTER_OTLP_COMPRESSION`},
		{otlp + " OTEL_TRACES_EXPORTER=console,otlp", `"" http parent 1`},
		{otlp + " OTEL_TRACES_SAMPLER=Always_Off", `"" http never 1`},
		{otlp + " OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true", `"" http parent 1`},
		{otlp + " tracing.content=true", `"" http parent 1 content`},
		{"tracing.content=true", "off"},
		{at + " " + always, `"http://c:4318/v1/traces" http always 1`},
		{at + " " + always + " tracing.sampler=ratio", `"http://c:4318/v1/traces" http ratio 1`},
		{at + " " + always + " tracing.ratio=0.5", `"http://c:4318/v1/traces" http parent 0.5`},
		{otlp + " OTEL_TRACES_SAMPLER=always_off", `"" http never 1`},
		{otlp + " OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=0.25", `"" http ratio 0.25`},
		{otlp + " OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=x", `"" http ratio 1 OTEL_TRACES_SAMPLER_ARG`},
		{otlp + " OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=NaN", `"" http ratio 1 OTEL_TRACES_SAMPLER_ARG`},
		{otlp + " OTEL_TRACES_SAMPLER=parentbased_traceidratio OTEL_TRACES_SAMPLER_ARG=0.25", `"" http parent 0.25`},
		{otlp + " OTEL_TRACES_SAMPLER=parentbased_always_off", `"" http parent 0`},
		{otlp + " OTEL_TRACES_SAMPLER=jaeger_remote", `"" http parent 1 OTEL_TRACES_SAMPLER`},
	} {
		l := &Layers{BuiltIn: []byte("workers: [{url: http://10.0.0.5:8000}]")}
		for _, word := range strings.Fields(c.set) {
			name, value, _ := strings.Cut(word, "=")
			if strings.HasPrefix(name, "OTEL_") {
				l.Environ = append(l.Environ, word)
			} else {
				l.Flags = append(l.Flags, FlagValue{Flag: "--set " + name, Path: name, Text: value})
			}
		}
		g, _, err := l.Load()
		if err != nil {
			t.Errorf("%s: %v", c.set, err)
			continue
		}
		got := "off"
		if tr := g.Tracing; tr.On {
			got = fmt.Sprintf("%q %s %s %v", tr.Endpoint, map[bool]string{false: "http", true: "grpc"}[tr.GRPC], tr.Sampler, tr.Ratio)
			if tr.Content {
				got += " content"
			}
		}
		for _, text := range g.Tracing.Ignored {
			name, _, _ := strings.Cut(text, " ")
			if got += " " + name; strings.Contains(text, "secret") {
				t.Errorf("it says %s", text)
			}
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.set, got, c.want)
		}
	}
}
