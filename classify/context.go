// Context: how many tokens the request has, estimated.

package classify

import "fmt"

// KindContext holds under names of the user's own. It measures tokens.
const KindContext Kind = "context"

// findTokens estimates all texts.
func (j *judging) findTokens() error {
	n := 0.0
	for i := range j.r.Texts {
		if j.overdue() {
			return ErrTimeout
		}
		n += estimate(j.r.Texts[i].Bytes)
	}
	j.v.Tokens = int(n + 0.5)
	return nil
}

func measureContext(j *judging, _ string) (float64, error) {
	err := j.find(KindContext)
	return float64(j.v.Tokens), err
}

func reportContext(v *Verdict) string { return fmt.Sprintf("about %d tokens", v.Tokens) }
