// Reader of the safetensors format, the container of all weights. Tensors are views of the file's
// bytes, so a file embedded in the binary is never unpacked.
//
// Format: https://github.com/huggingface/safetensors#format. Eight bytes, the header's length as
// a little-endian uint64; a JSON object, name -> {dtype, shape, data_offsets}; the data.

package model

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// Limits of a file that somebody else wrote.
const (
	maxHeader  = 1 << 20 // bytes
	maxTensors = 4096
	maxRank    = 8
)

// Tensors is one opened file: the tensors by name.
type Tensors struct {
	data  []byte // what follows the header
	index map[string]tensorEntry
	meta  map[string]string // __metadata__, may be nil
}

type tensorEntry struct {
	DType   string    `json:"dtype"`
	Shape   []int     `json:"shape"`
	Offsets [2]uint64 `json:"data_offsets"`
}

// dtypeSizes holds bytes an element for the types that are read here.
var dtypeSizes = map[string]uint64{"U8": 1, "I8": 1, "I32": 4, "U32": 4, "F32": 4}

// OpenTensors reads the header of a safetensors file and checks every entry against the file's
// length. The result keeps views of file, which must not change afterwards.
func OpenTensors(file []byte) (*Tensors, error) {
	if len(file) < 8 {
		return nil, fmt.Errorf("cannot read weights: %d bytes are too few for a header", len(file))
	}
	size := binary.LittleEndian.Uint64(file)
	if size > maxHeader || size > uint64(len(file)-8) {
		return nil, fmt.Errorf("cannot read weights: header of %d bytes in a file of %d (at most %d)",
			size, len(file), maxHeader)
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(file[8:8+size], &raw); err != nil {
		return nil, fmt.Errorf("cannot read header of weights: %w", err)
	}
	if len(raw) > maxTensors {
		return nil, fmt.Errorf("cannot read weights: %d tensors, at most %d", len(raw), maxTensors)
	}
	t := &Tensors{data: file[8+size:], index: make(map[string]tensorEntry, len(raw))}
	for name, value := range raw {
		if err := t.add(name, value); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// add puts one entry of the header into the index.
func (t *Tensors) add(name string, value json.RawMessage) error {
	if name == "__metadata__" {
		if err := json.Unmarshal(value, &t.meta); err != nil {
			return fmt.Errorf("cannot read metadata of weights: %w", err)
		}
		return nil
	}
	var e tensorEntry
	if err := json.Unmarshal(value, &e); err != nil {
		return fmt.Errorf("cannot read tensor %q: %w", name, err)
	}
	if err := e.check(uint64(len(t.data))); err != nil {
		return fmt.Errorf("cannot read tensor %q: %w", name, err)
	}
	t.index[name] = e
	return nil
}

// check says whether type, shape and place fit together and lie in a file with size bytes of data.
func (e *tensorEntry) check(size uint64) error {
	width, ok := dtypeSizes[e.DType]
	if !ok {
		return fmt.Errorf("type %q is not one of U8, I8, I32, U32, F32", e.DType)
	}
	if len(e.Shape) > maxRank {
		return fmt.Errorf("%d dimensions, at most %d", len(e.Shape), maxRank)
	}
	want := width
	for _, d := range e.Shape {
		if d < 0 {
			return fmt.Errorf("shape %v has a negative dimension", e.Shape)
		}
		if d > 0 && want > math.MaxInt64/uint64(d) {
			return fmt.Errorf("shape %v is too big", e.Shape)
		}
		want *= uint64(d)
	}
	begin, end := e.Offsets[0], e.Offsets[1]
	if begin > end || end > size {
		return fmt.Errorf("data at [%d, %d) in a file with %d bytes of data", begin, end, size)
	}
	if end-begin != want {
		return fmt.Errorf("%d bytes of data, shape %v of %s needs %d", end-begin, e.Shape, e.DType, want)
	}
	return nil
}

var errNoTensor = errors.New("no such tensor")

// view returns the bytes of a tensor of the given type and shape; -1 in shape takes any size.
func (t *Tensors) view(name, dtype string, shape []int) ([]byte, error) {
	e, ok := t.index[name]
	if !ok {
		return nil, fmt.Errorf("cannot read tensor %q: %w", name, errNoTensor)
	}
	same := e.DType == dtype && len(e.Shape) == len(shape)
	for i := 0; same && i < len(shape); i++ {
		same = shape[i] == -1 || shape[i] == e.Shape[i]
	}
	if !same {
		return nil, fmt.Errorf("cannot read tensor %q: it is %s %v, want %s %v", name, e.DType, e.Shape, dtype, shape)
	}
	return t.data[e.Offsets[0]:e.Offsets[1]:e.Offsets[1]], nil
}

// bytes returns a U8 tensor in place; the caller must not write to it.
func (t *Tensors) bytes(name string, shape ...int) ([]byte, error) {
	return t.view(name, "U8", shape)
}

// int8s returns an I8 tensor in place; the caller must not write to it.
func (t *Tensors) int8s(name string, shape ...int) ([]int8, error) {
	b, err := t.view(name, "I8", shape)
	if err != nil {
		return nil, err
	}
	return int8View(b), nil
}

// Float32s returns a copy of an F32 tensor. All values are finite.
func (t *Tensors) Float32s(name string, shape ...int) ([]float32, error) {
	b, err := t.view(name, "F32", shape)
	if err != nil {
		return nil, err
	}
	values := make([]float32, len(b)/4)
	for i := range values {
		bits := binary.LittleEndian.Uint32(b[4*i:])
		if bits&0x7f800000 == 0x7f800000 {
			return nil, fmt.Errorf("cannot read tensor %q: value %d is not finite", name, i)
		}
		values[i] = math.Float32frombits(bits)
	}
	return values, nil
}

// Uint32s returns the bytes of a U32 tensor of one dimension in place, little-endian; the caller must
// not write to them.
func (t *Tensors) Uint32s(name string) ([]byte, error) { return t.view(name, "U32", []int{-1}) }

// Layer returns the dense layer NAME, or the convolution of that name: see linear.
func (t *Tensors) Layer(name string, in, out int) (Layer, error) {
	l, err := t.linear(name, in, out)
	return Layer{l}, err
}

// linear returns the dense layer NAME: NAME.weight (I8, in tiles), NAME.scale
// and NAME.bias (F32 [out]).
func (t *Tensors) linear(name string, in, out int) (linear, error) {
	if in < 4 || in%4 != 0 || out < 1 {
		return linear{}, fmt.Errorf("cannot use layer %q: %d inputs are no multiple of 4, or %d outputs none", name, in, out)
	}
	w, err := t.int8s(name+".weight", tilesOf(out), in/4, tileOut, 4)
	if err != nil {
		return linear{}, err
	}
	scale, err := t.Float32s(name+".scale", out)
	if err != nil {
		return linear{}, err
	}
	bias, err := t.Float32s(name+".bias", out)
	if err != nil {
		return linear{}, err
	}
	return newLinear(w, scale, bias, in, out), nil
}
