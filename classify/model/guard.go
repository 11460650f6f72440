// The guard's view of a text: windows of several lengths, each with a view and n-grams.

package model

import "math"

const (
	chunkSpans = blockSpans // spans whose n-grams are collected together
	maxChunks  = maxBlocks
	maxRuns    = 1 + 3*maxSpans
)

// windowSpans are the lengths of windows, in spans; the next begins half a window further.
var windowSpans = [...]int{2, 4, 8}

// appendWindows appends the windows of a text of n spans: the whole of it, and where it is longer
// than a window, windows that cover it.
func appendWindows(dst []run, n int) []run { return appendStretch(dst, 0, n) }

// appendStretch appends the windows of spans [from, to): all of them, and windows that cover them.
func appendStretch(dst []run, from, to int) []run {
	dst = append(dst, run{from: int32(from), to: int32(to)})
	for _, w := range windowSpans {
		if to-from <= w {
			break
		}
		at := from
		for ; at+w < to; at += w / 2 {
			dst = append(dst, run{from: int32(at), to: int32(at + w)})
		}
		dst = append(dst, run{from: int32(to - w), to: int32(to)})
	}
	return dst
}

// bytesOfTokens returns the bytes from the first of tokens to the last.
func bytesOfTokens(text []byte, tokens []Token) []byte {
	if len(tokens) == 0 {
		return nil
	}
	return text[tokens[0].Start:max(tokens[len(tokens)-1].End, tokens[0].Start)]
}

// chunkOf returns the tokens of chunk i of a text of these tokens. The first id is <s>.
func chunkOf(tokens []Token, i int) []Token {
	first, next := i*chunkSpans*spanTokens-1, (i+1)*chunkSpans*spanTokens-1
	return tokens[min(max(first, 0), len(tokens)):min(next, len(tokens))]
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
	net    dense
	ngrams ngramHead
	// Calibration of each output in each script: the n-grams' share, then factor and summand.
	share, scale, shift [scripts][]float32
}

// Scripts differ in what n-grams know of them and in how high their innocent texts score.
const (
	alphabetic = iota
	ideographic
	unreadable // letters that the encoder does not read: only n-grams know the words
	scripts
)

// isUnread holds for letters of Greek, of Hebrew and of the scripts of India, which no language that
// the encoder was trained on is written in.
func isUnread(r rune) bool {
	return r >= 0x0370 && (r <= 0x03FF || r >= 0x0590 && r <= 0x05FF || r >= 0x0900 && r <= 0x0DFF || r >= 0x1F00 && r <= 0x1FFF)
}

// scriptOf returns the script of most of a text. An ideograph counts for as much as three letters.
func scriptOf(text []byte) int {
	letters, ideographs, unread := 0, 0, 0
	for i := 0; i < len(text); {
		r, size := lowerAt(text, i)
		i += size
		switch {
		case isIdeograph(r):
			ideographs++
		case isLetter(r):
			letters++
			if isUnread(r) {
				unread++
			}
		}
	}
	switch {
	case 3*ideographs > letters:
		return ideographic
	case 2*unread > letters:
		return unreadable
	}
	return alphabetic
}

func (g *guardHead) open(t *Tensors) (err error) {
	if g.net, err = t.dense("guard", guardOuts); err != nil {
		return err
	}
	if g.ngrams, err = t.ngramHead("guard.ngram", guardNgramOuts); err != nil {
		return err
	}
	for _, part := range []struct {
		name string
		to   *[scripts][]float32
	}{{"guard.mix", &g.share}, {"guard.scale", &g.scale}, {"guard.shift", &g.shift}} {
		values, err := t.Float32s(part.name, scripts, guardOuts)
		if err != nil {
			return err
		}
		for i := range part.to {
			part.to[i] = values[i*guardOuts:][:guardOuts]
		}
	}
	return nil
}

// Scores are what the guard thinks of a text: calibrated probabilities.
type Scores struct {
	Attack    float32 // it attacks whom it is said to: a jailbreak or an injection
	Injection float32 // if it is an attack: one that hides or speaks with a false voice, not one that persuades
	Harmful   float32 // it asks for something harmful; no attack by itself
	Indirect  float32 // as a document or a tool's result, it instructs whom it is only to be read by
	From, To  int     // tokens of the window with the highest Attack
}

// Attack judges a text of these tokens, of any length. read: it is a document or a tool's result; of
// other long texts Indirect may be too low. Gist and Category of the same tokens cost next to nothing
// after it: the view of the gist is one of those that it needs.
func (m *Model) Attack(text []byte, tokens []Token, read bool, s *Scratch) Scores {
	worst := m.attackPart(text, tokens[:min(len(tokens), MaxTokens)], read, s)
	s.encoder.keepWhole(s.forHeads().views[:viewDim]) // the first run was the gist
	// Parts overlap, so that what lies over a border is whole in one.
	const step = MaxTokens - 8*spanTokens
	for at := step; at+8*spanTokens < len(tokens); at += step {
		part := tokens[at:min(at+MaxTokens, len(tokens))]
		scores := m.attackPart(text, part, read, s)
		if scores.Attack > worst.Attack {
			worst.Attack, worst.Injection, worst.From, worst.To = scores.Attack, scores.Injection, at+scores.From, at+scores.To
		}
		worst.Harmful = max(worst.Harmful, scores.Harmful)
		worst.Indirect = max(worst.Indirect, scores.Indirect)
	}
	return m.closer(worst, text, tokens, s)
}

// A long text has many windows, and the worst of many innocent ones is worse than that of a few:
// its log odds are this much lower for each factor of e in length. Fitted on the sources and
// manuals that scripts/train/rows.py holds out.
const (
	perLength  = 0.25
	freeTokens = 128
)

// lengthOdds is what the log odds of a text of n tokens lose.
func lengthOdds(n int) float32 {
	if n <= freeTokens {
		return 0
	}
	return float32(perLength * math.Log(float64(n)/freeTokens))
}

// zoomed is from how many tokens on the worst window of a text is judged once more for itself, unless
// its score leaves no doubt: of 55 attacks in long texts that only this finds, 53 score more than
// doubtful before.
const (
	zoomed   = 8 * spanTokens
	doubtful = 0.2
	certain  = 0.97
)

// closer judges the worst window of a long text by itself: what stands around a short attack speaks
// for it in a window that holds both.
func (m *Model) closer(worst Scores, text []byte, tokens []Token, s *Scratch) Scores {
	if len(tokens) < zoomed || worst.To-worst.From > len(tokens)/2 || worst.Attack < doubtful || worst.Attack > certain {
		return worst
	}
	scores := m.attackPart(text, tokens[worst.From:worst.To], false, s)
	lost := float64(lengthOdds(len(tokens)) - lengthOdds(worst.To-worst.From))
	attack := float32(1 / (1 + math.Exp(lost)*(1/float64(max(scores.Attack, 1e-9))-1)))
	if attack > worst.Attack {
		worst.Attack, worst.Injection = attack, scores.Injection
	}
	return worst
}

// attackPart judges up to MaxTokens tokens; they need not be the first of text.
func (m *Model) attackPart(text []byte, tokens []Token, read bool, s *Scratch) Scores {
	n := m.begin(tokens, s)
	spans, h := spansOf(n), s.forHeads()
	words := m.guard.words(text, tokens, chunksOf(spans), h)
	runs := appendWindows(h.runs[:0], spans)
	if spans > wholeSpans {
		runs = m.guard.appendPicked(h.runs[:0], spans, read, h)
	}
	m.viewRuns(h.views[:], runs, s)
	var worst worstWindows
	for at := 0; at < len(runs); at += batchRuns {
		rows := min(batchRuns, len(runs)-at)
		worst.add(runs[at:][:rows], m.guard.net.apply(h.views[at*viewDim:], rows, s))
	}
	return m.guard.judge(&worst, &words, scriptOf(bytesOfTokens(text, tokens)), n, len(tokens))
}

// worstWindows are the highest scores that windows of a text have.
type worstWindows struct {
	seen  bool
	best  [guardOuts]float32
	where run // of the highest as an attack
}

// add takes windows and their scores.
func (w *worstWindows) add(runs []run, scores []float32) {
	for i, r := range runs {
		for k, v := range scores[i*guardOuts:][:guardOuts] {
			if !w.seen || v > w.best[k] {
				w.best[k] = v
				if k == attackOut {
					w.where = r
				}
			}
		}
		w.seen = true
	}
}

// judge calibrates what the windows and the words of a text of n ids and so many tokens say.
func (g *guardHead) judge(w *worstWindows, words *[guardNgramOuts]float32, script, n, tokens int) Scores {
	best := w.best
	for k, v := range words {
		best[k] += float32(v * g.share[script][k])
	}
	for k, v := range best {
		best[k] = float32(v*g.scale[script][k]) + g.shift[script][k]
	}
	best[attackOut] -= lengthOdds(n)
	best[indirectOut] -= lengthOdds(n)
	for k, v := range best {
		best[k] = sigmoid(v)
	}
	from := max(int(w.where.from)*spanTokens-1, 0) // the first id is <s>
	return Scores{
		Attack: best[attackOut], Injection: best[injectionOut], Harmful: best[harmfulOut], Indirect: best[indirectOut],
		From: min(from, tokens), To: min(int(w.where.to)*spanTokens-1, tokens),
	}
}

// words returns the highest scores that the n-grams of any two neighbouring chunks have.
func (g *guardHead) words(text []byte, tokens []Token, chunks int, h *headScratch) (best [guardNgramOuts]float32) {
	for i := range chunks {
		g.ngrams.sum(&h.chunks[i], h.ngrams.Collect(bytesOfTokens(text, chunkOf(tokens, i))))
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
