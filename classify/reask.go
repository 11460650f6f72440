// Reask: whether the user asks again what was asked a moment ago, as people do
// who are not content with the answer.

package classify

import "kvasir/classify/model"

// KindReask holds under names of the user's own. It measures how near the last
// user message is to the nearest of the user's earlier ones: their cosine, 0 to
// 1, and 0 where there is none.
const KindReask Kind = "reask"

// askedBefore is how many earlier texts of the user are compared with. Most
// were embedded when they were the last, a short while ago.
const askedBefore = 3

// measureReask compares with the texts of earlier messages, the latest first.
// Several prompts in one body are no conversation: only messages count.
func measureReask(j *judging, _ string) (float64, error) {
	if err := j.find(KindSentence); err != nil || j.v.Embedding == nil {
		return 0, err
	}
	start, _ := j.lastMessage()
	var earlier [Dim]float32
	nearest, compared := float32(0), 0
	for i := start - 1; i >= 0 && compared < askedBefore; i-- {
		if t := &j.r.Texts[i]; t.Role != User || t.Message < 0 {
			continue
		}
		if j.overdue() {
			return 0, ErrTimeout
		}
		text := j.folded(i).bytes
		if len(text) > maxLast {
			text = appendEnds(nil, text)
		}
		if len(text) == 0 {
			continue
		}
		j.sentence(&earlier, text)
		nearest = max(nearest, model.Dot(&earlier, &j.v.embedding))
		compared++
	}
	return float64(min(nearest, 1)), nil
}
