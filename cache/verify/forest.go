// Forest: the pair model. The sum of its decision trees is the log-odds that two questions are
// the same. scripts/train/pair.py trains it.

package verify

import (
	_ "embed" // the weights
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

//go:embed weights/pair.bin
var weights []byte

// forest is the trees, read-only.
type forest struct {
	base  float32 // log-odds before any tree
	slope float32 // log-odds added per unit of the cosine
	roots []uint16
	nodes []node
	knots []knot // of the calibration: log-odds -> probability, ascending
}

// A node is a test of one feature, or a leaf.
type node struct {
	threshold   float32 // of a leaf: the log-odds that it adds
	left, right uint16  // next node if feature <= threshold, and if not
	feature     uint8   // leaf: none
}

const leaf = math.MaxUint8

// A knot is a point of the calibration.
type knot struct{ odds, probability float32 }

// forestMagic begins the file; its last digit is the version of the features.
const forestMagic = "kvpair02"

const nodeSize = 12

// openForest reads a forest: the magic, base and slope (float32), the number of
// roots, nodes and knots (3 x uint32), roots (uint16 each, padded to 4 bytes), nodes
// (threshold float32, left, right uint16, feature uint32), knots (2 x float32);
// little-endian. A node's children come after it, so that every walk ends.
func openForest(file []byte) (*forest, error) {
	const head = len(forestMagic) + 20
	if len(file) < head || string(file[:len(forestMagic)]) != forestMagic {
		return nil, errors.New("cannot read pair model: not one of this version")
	}
	le := binary.LittleEndian
	f := &forest{base: math.Float32frombits(le.Uint32(file[8:])), slope: math.Float32frombits(le.Uint32(file[12:]))}
	roots, count, knots := int(le.Uint32(file[16:])), int(le.Uint32(file[20:])), int(le.Uint32(file[24:]))
	rest := file[head:]
	padded := (roots*2 + 3) &^ 3
	if roots > 1<<16 || count > 1<<16 || knots > 1<<16 || knots < 2 || len(rest) != padded+count*nodeSize+knots*8 {
		return nil, fmt.Errorf("cannot read pair model: %d bytes for %d roots, %d nodes, %d knots", len(file), roots, count, knots)
	}
	for i := range roots {
		root := le.Uint16(rest[2*i:])
		if int(root) >= count {
			return nil, fmt.Errorf("cannot read pair model: tree %d begins at node %d of %d", i, root, count)
		}
		f.roots = append(f.roots, root)
	}
	rest = rest[padded:]
	for i := range count {
		b := rest[i*nodeSize:]
		n := node{math.Float32frombits(le.Uint32(b)), le.Uint16(b[4:]), le.Uint16(b[6:]), uint8(min(le.Uint32(b[8:]), leaf))}
		if n.feature != leaf && (int(n.feature) >= features || int(n.left) <= i || int(n.right) <= i || int(n.left) >= count || int(n.right) >= count) {
			return nil, fmt.Errorf("cannot read pair model: node %d leads nowhere", i)
		}
		f.nodes = append(f.nodes, n)
	}
	rest = rest[count*nodeSize:]
	for i := range knots {
		f.knots = append(f.knots, knot{math.Float32frombits(le.Uint32(rest[8*i:])), math.Float32frombits(le.Uint32(rest[8*i+4:]))})
	}
	return f, nil
}

// score returns the probability that the two questions of a pair are the same.
func (f *forest) score(x *[features]float32) float64 {
	sum := f.base + f.slope*x[cosine]
	for _, at := range f.roots {
		n := &f.nodes[at]
		for n.feature != leaf {
			if x[n.feature] <= n.threshold {
				n = &f.nodes[n.left]
			} else {
				n = &f.nodes[n.right]
			}
		}
		sum += n.threshold
	}
	return f.calibrate(sum)
}

// calibrate turns log-odds into a probability, by linear interpolation between knots.
func (f *forest) calibrate(odds float32) float64 {
	k := f.knots
	if odds <= k[0].odds {
		return float64(k[0].probability)
	}
	for i := 1; i < len(k); i++ {
		if odds < k[i].odds {
			t := (odds - k[i-1].odds) / (k[i].odds - k[i-1].odds)
			return float64(k[i-1].probability + t*(k[i].probability-k[i-1].probability))
		}
	}
	return float64(k[len(k)-1].probability)
}
