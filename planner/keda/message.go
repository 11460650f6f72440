// The messages of externalscaler.proto, version 1 of KEDA's protocol for external scalers, by hand.

package keda

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// A request is what KEDA asks with: a ScaledObjectRef, or a GetMetricsRequest, which has one inside.
type request struct {
	inner    bool // it is a GetMetricsRequest
	metadata map[string]string
	metric   string // that is asked for
}

// mostMetadata bounds what is read of a trigger's metadata. The message is bounded by the server.
const mostMetadata = 64

// parse reads a request. A field that it does not know is passed over, as protobuf wants it.
func (q *request) parse(b []byte) error {
	if !q.inner {
		return q.parseRef(b)
	}
	return fields(b, func(n protowire.Number, value []byte) error {
		switch n {
		case 1: // scaledObjectRef
			return q.parseRef(value)
		case 2: // metricName
			q.metric = string(value)
		}
		return nil
	})
}

func (q *request) parseRef(b []byte) error {
	return fields(b, func(n protowire.Number, entry []byte) error {
		if n != 3 { // scalerMetadata; 1 is the name of the ScaledObject, 2 its namespace
			return nil
		}
		var key, value string
		err := fields(entry, func(n protowire.Number, text []byte) error {
			switch n {
			case 1:
				key = string(text)
			case 2:
				value = string(text)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if q.metadata == nil {
			q.metadata = map[string]string{}
		}
		if q.metadata[key] = value; len(q.metadata) > mostMetadata {
			return fmt.Errorf("more than %d keys of metadata", mostMetadata)
		}
		return nil
	})
}

// fields calls do for each field of a message that has a length: all that KEDA sends are texts and messages.
func fields(b []byte, do func(n protowire.Number, value []byte) error) error {
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
		if kind != protowire.BytesType {
			if size = protowire.ConsumeFieldValue(n, kind, b); size < 0 {
				return protowire.ParseError(size)
			}
			b = b[size:]
			continue
		}
		value, size := protowire.ConsumeBytes(b)
		if size < 0 {
			return protowire.ParseError(size)
		}
		if err := do(n, value); err != nil {
			return err
		}
		b = b[size:]
	}
	return nil
}

// active is an IsActiveResponse.
type active bool

func (a active) append(b []byte) []byte {
	if !a {
		return b // the default is not sent
	}
	return protowire.AppendVarint(protowire.AppendTag(b, 1, protowire.VarintType), 1)
}

// amount is a GetMetricSpecResponse or a GetMetricsResponse with one metric: MetricSpec and MetricValue have the same
// fields, the name, the number as an integer, which old versions of KEDA read, and as a double.
type amount struct {
	name  string
	value int
}

func (a *amount) append(b []byte) []byte {
	inner := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), a.name)
	if a.value != 0 {
		inner = protowire.AppendVarint(protowire.AppendTag(inner, 2, protowire.VarintType), uint64(a.value))
		inner = protowire.AppendFixed64(protowire.AppendTag(inner, 3, protowire.Fixed64Type), math.Float64bits(float64(a.value)))
	}
	return protowire.AppendBytes(protowire.AppendTag(b, 1, protowire.BytesType), inner)
}

// codec is how gRPC turns the messages into bytes. Generated code would need descriptors of them in the binary, and
// protoc where they change, which they have not since 2020.
type codec struct{}

// Name is that of the encoding: KEDA sends application/grpc, or +proto.
func (codec) Name() string { return "proto" }

// Marshal writes a reply.
func (codec) Marshal(v any) ([]byte, error) {
	reply, is := v.(interface{ append(b []byte) []byte })
	if !is {
		return nil, errors.New("BUG: a message that cannot be written")
	}
	return reply.append(nil), nil
}

// Unmarshal reads a request.
func (codec) Unmarshal(b []byte, v any) error {
	q, is := v.(*request)
	if !is {
		return errors.New("BUG: a message that cannot be read")
	}
	return q.parse(b)
}
