// Bounds: signals that hold while measures of the request lie within bounds.

package classify

import "fmt"

// A Feature asks whether a measure lies within bounds, both included.
type Feature struct {
	Name string // one of the measures of the kind; see Makings
	Min  float64
	Max  *float64 // nil: no bound
}

// compileBounds: all features must lie within their bounds. Where there is but
// one measure, it is the score too; else the score is 1 or 0.
func (s *signal) compileBounds(_ *Classifier, o *SignalOptions) (test, error) {
	if err := s.checkFeatures(o.Features); err != nil {
		return nil, err
	}
	features, measure, single := o.Features, s.measure, len(s.measures) == 1
	return func(j *judging) (float64, bool, error) {
		score := 1.0
		for _, f := range features {
			n, err := measure(j, f.Name)
			if err != nil {
				return 0, false, err
			}
			if single {
				score = n
			}
			if !f.within(n) {
				if !single {
					score = 0
				}
				return score, false, nil
			}
		}
		return score, true, nil
	}, nil
}

// checkFeatures looks at bounds and names.
func (s *signal) checkFeatures(features []Feature) error {
	if len(features) == 0 {
		return fmt.Errorf("it asks for nothing")
	}
	for _, f := range features {
		if err := oneOf("feature", f.Name, s.measures); err != nil {
			return err
		}
		if f.Max != nil && (*f.Max < 0 || *f.Max < f.Min) {
			return fmt.Errorf("the bounds of %s, %v to %v, match no value", f.Name, f.Min, *f.Max)
		}
		if s.limit > 0 && f.Min > s.limit {
			return fmt.Errorf("the least %s, %v, is above %v: nothing would reach it", f.Name, f.Min, s.limit)
		}
	}
	return nil
}

// within says whether a measure lies within the bounds.
func (f *Feature) within(n float64) bool {
	return n >= f.Min && (f.Max == nil || n <= *f.Max)
}
