// The memory of one judging.

package model

// Scratch is the memory that one call at a time works in: about 5 MB once every part has been
// used, whatever the text. It grows at first use and is then reused. The zero value is ready.
type Scratch struct {
	quant    []byte                      // activations of apply and Embed
	rowScale [rowBlock]float32           // of the rows of apply's block
	tail     [rowBlock * tileOut]float32 // a last tile that the outputs do not fill
	job      job
	tailJob  job
	blending blending
	sums     [kinds]accumulators // of convBySums
	tokens   []Token             // of Together's text under way
	farSums  []float32           // of a Layer's far inputs
	farRow   [Apart]float32      // those of a row
	nearRow  []float32           // the row without them

	window  *window
	encoder *encoderScratch
	heads   *headScratch
}

func (s *Scratch) forEncoder() *encoderScratch {
	if s.encoder == nil {
		s.encoder = new(encoderScratch)
	}
	return s.encoder
}

// activations returns room for n activations.
func (s *Scratch) activations(n int) quantised {
	if n *= kernel.width; cap(s.quant) < n {
		s.quant = make([]byte, n)
	}
	return quantised{s.quant[:n], kernel.width}
}
