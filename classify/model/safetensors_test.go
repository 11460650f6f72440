// The weights' container: good files, bad files and their errors.

package model

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
)

// container makes a file of a header and data.
func container(header, data string) []byte {
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(file, header...), data...)
}

func TestTensorsAreReadInPlace(t *testing.T) {
	file := container(`{"__metadata__":{"made":"by hand"},
		"a":{"dtype":"I8","shape":[2,2],"data_offsets":[0,4]},
		"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},
		"c":{"dtype":"U8","shape":[0],"data_offsets":[8,8]}}`, "\x01\x02\x03\xff\x00\x00\x80\x3f")
	ts, err := OpenTensors(file)
	if err != nil {
		t.Fatal(err)
	}
	a, err := ts.int8s("a", 2, -1)
	if err != nil || !slices.Equal(a, []int8{1, 2, 3, -1}) {
		t.Errorf("a is %v, %v", a, err)
	}
	file[len(file)-8] = 7
	if a[0] != 7 {
		t.Error("a is a copy")
	}
	b, err := ts.Float32s("b", 1)
	if err != nil || !slices.Equal(b, []float32{1}) {
		t.Errorf("b is %v, %v", b, err)
	}
	if c, err := ts.bytes("c", 0); err != nil || len(c) != 0 {
		t.Errorf("c is %v, %v", c, err)
	}
	if ts.meta["made"] != "by hand" {
		t.Errorf("metadata is %v", ts.meta)
	}
}

func TestOpenTensorsSaysWhatIsWrong(t *testing.T) {
	one := func(entry string) []byte { return container(`{"a":`+entry+`}`, "12345678") }
	for _, row := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "0 bytes are too few"},
		{"header longer than file", []byte("\xff\xff\x00\x00\x00\x00\x00\x00{}"), "header of 65535 bytes in a file of 10"},
		{"header beyond the limit", []byte("\xff\xff\xff\xff\xff\xff\xff\xff{}"), "(at most 1048576)"},
		{"no JSON", container("{", ""), "cannot read header of weights: unexpected end"},
		{"no object", one(`3`), `cannot read tensor "a": json`},
		{"foreign type", one(`{"dtype":"F8","shape":[8],"data_offsets":[0,8]}`), `type "F8" is not one of`},
		{"beyond the data", one(`{"dtype":"U8","shape":[9],"data_offsets":[0,9]}`), "data at [0, 9) in a file with 8 bytes"},
		{"backwards", one(`{"dtype":"U8","shape":[1],"data_offsets":[2,1]}`), "data at [2, 1)"},
		{"other length", one(`{"dtype":"F32","shape":[8],"data_offsets":[0,8]}`), "8 bytes of data, shape [8] of F32 needs 32"},
		{"negative", one(`{"dtype":"U8","shape":[-8],"data_offsets":[0,8]}`), "negative"},
		{"overflowing", one(`{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}`), "too big"},
		{"many dimensions", one(`{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,8],"data_offsets":[0,8]}`), "9 dimensions"},
		{"negative place", one(`{"dtype":"U8","shape":[1],"data_offsets":[-1,0]}`), "cannot unmarshal"},
	} {
		_, err := OpenTensors(row.file)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: error %v, want one with %q", row.name, err, row.want)
		}
	}
}

func TestTensorOfAnotherShapeIsRefused(t *testing.T) {
	ts, err := OpenTensors(container(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, "\x00\x00\x80\x7f\x00\x00\x00\x00"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		err  error
		want string
	}{
		{second(ts.Float32s("a", 3)), `cannot read tensor "a": it is F32 [2], want F32 [3]`},
		{second(ts.bytes("a", 2)), "want U8 [2]"},
		{second(ts.int8s("b")), `cannot read tensor "b": no such tensor`},
		{second(ts.Float32s("a", 2)), "value 0 is not finite"},
	} {
		if row.err == nil || !strings.Contains(row.err.Error(), row.want) {
			t.Errorf("error %v, want one with %q", row.err, row.want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func FuzzOpenTensors(f *testing.F) {
	f.Add(container(`{"a":{"dtype":"I8","shape":[2,2],"data_offsets":[0,4]}}`, "1234"))
	f.Add(container(`{"__metadata__":{"k":"v"},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, "1234"))
	f.Add(container(`{}`, ""))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, file []byte) {
		ts, err := OpenTensors(file)
		if err != nil {
			return
		}
		for name, e := range ts.index {
			if b, err := ts.view(name, e.DType, e.Shape); err != nil || len(b) > len(file) {
				t.Fatalf("tensor %q: %d bytes, %v", name, len(b), err)
			}
		}
	})
}
