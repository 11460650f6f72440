// The token table: one vector of 512 values for each piece, 4 bits a value.

package model

// Dim is the number of values of a token's row, and of the embedding of a text.
const Dim = 512

// table holds the rows in place. Each row names one of at most 256 codes, and each value one of its
// 16 levels.
type table struct {
	rows  []byte // [rows][Dim/2]; 16 bytes are 32 values, the low halves first
	kinds []byte // [rows], the code of each
	codes [256][16]float32

	// The most frequent pieces, which carry most of the error, are kept in 8 bits besides:
	// value = byte * scale + low.
	frequent   []byte // [frequent][Dim]
	scale, low []float32
}

// Row stores the table's row of token id in dst, which holds Dim values. An id that the table does
// not have counts as the unknown piece.
func (m *Model) Row(dst []float32, id int32) {
	t := &m.table
	row, i := t.at(id)
	if i < len(t.scale) {
		kernel.widen(dst[:Dim], row, t.scale[i], t.low[i])
		return
	}
	kernel.decode(dst[:Dim], row, &t.codes[t.kinds[i]])
}

// AddRow adds gain times the table's row of a token to dst, which holds Dim values. row is memory.
func (m *Model) AddRow(dst []float32, id int32, gain float32, row *[Dim]float32) {
	m.Row(row[:], id)
	kernel.addScaled(dst[:Dim], row[:], 0, gain)
}

// at returns what the table holds for an id, and which of its rows that is.
func (t *table) at(id int32) (row []byte, i int) {
	if i = int(id); i < 0 || i >= len(t.kinds) {
		i = unknownID
	}
	if i < len(t.scale) {
		return t.frequent[i*Dim:][:Dim], i
	}
	return t.rows[i*(Dim/2):][:Dim/2], i
}

// bring has the rows of ids brought nearer: they lie anywhere in 40 MB.
func (t *table) bring(ids []int32) {
	if kernel.bring == nil {
		return
	}
	for _, id := range ids {
		row, _ := t.at(id)
		kernel.bring(row)
	}
}

// open finds the table in its file.
func (t *table) open(file *Tensors) (err error) {
	if t.kinds, err = file.bytes("kinds", -1); err != nil {
		return err
	}
	if t.rows, err = file.bytes("rows", len(t.kinds), Dim/2); err != nil {
		return err
	}
	if t.scale, err = file.Float32s("frequent.scale", -1); err != nil {
		return err
	}
	if t.low, err = file.Float32s("frequent.low", len(t.scale)); err != nil {
		return err
	}
	if t.frequent, err = file.bytes("frequent", len(t.scale), Dim); err != nil {
		return err
	}
	codes, err := file.Float32s("codes", -1, len(t.codes[0]))
	for i, v := range codes[:min(len(codes), 256*16)] {
		t.codes[i/16][i%16] = v
	}
	return err
}
