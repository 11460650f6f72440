// Context: how many tokens the request has, estimated.
package classify

import (
	"fmt"
)

// KindContext holds under names of the user's own.
const KindContext Kind = "context"

func newContext(_ *Classifier, o *SignalOptions) (test, error) {
	if err := checkFeatures(o.Features, "tokens"); err != nil {
		return nil, err
	}
	features := o.Features
	return func(j *judging) (float64, bool, error) {
		if err := j.find(rowContext); err != nil {
			return 0, false, err
		}
		n := float64(j.v.Tokens)
		for _, f := range features {
			if !f.within(n) {
				return n, false, nil
			}
		}
		return n, true, nil
	}, nil
}

// checkFeatures looks at bounds and names.
func checkFeatures(features []Feature, known ...string) error {
	if len(features) == 0 {
		return fmt.Errorf("it asks for nothing")
	}
	for _, f := range features {
		if err := oneOf("feature", f.Name, known); err != nil {
			return err
		}
		if f.Max != nil && (*f.Max < 0 || *f.Max < f.Min) {
			return fmt.Errorf("the bounds of %s, %v to %v, hold for nothing", f.Name, f.Min, *f.Max)
		}
	}
	return nil
}

// within says whether a count lies within the bounds.
func (f *Feature) within(n float64) bool {
	return n >= f.Min && (f.Max == nil || n <= *f.Max)
}

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
