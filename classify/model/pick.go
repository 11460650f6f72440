// Pick: of a long text, what the encoder sees. All of it is seen by its words.

package model

// wholeSpans is how many spans a text may have that is encoded whole: 192 tokens.
const wholeSpans = 2 * chunkSpans

// gist is the run that stands for a text of n spans: all of it, or the beginning and the end of a
// longer one, where people say what they want. There is no gap if they meet.
func gist(n int) run {
	if n <= wholeSpans {
		return run{to: int32(n)}
	}
	return run{to: int32(n), gapFrom: chunkSpans, gapTo: int32(lastChunks(n) * chunkSpans)}
}

// lastChunks is the first of the chunks that make the end of a text of n spans, more than one span.
func lastChunks(n int) int { return (n - 2) / chunkSpans }

// Chunks whose words score higher are worth the encoder: 19 of 20 that hold an attack, and one of five
// of sources and manuals, by the rows that scripts/train/rows.py holds out. In documents, which have
// their own score, one of ten. Fitted to guard.ngram, so to be looked at when that is trained anew.
const (
	pickAttack   = -4
	pickIndirect = -0.5
)

// appendPicked appends the windows of a text of n spans, more than wholeSpans, that are worth the
// encoder: its gist, and all windows within the beginning, the end, the chunk that the words speak
// against most and others that they speak against. The chunks' words are in h.
func (g *guardHead) appendPicked(dst []run, n int, read bool, h *headScratch) []run {
	chunks, last := chunksOf(n), lastChunks(n)
	var picked [maxChunks + 1]bool
	worst, top := -1, float32(0)
	var scores [guardNgramOuts]float32
	for i := range chunks {
		if i == 0 || i >= last {
			picked[i] = true
			continue
		}
		g.ngrams.scores(scores[:], &h.chunks[i], nil)
		picked[i] = scores[attackOut] > pickAttack || read && scores[indirectOut] > pickIndirect
		if worst < 0 || scores[attackOut] > top {
			worst, top = i, scores[attackOut]
		}
	}
	if worst >= 0 {
		picked[worst] = true
	}
	dst = append(dst, gist(n))
	for from := 0; from < chunks; from++ {
		to := from
		for picked[to] {
			to++
		}
		if to > from {
			dst = appendStretch(dst, from*chunkSpans, min(to*chunkSpans, n))
			from = to
		}
	}
	return dst
}
