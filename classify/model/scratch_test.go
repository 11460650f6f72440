// Where the memory of one judging lies.

package model

import (
	"reflect"
	"testing"
)

// What vectors are read from and stored in does not lie across lines of the cache.
func TestVectorsLieInLines(t *testing.T) {
	s := new(Scratch)
	es, h := s.forEncoder(), s.forHeads()
	for name, p := range map[string]any{
		"row": &es.row, "hidden": &es.hidden, "mixed": &es.mixed, "sums": &es.sums, "vector": &es.vector, "text": &es.text,
		"wide": &es.wide, "narrow": &es.narrow, "whole": &es.whole, "what pieces give": &es.spread.fresh,
		"inputs of pieces": &es.spread.mixed, "outputs of pieces": &es.spread.out,
		"views": &h.views, "hidden of heads": &h.hidden, "scores": &h.scores,
	} {
		if at := reflect.ValueOf(p).Pointer() % 64; at != 0 {
			t.Errorf("%s begins at byte %d of a line", name, at)
		}
	}
}
