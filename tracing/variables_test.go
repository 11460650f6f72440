// Tests of OpenTelemetry's variables that the exporter and the SDK read themselves.

package tracing

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestVariables has what a collector gets under each; config has those that Kvasir reads.
func TestVariables(t *testing.T) {
	for _, c := range []struct {
		name   string
		set    map[string]string
		header string // of what the collector was asked with
		want   string
	}{
		{"none", nil, "Content-Encoding", ""},
		{"compression", map[string]string{"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}, "Content-Encoding", "gzip"},
		{"compression of traces", map[string]string{"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION": "none"}, "Content-Encoding", ""},
		{"headers", map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b,x-other=c"}, "X-Key", "a b"},
		{"headers of traces", map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "x-key=a", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "x-key=b"}, "X-Key", "b"},
		{"a protocol", map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, "Content-Type", "application/x-protobuf"},
		{"an endpoint", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "URL"}, "Content-Type", "application/x-protobuf"},
		{"an endpoint of traces", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "URL/v1/traces"}, "Content-Type", "application/x-protobuf"},
		{"an insecure one that a URL contradicts", map[string]string{"OTEL_EXPORTER_OTLP_INSECURE": "false"}, "Content-Encoding", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			to := startCollector(t)
			o := &Options{Endpoint: to.endpoint()}
			for name, v := range c.set {
				if at := strings.Replace(v, "URL", to.URL, 1); at != v {
					o.Endpoint, v = "", at
				}
				t.Setenv(name, v)
			}
			tr, _ := start(t, o)
			tr.Observe(told(1))
			tr.Close()
			if to.count() != 1 || to.asked[0].Get(c.header) != c.want {
				t.Fatalf("%d spans came, with %v", to.count(), to.asked)
			}
		})
	}
}

// TestKeysGoBeforeVariables: the headers of the configuration are in the place of the variable's.
func TestKeysGoBeforeVariables(t *testing.T) {
	c := startCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=variable")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	tr, _ := start(t, &Options{Endpoint: c.endpoint(), Headers: map[string]string{"X-Key": "configuration"}})
	tr.Observe(told(1))
	tr.Close()
	if c.count() != 1 || c.asked[0].Get("X-Key") != "configuration" {
		t.Errorf("%d spans came, with %v", c.count(), c.asked)
	}
}

// TestTimeout: a collector that says nothing is given up after OTEL_EXPORTER_OTLP_TIMEOUT (over HTTP it
// is asked again), and after OTEL_BSP_EXPORT_TIMEOUT.
func TestTimeout(t *testing.T) {
	for _, c := range []struct {
		variable string
		grpc     bool
		again    bool
	}{
		{"OTEL_EXPORTER_OTLP_TIMEOUT", false, true},
		{"OTEL_EXPORTER_OTLP_TIMEOUT", true, false},
		{"OTEL_BSP_EXPORT_TIMEOUT", false, false},
		{"OTEL_BSP_EXPORT_TIMEOUT", true, false},
	} {
		t.Run(c.variable+map[bool]string{true: " grpc"}[c.grpc], func(t *testing.T) {
			t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
			t.Setenv(c.variable, "100")
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			tr, _ := start(t, &Options{Endpoint: "http://" + ln.Addr().String(), GRPC: c.grpc})
			tr.Observe(told(1))
			if !c.again {
				waitUntil(t, "the span is given up", func() bool { return testutil.ToFloat64(tr.failed) == 1 })
				return
			}
			conn, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
			if _, err := io.Copy(io.Discard, conn); err != nil {
				t.Errorf("the collector is still waited for: %v", err)
			}
		})
	}
}

// TestBatches: OTEL_BSP_MAX_EXPORT_BATCH_SIZE bounds the spans of a message, and OTEL_BSP_MAX_QUEUE_SIZE
// not those that wait.
func TestBatches(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "60000")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2")
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "3")
	c := startCollector(t)
	tr, _ := start(t, &Options{Endpoint: c.endpoint()})
	for range 9 {
		tr.Observe(told(1))
	}
	tr.Close()
	if c.count() != 9 || len(c.asked) != 5 {
		t.Errorf("%d spans came in %d messages", c.count(), len(c.asked))
	}
}
