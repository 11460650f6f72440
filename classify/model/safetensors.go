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
	"io"
	"iter"
	"maps"
	"math"
	"slices"
)

// Limits of a file that somebody else wrote.
const (
	maxHeader  = 1 << 20 // bytes
	maxTensors = 4096
	maxRank    = 8
)

// Tensors is one opened file: the tensors by name.
type Tensors struct {
	data  []byte // what follows the header; nil: it is read from file when asked for
	file  io.ReaderAt
	start int64 // of the data in file
	index map[string]tensorEntry
	meta  map[string]string // __metadata__, may be nil
}

type tensorEntry struct {
	DType   string    `json:"dtype"`
	Shape   []int     `json:"shape"`
	Offsets [2]uint64 `json:"data_offsets"`
}

// dtypeSizes holds bytes an element for the types that are read here.
var dtypeSizes = map[string]uint64{
	"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2,
	"I32": 4, "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8,
}

// OpenTensors reads the header of a safetensors file and checks every entry against the file's
// length. The result keeps views of file, which must not change afterwards.
func OpenTensors(file []byte) (*Tensors, error) {
	size, err := headerSize(file, uint64(len(file)))
	if err != nil {
		return nil, err
	}
	t, err := readHeader(file[8:8+size], uint64(len(file))-8-size)
	if err == nil {
		t.data = file[8+size:]
	}
	return t, err
}

// ReadTensors is OpenTensors for a file of size bytes of which nothing is read but the header, and then the
// tensors that are asked for: it must stay open and as it is.
func ReadTensors(file io.ReaderAt, size int64) (*Tensors, error) {
	var first [8]byte
	n, err := file.ReadAt(first[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("cannot read weights: %w", err)
	}
	header, err := headerSize(first[:n], uint64(size))
	if err != nil {
		return nil, err
	}
	text := make([]byte, header)
	if _, err := file.ReadAt(text, 8); err != nil {
		return nil, fmt.Errorf("cannot read weights: %w", err)
	}
	t, err := readHeader(text, uint64(size)-8-header)
	if err == nil {
		t.file, t.start = file, 8+int64(header)
	}
	return t, err
}

// headerSize reads the length of the header from a file's first bytes.
func headerSize(first []byte, size uint64) (uint64, error) {
	if len(first) < 8 {
		return 0, fmt.Errorf("cannot read weights: %d bytes are too few for a header", len(first))
	}
	header := binary.LittleEndian.Uint64(first)
	if header > maxHeader || header > size-8 {
		return 0, fmt.Errorf("cannot read weights: header of %d bytes in a file of %d (at most %d)", header, size, maxHeader)
	}
	return header, nil
}

// readHeader reads the index of a file that has size bytes of data.
func readHeader(text []byte, size uint64) (*Tensors, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("cannot read header of weights: %w", err)
	}
	if len(raw) > maxTensors {
		return nil, fmt.Errorf("cannot read weights: %d tensors, at most %d", len(raw), maxTensors)
	}
	t := &Tensors{index: make(map[string]tensorEntry, len(raw))}
	for name, value := range raw {
		if err := t.add(name, value, size); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// add puts one entry of the header of a file with size bytes of data into the index.
func (t *Tensors) add(name string, value json.RawMessage, size uint64) error {
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
	if err := e.check(size); err != nil {
		return fmt.Errorf("cannot read tensor %q: %w", name, err)
	}
	t.index[name] = e
	return nil
}

// check says whether type, shape and place fit together and lie in a file with size bytes of data.
func (e *tensorEntry) check(size uint64) error {
	width, ok := dtypeSizes[e.DType]
	if !ok {
		return fmt.Errorf("type %q is not one of the format's", e.DType)
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
	if t.file == nil {
		return t.data[e.Offsets[0]:e.Offsets[1]:e.Offsets[1]], nil
	}
	data := make([]byte, e.Offsets[1]-e.Offsets[0])
	if _, err := t.file.ReadAt(data, t.start+int64(e.Offsets[0])); err != nil {
		return nil, fmt.Errorf("cannot read tensor %q: %w", name, err)
	}
	return data, nil
}

// Shape returns the shape of a tensor; ok is false if there is none of that name.
func (t *Tensors) Shape(name string) (shape []int, ok bool) {
	e, ok := t.index[name]
	return e.Shape, ok
}

// Names returns the names of all tensors, in no order.
func (t *Tensors) Names() iter.Seq[string] { return maps.Keys(t.index) }

// PackedBlock is how many values of a row share a scale in tensors of bytes: NAME of I8 [rows][columns] and NAME.scale
// of F16 [rows][columns/PackedBlock].
const PackedBlock = 32

// Rows calls each for every so many rows of a tensor of the given shape, rows and columns, whatever kind of floats
// it holds, or packed. The values are valid until each returns, and all finite.
func (t *Tensors) Rows(name string, rows, columns, most int, each func(first int, values []float32) error) error {
	e, ok := t.index[name]
	if !ok {
		return fmt.Errorf("cannot read tensor %q: %w", name, errNoTensor)
	}
	from, ok := floats[e.DType]
	var scales []byte
	if e.DType == "I8" {
		from, ok = func(b []byte) float32 { return float32(int8(b[0])) }, true
		var err error
		if scales, err = t.view(name+".scale", "F16", []int{rows, columns / PackedBlock}); err != nil {
			return err
		}
	}
	if whole := []int{rows, columns}; !ok || !slices.Equal(e.Shape, whole) && !(rows == 1 && slices.Equal(e.Shape, whole[1:])) {
		return fmt.Errorf("cannot read tensor %q: it is %s %v, want floats of the shape %v", name, e.DType, e.Shape, whole)
	}
	width := int(dtypeSizes[e.DType])
	data, values := make([]byte, min(most, rows)*columns*width), make([]float32, min(most, rows)*columns)
	for first := 0; first < rows; first += most {
		n := min(most, rows-first) * columns
		at := e.Offsets[0] + uint64(first*columns*width)
		if err := t.readAt(data[:n*width], at); err != nil {
			return fmt.Errorf("cannot read tensor %q: %w", name, err)
		}
		for i := range values[:n] {
			v := from(data[i*width:])
			if scales != nil {
				at := first*columns + i
				v *= half(binary.LittleEndian.Uint16(scales[at/PackedBlock*2:]))
			}
			if v-v != 0 {
				return fmt.Errorf("cannot read tensor %q: value %d is not finite", name, first*columns+i)
			}
			values[i] = v
		}
		if err := each(first, values[:n]); err != nil {
			return err
		}
	}
	return nil
}

// Packed4 returns a tensor of values of four bits in place: bytes is U8 [rows][columns/2], in which each 16 bytes have a
// block's first 16 values in their low halves and its last 16 in their high ones, and scales F16 [rows][columns/32].
func (t *Tensors) Packed4(name string, rows, columns int) (bytes, scales []byte, err error) {
	if bytes, err = t.view(name, "U8", []int{rows, columns / 2}); err == nil {
		scales, err = t.view(name+".scale", "F16", []int{rows, columns / PackedBlock})
	}
	return bytes, scales, err
}

// Unpack4 stores a block of Packed4, (value-8)*scale.
func Unpack4(dst *[PackedBlock]float32, bytes *[PackedBlock / 2]byte, scale [2]byte) {
	by := half(binary.LittleEndian.Uint16(scale[:]))
	for i, b := range bytes {
		dst[i], dst[i+PackedBlock/2] = (float32(b&15)-8)*by, (float32(b>>4)-8)*by
	}
}

// Bytes returns a U8 tensor of one dimension in place; the caller must not write to it.
func (t *Tensors) Bytes(name string) ([]byte, error) { return t.bytes(name, -1) }

// Meta returns an entry of the file's metadata; "" if there is none.
func (t *Tensors) Meta(key string) string { return t.meta[key] }

// readAt fills b with the data from at on.
func (t *Tensors) readAt(b []byte, at uint64) error {
	if t.file == nil {
		copy(b, t.data[at:])
		return nil
	}
	_, err := t.file.ReadAt(b, t.start+int64(at))
	return err
}

// floats read a value of each kind of float.
var floats = map[string]func(b []byte) float32{
	"F64":  func(b []byte) float32 { return float32(math.Float64frombits(binary.LittleEndian.Uint64(b))) },
	"F32":  func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) },
	"BF16": func(b []byte) float32 { return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16) },
	"F16":  func(b []byte) float32 { return half(binary.LittleEndian.Uint16(b)) },
}

// half is the value of a float of 16 bits, https://ieeexplore.ieee.org/document/8766229: 1 bit of sign, 5 of
// exponent, 10 of mantissa.
func half(bits uint16) float32 {
	sign, exponent, mantissa := uint32(bits>>15)<<31, uint32(bits>>10&31), uint32(bits&1023)
	switch exponent {
	case 0:
		v := float32(mantissa) / (1 << 24)
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | mantissa<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | mantissa<<13)
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
	return Layer{linear: l}, err
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
