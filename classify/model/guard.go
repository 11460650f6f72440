// The guard's view of a text: windows of several lengths, each with an embedding and n-grams.

package model

const (
	chunkSpans = 4 // spans whose n-grams are collected together
	maxChunks  = (maxSpans + chunkSpans - 1) / chunkSpans
	maxRuns    = 1 + 3*maxSpans
)

// windowSpans are the lengths of windows, in spans; the next begins half a window further.
var windowSpans = [...]int{2, 4, 8}

// appendWindows appends the windows of a text of n spans: the whole of it, and where it is longer
// than a window, windows that cover it.
func appendWindows(dst []run, n int) []run {
	dst = append(dst, run{0, int32(n)})
	for _, w := range windowSpans {
		if n <= w {
			break
		}
		at := 0
		for ; at+w < n; at += w / 2 {
			dst = append(dst, run{int32(at), int32(at + w)})
		}
		dst = append(dst, run{int32(n - w), int32(n)})
	}
	return dst
}

// chunkOf returns the bytes of text that belong to chunk i of a text of these tokens: from its
// first token to that of the next chunk. The first id is <s>.
func chunkOf(text []byte, tokens []Token, i int) []byte {
	start, end := int32(0), int32(len(text))
	if first := i*chunkSpans*spanTokens - 1; first >= 0 && first < len(tokens) {
		start = tokens[first].Start
	}
	if next := (i+1)*chunkSpans*spanTokens - 1; next < len(tokens) {
		end = tokens[next].Start
	}
	return text[min(start, end):end]
}

// chunksOf returns how many chunks n spans make.
func chunksOf(n int) int { return (n + chunkSpans - 1) / chunkSpans }

// The outputs of the guard's heads, as scripts/train/guard.py has them.
const (
	attackOut = iota
	harmfulOut
	indirectOut
	injectionOut
	guardOuts

	guardNgramOuts = injectionOut // n-grams know the first three
)

// guardHead scores windows. A text is as bad as its worst window.
type guardHead struct {
	net          dense
	ngrams       ngramHead
	share        []float32 // of the n-grams, for each output
	scale, shift []float32 // calibration of each output
}

func (g *guardHead) open(t *tensors) (err error) {
	if g.net, err = t.dense("guard", guardOuts); err != nil {
		return err
	}
	if g.ngrams, err = t.ngramHead("guard.ngram", guardNgramOuts); err != nil {
		return err
	}
	if g.share, err = t.float32s("guard.mix", guardOuts); err != nil {
		return err
	}
	if g.scale, err = t.float32s("guard.scale", guardOuts); err != nil {
		return err
	}
	g.shift, err = t.float32s("guard.shift", guardOuts)
	return err
}

// Scores are what the guard thinks of a text: calibrated probabilities.
type Scores struct {
	Attack    float32 // it attacks whom it is said to: a jailbreak or an injection
	Injection float32 // if it is an attack: one that hides or speaks with a false voice, not one that persuades
	Harmful   float32 // it asks for something harmful; no attack by itself
	Indirect  float32 // as a document or a tool's result, it instructs whom it is only to be read by
	From, To  int     // tokens of the window with the highest Attack
}

// Attack judges a text of these tokens, of any length.
func (m *Model) Attack(text []byte, tokens []Token, s *Scratch) Scores {
	worst := m.attackPart(text, tokens[:min(len(tokens), MaxTokens)], s)
	// Parts overlap, so that what lies over a border is whole in one.
	const step = MaxTokens - 8*spanTokens
	for at := step; at+8*spanTokens < len(tokens); at += step {
		part := tokens[at:min(at+MaxTokens, len(tokens))]
		scores := m.attackPart(text, part, s)
		if scores.Attack > worst.Attack {
			worst.Attack, worst.Injection, worst.From, worst.To = scores.Attack, scores.Injection, at+scores.From, at+scores.To
		}
		worst.Harmful = max(worst.Harmful, scores.Harmful)
		worst.Indirect = max(worst.Indirect, scores.Indirect)
	}
	return worst
}

// attackPart judges up to MaxTokens tokens; they need not be the first of text.
func (m *Model) attackPart(text []byte, tokens []Token, s *Scratch) Scores {
	n := m.encode(tokens, s)
	spans, h := spansOf(n), s.forHeads()
	runs := appendWindows(h.runs[:0], spans)
	m.embedRuns(h.vectors[:], runs, s)
	var best [guardOuts]float32
	where := run{}
	for at := 0; at < len(runs); at += batchRuns {
		rows := min(batchRuns, len(runs)-at)
		scores := m.guard.net.apply(h.vectors[at*Dim:], rows, s)
		for r := range rows {
			for k, v := range scores[r*guardOuts:][:guardOuts] {
				if at+r == 0 || v > best[k] {
					best[k] = v
					if k == attackOut {
						where = runs[at+r]
					}
				}
			}
		}
	}
	words := m.guard.words(text, tokens, chunksOf(spans), h)
	for k, v := range words {
		best[k] += float32(v * m.guard.share[k])
	}
	for k, v := range best {
		best[k] = sigmoid(float32(v*m.guard.scale[k]) + m.guard.shift[k])
	}
	from := max(int(where.from)*spanTokens-1, 0) // the first id is <s>
	return Scores{
		Attack: best[attackOut], Injection: best[injectionOut], Harmful: best[harmfulOut], Indirect: best[indirectOut],
		From: min(from, len(tokens)), To: min(int(where.to)*spanTokens-1, len(tokens)),
	}
}

// words returns the highest scores that the n-grams of any two neighbouring chunks have.
func (g *guardHead) words(text []byte, tokens []Token, chunks int, h *headScratch) (best [guardNgramOuts]float32) {
	for i := range chunks {
		g.ngrams.sum(&h.chunks[i], h.ngrams.Collect(chunkOf(text, tokens, i)))
	}
	if chunks == 1 {
		g.ngrams.scores(best[:], &h.chunks[0], nil)
		return best
	}
	var scores [guardNgramOuts]float32
	for i := range chunks - 1 {
		g.ngrams.scores(scores[:], &h.chunks[i], &h.chunks[i+1])
		for k, v := range scores {
			if i == 0 || v > best[k] {
				best[k] = v
			}
		}
	}
	return best
}
