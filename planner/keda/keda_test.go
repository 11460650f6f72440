// Tests of the external scaler, asked by gRPC's own client with messages that are made from externalscaler.proto.

package keda

import (
	"context"
	"crypto/tls"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"kvasir/kvroute/replay"
	"kvasir/planner"
)

// KEDA's messages, as a descriptor.
const descriptor = `
name: "externalscaler.proto" package: "externalscaler" syntax: "proto3"
message_type { name: "ScaledObjectRef"
  field { name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "namespace" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "scalerMetadata" json_name: "scalerMetadata" number: 3 type: TYPE_MESSAGE label: LABEL_REPEATED type_name: ".externalscaler.ScaledObjectRef.ScalerMetadataEntry" }
  nested_type { name: "ScalerMetadataEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL } } }
message_type { name: "IsActiveResponse" field { name: "result" number: 1 type: TYPE_BOOL label: LABEL_OPTIONAL } }
message_type { name: "GetMetricSpecResponse" field { name: "metricSpecs" json_name: "metricSpecs" number: 1 type: TYPE_MESSAGE label: LABEL_REPEATED type_name: ".externalscaler.MetricSpec" } }
message_type { name: "MetricSpec"
  field { name: "metricName" json_name: "metricName" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "targetSize" json_name: "targetSize" number: 2 type: TYPE_INT64 label: LABEL_OPTIONAL }
  field { name: "targetSizeFloat" json_name: "targetSizeFloat" number: 3 type: TYPE_DOUBLE label: LABEL_OPTIONAL } }
message_type { name: "GetMetricsRequest"
  field { name: "scaledObjectRef" json_name: "scaledObjectRef" number: 1 type: TYPE_MESSAGE label: LABEL_OPTIONAL type_name: ".externalscaler.ScaledObjectRef" }
  field { name: "metricName" json_name: "metricName" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL } }
message_type { name: "GetMetricsResponse" field { name: "metricValues" json_name: "metricValues" number: 1 type: TYPE_MESSAGE label: LABEL_REPEATED type_name: ".externalscaler.MetricValue" } }
message_type { name: "MetricValue"
  field { name: "metricName" json_name: "metricName" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "metricValue" json_name: "metricValue" number: 2 type: TYPE_INT64 label: LABEL_OPTIONAL }
  field { name: "metricValueFloat" json_name: "metricValueFloat" number: 3 type: TYPE_DOUBLE label: LABEL_OPTIONAL } }
`

// A client is KEDA.
type client struct {
	t    *testing.T
	file protoreflect.FileDescriptor
	conn *grpc.ClientConn
}

// begin starts a server and a client of it.
func begin(t *testing.T) (*Server, *client) {
	t.Helper()
	var described descriptorpb.FileDescriptorProto
	if err := prototext.Unmarshal([]byte(descriptor), &described); err != nil {
		t.Fatal(err)
	}
	file, err := protodesc.NewFile(&described, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(nil)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		_ = conn.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s, &client{t, file, conn}
}

func (c *client) message(name, text string) *dynamicpb.Message {
	c.t.Helper()
	m := dynamicpb.NewMessage(c.file.Messages().ByName(protoreflect.Name(name)))
	if err := protojson.Unmarshal([]byte(text), m); err != nil {
		c.t.Fatal(err)
	}
	return m
}

// ask calls a method, and returns the reply as JSON without spaces that differ.
func (c *client) ask(method, request, text, reply string) (string, codes.Code) {
	c.t.Helper()
	out := c.message(reply, "{}")
	if err := c.conn.Invoke(c.t.Context(), "/externalscaler.ExternalScaler/"+method, c.message(request, text), out); err != nil {
		return status.Convert(err).Message(), status.Code(err)
	}
	return plain(c.t, out), codes.OK
}

// plain is a message as text; how protobuf spaces it differs from build to build.
func plain(t *testing.T, m proto.Message) string {
	t.Helper()
	var compact []byte
	text, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range text {
		if b != ' ' {
			compact = append(compact, b)
		}
	}
	return string(compact)
}

func apart() *planner.Report {
	return &planner.Report{Model: "qwen", Apart: true, Wanted: &replay.Fleet{Prefill: 3, Decode: 12}}
}

func TestKEDA(t *testing.T) {
	s, c := begin(t)
	const ref, spec, value = "ScaledObjectRef", "GetMetricSpecResponse", "GetMetricsResponse"
	for _, step := range []struct {
		report                       *planner.Report
		method, request, text, reply string
		want                         string
		code                         codes.Code
	}{
		{nil, "IsActive", ref, `{}`, "IsActiveResponse", "there is no plan yet", codes.Unavailable},
		{&planner.Report{}, "GetMetrics", "GetMetricsRequest", `{}`, value, "there is no plan yet", codes.Unavailable},
		{nil, "GetMetricSpec", ref, `{"scalerMetadata":{"role":"decode"}}`, spec, `{"metricSpecs":[{"metricName":"kvasir-workers-decode","targetSize":"1","targetSizeFloat":1}]}`, codes.OK},
		{apart(), "IsActive", ref, `{"name":"vllm","namespace":"team","scalerMetadata":{"role":"decode","scalerAddress":"kvasir:9091"}}`, "IsActiveResponse", `{"result":true}`, codes.OK},
		{apart(), "GetMetrics", "GetMetricsRequest", `{"scaledObjectRef":{"scalerMetadata":{"role":"decode"}},"metricName":"kvasir-workers-decode"}`, value,
			`{"metricValues":[{"metricName":"kvasir-workers-decode","metricValue":"12","metricValueFloat":12}]}`, codes.OK},
		{apart(), "GetMetrics", "GetMetricsRequest", `{"scaledObjectRef":{"scalerMetadata":{"role":"prefill","model":"qwen"}}}`, value,
			`{"metricValues":[{"metricName":"kvasir-workers-prefill","metricValue":"3","metricValueFloat":3}]}`, codes.OK},
		{&planner.Report{Wanted: &replay.Fleet{Workers: 7}}, "GetMetrics", "GetMetricsRequest", `{}`, value,
			`{"metricValues":[{"metricName":"kvasir-workers-both","metricValue":"7","metricValueFloat":7}]}`, codes.OK},
		{&planner.Report{Wanted: &replay.Fleet{}}, "IsActive", ref, `{}`, "IsActiveResponse", `{}`, codes.OK},
		{apart(), "IsActive", ref, `{}`, "IsActiveResponse", "no number is planned for role both; ask for role prefill or decode: there are workers of their own for both", codes.InvalidArgument},
		{&planner.Report{Wanted: &replay.Fleet{Workers: 7}}, "IsActive", ref, `{"scalerMetadata":{"role":"prefill"}}`, "IsActiveResponse",
			"no number is planned for role prefill; ask for role both, or no role: the workers do both", codes.InvalidArgument},
		{apart(), "GetMetricSpec", ref, `{"scalerMetadata":{"role":"encode"}}`, spec, `metadata role is "encode"; it is both, prefill or decode`, codes.InvalidArgument},
		{apart(), "GetMetrics", "GetMetricsRequest", `{"scaledObjectRef":{"scalerMetadata":{"role":"decode","model":"llama"}}}`, value, `Kvasir plans for model "qwen", not for "llama"`, codes.NotFound},
		{&planner.Report{Wanted: &replay.Fleet{Workers: 7}}, "IsActive", ref, `{"scalerMetadata":{"model":"llama"}}`, "IsActiveResponse",
			`Kvasir plans for all models together, not for "llama"; set planner.model, or leave model out`, codes.NotFound},
		{apart(), "GetMetrics", "GetMetricsRequest", `{"scaledObjectRef":{"scalerMetadata":{"role":"decode"}},"metricName":"cpu"}`, value,
			`there is no metric "cpu"; that of role decode is kvasir-workers-decode`, codes.NotFound},
	} {
		if step.report != nil {
			s.Tell(step.report)
		}
		if got, code := c.ask(step.method, step.request, step.text, step.reply); got != step.want || code != step.code {
			t.Errorf("%s %s: %v %s, want %v %s", step.method, step.text, code, got, step.code, step.want)
		}
	}
}

func TestKEDAStream(t *testing.T) {
	s, c := begin(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	open := func(text string) grpc.ClientStream {
		t.Helper()
		stream, err := c.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/externalscaler.ExternalScaler/StreamIsActive")
		if err == nil {
			err = stream.SendMsg(c.message("ScaledObjectRef", text))
		}
		if err == nil {
			err = stream.CloseSend()
		}
		if err != nil {
			t.Fatal(err)
		}
		return stream
	}
	next := func(stream grpc.ClientStream) (string, error) {
		m := c.message("IsActiveResponse", "{}")
		err := stream.RecvMsg(m)
		return plain(t, m), err
	}
	// Opened before there is a plan; told once for each change, however often it is planned.
	stream := open(`{"scalerMetadata":{"role":"decode"}}`)
	for range 3 {
		s.Tell(apart())
	}
	if got, err := next(stream); err != nil || got != `{"result":true}` {
		t.Fatalf("%s, %v", got, err)
	}
	s.Tell(&planner.Report{Apart: true, Wanted: &replay.Fleet{Prefill: 1}})
	if got, err := next(stream); err != nil || got != `{}` {
		t.Fatalf("%s, %v", got, err)
	}
	if _, err := next(open(`{"scalerMetadata":{"role":"encode"}}`)); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a wrong role: %v", err)
	}
	s.Close()
	if _, err := next(stream); status.Code(err) != codes.Unavailable {
		t.Errorf("at the end: %v", err)
	}
	s.Tell(apart()) // after the end it is nobody's
}

// What is too large, no message, or of no method, is an error of its own, and the connection goes on.
func TestKEDANonsense(t *testing.T) {
	s, c := begin(t)
	s.Tell(apart())
	raw := func(method string, body []byte) codes.Code {
		var out []byte
		return status.Code(c.conn.Invoke(t.Context(), method, body, &out, grpc.ForceCodec(bytesCodec{})))
	}
	for name, got := range map[string]struct {
		code, want codes.Code
	}{
		"truncated":  {raw("/externalscaler.ExternalScaler/IsActive", []byte{0x1a, 0x10, 0x0a}), codes.Internal},
		"no tag":     {raw("/externalscaler.ExternalScaler/IsActive", []byte{0xff, 0xff}), codes.Internal},
		"too large":  {raw("/externalscaler.ExternalScaler/IsActive", make([]byte, mostBytes+1)), codes.ResourceExhausted},
		"no method":  {raw("/externalscaler.ExternalScaler/Scale", nil), codes.Unimplemented},
		"no service": {raw("/grpc.health.v1.Health/Check", nil), codes.Unimplemented},
	} {
		if got.code != got.want {
			t.Errorf("%s: %v, want %v", name, got.code, got.want)
		}
	}
	if got, code := c.ask("IsActive", "ScaledObjectRef", `{"scalerMetadata":{"role":"decode"}}`, "IsActiveResponse"); code != codes.OK {
		t.Errorf("after all that: %v %s", code, got)
	}
}

// bytesCodec sends bytes as they are.
type bytesCodec struct{}

func (bytesCodec) Name() string                    { return "proto" }
func (bytesCodec) Marshal(v any) ([]byte, error)   { return v.([]byte), nil }
func (bytesCodec) Unmarshal(b []byte, v any) error { *v.(*[]byte) = b; return nil }

// A client that speaks no gRPC costs it nothing but a connection.
func TestKEDAStranger(t *testing.T) {
	s, c := begin(t)
	s.Tell(apart())
	conn, err := tls.Dial("tcp", c.conn.Target(), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // there is no TLS at all
	if err == nil {
		_ = conn.Close()
		t.Error("TLS where there is none")
	}
	if _, code := c.ask("IsActive", "ScaledObjectRef", `{"scalerMetadata":{"role":"decode"}}`, "IsActiveResponse"); code != codes.OK {
		t.Error(code)
	}
}

func FuzzRequest(f *testing.F) {
	f.Add(false, []byte("\x0a\x01n\x12\x01m\x1a\x0e\x0a\x04role\x12\x06decode"))
	f.Add(true, []byte("\x0a\x10\x1a\x0e\x0a\x04role\x12\x06decode\x12\x03cpu"))
	f.Fuzz(func(t *testing.T, inner bool, b []byte) {
		q := request{inner: inner}
		if err := q.parse(b); err == nil && len(q.metadata) > mostMetadata {
			t.Errorf("%d keys", len(q.metadata))
		}
		role, err := roleOf(nil, &q)
		if err == nil && metricOf(role) == "" {
			t.Error("a role without a metric")
		}
	})
}

// One that ends before it has begun to serve, as at a mistake in the rest of the start, is no mistake itself.
func TestCloseBeforeServe(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(nil)
	s.Close()
	if err := s.Serve(l); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("the listener is open")
	}
}
