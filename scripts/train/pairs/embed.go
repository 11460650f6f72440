// Embed: the embeddings of all texts, made once.

package main

import (
	"cmp"
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"kvasir/cache/verify"
	"kvasir/classify/model"
)

type vector = [model.Dim]float32

// judge compares texts with the verifier that ships.
type judge struct {
	verifier *verify.Verifier
	model    *model.Model
	known    map[string]*vector
}

// newJudge returns one with the embedded pair model, or none.
func newJudge(trained bool) (*judge, error) {
	m, err := model.Embedded()
	if err != nil {
		return nil, err
	}
	open := verify.Untrained
	if trained {
		open = verify.New
	}
	v, err := open(m)
	return &judge{v, m, make(map[string]*vector)}, err
}

// embed makes the embeddings of texts that have none yet, on all cores.
func (j *judge) embed(texts []string) {
	var todo []string
	for _, t := range texts {
		if _, ok := j.known[t]; !ok {
			j.known[t] = new(vector)
			todo = append(todo, t)
		}
	}
	parallel(len(todo), func() func(int) {
		s := new(model.Scratch)
		var tokens []model.Token
		return func(i int) {
			tokens = j.model.Tokenize(tokens[:0], []byte(todo[i]), s)
			j.model.Embed(j.known[todo[i]], tokens, s)
		}
	})
}

func (j *judge) similarity(a, b string) float64 { return float64(model.Dot(j.known[a], j.known[b])) }

// parallel calls what begin returns for each of n, from as many goroutines as
// there are cores.
func parallel(n int, begin func() func(int)) {
	next := make(chan int)
	var done sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		done.Go(func() {
			do := begin()
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	done.Wait()
}

// signs are the signs of a vector's values: the Hamming distance of two follows
// the angle between the vectors.
type signs [model.Dim / 64]uint64

func signsOf(v *vector) (s signs) {
	for i, x := range v {
		if x > 0 {
			s[i/64] |= 1 << (i % 64)
		}
	}
	return s
}

func (s *signs) distance(t *signs) (n int) {
	for i := range s {
		n += bits.OnesCount64(s[i] ^ t[i])
	}
	return n
}

// An index finds the nearest of many vectors.
type index struct {
	vectors []*vector
	signs   []signs
}

func newIndex(vectors []*vector) *index {
	x := &index{vectors: vectors, signs: make([]signs, len(vectors))}
	for i, v := range vectors {
		x.signs[i] = signsOf(v)
	}
	return x
}

// nearest returns the k vectors most similar to t, best first: exactly the best
// of those whose signs are nearest.
func (x *index) nearest(t *vector, k int) []int {
	const looked = 200
	own := signsOf(t)
	var histogram [model.Dim + 1]int
	distances := make([]uint16, len(x.signs))
	for i := range x.signs {
		d := own.distance(&x.signs[i])
		distances[i] = uint16(d)
		histogram[d]++
	}
	limit, n := 0, histogram[0]
	for n < looked && limit < model.Dim {
		limit++
		n += histogram[limit]
	}
	var found []int
	similar := make(map[int]float32)
	for i, d := range distances {
		if int(d) <= limit {
			found = append(found, i)
			similar[i] = model.Dot(t, x.vectors[i])
		}
	}
	slices.SortFunc(found, func(a, b int) int { return cmp.Or(cmp.Compare(similar[b], similar[a]), cmp.Compare(a, b)) })
	return found[:min(k, len(found))]
}
