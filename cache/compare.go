// Compare: the outcome of a lookup between two questions of one scope.

package cache

import (
	"bytes"
	"cmp"
)

// Compare returns the result of a lookup of b if a's entry were the only one in its scope.
// Similarity is that of their embeddings even when a lookup would ignore it as too low. Entry and
// Age are not set.
func (c *Cache) Compare(a, b *Query) Result {
	if bytes.Equal(a.Normal(), b.Normal()) {
		return Result{Hit: true, Exact: true, Similarity: 1, Score: 1}
	}
	if !a.embed() || !b.embed() {
		return Result{Why: cmp.Or(b.Literal(), a.Literal(), "empty")}
	}
	r := Result{Why: "dissimilar"}
	for i, v := range a.vector {
		r.Similarity += float64(v) * float64(b.vector[i])
	}
	if r.Similarity < floor {
		return r
	}
	r.Score, r.Why = c.o.Verifier.Compare(normalise(a.Text), normalise(b.Text), r.Similarity)
	if r.Why == "" && !(r.Score >= c.threshold(b)) {
		r.Why = "score"
	}
	r.Hit = r.Why == ""
	return r
}

// threshold returns the lowest score that answers q.
func (c *Cache) threshold(q *Query) float64 {
	if q.Threshold > 0 {
		return q.Threshold
	}
	return c.o.Threshold
}
