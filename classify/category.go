// Category: which of the 14 subjects of MMLU-Pro the last user text is about.

package classify

import (
	"fmt"
	"math"

	"kvasir/classify/model"
)

// KindCategory has the values of Categories.
const KindCategory Kind = "category"

// Categories are the labels of MMLU-Pro, in alphabetical order. Everyday talk
// is other.
var Categories = model.Categories

const other = "other"

func categories() []string { return Categories[:] }

// findCategory judges the last user text, its beginning and its end if it is
// long (see lastUser).
func (j *judging) findCategory() error {
	c := &j.v.Category
	text := j.lastUser()
	if len(text) == 0 {
		return nil
	}
	key, ok := j.c.shared.key(text), false
	if c.Scores, ok = j.c.shared.category.get(key); !ok {
		if err := j.reader.category(&c.Scores, text); err != nil {
			return err
		}
		j.c.shared.category.put(key, c.Scores)
	}
	best, second := 0, 1
	if c.Scores[1] > c.Scores[0] {
		best, second = 1, 0
	}
	for i, p := range c.Scores {
		if p > 0 {
			c.Entropy -= float64(p) * math.Log2(float64(p))
		}
		switch {
		case i < 2:
		case p > c.Scores[best]:
			best, second = i, best
		case p > c.Scores[second]:
			second = i
		}
	}
	c.Judged = true
	c.Label, c.Second, c.Confidence = Categories[best], Categories[second], float64(c.Scores[best])
	if c.Name = c.Label; c.Confidence < j.c.options.Category.Threshold {
		c.Name = other
	}
	return nil
}

func isCategory(j *judging, value string) (float64, bool) {
	c := &j.v.Category
	return c.Confidence, c.Name == value
}

func reportCategory(v *Verdict) string {
	c := &v.Category
	text := fmt.Sprintf("%s %.3f, then %s; %.2f bits of doubt", c.Label, c.Confidence, c.Second, c.Entropy)
	if c.Name != c.Label {
		text += fmt.Sprintf("; counts as %s below %g", c.Name, v.c.options.Category.Threshold)
	}
	return text
}

func foundCategory(j *judging) string {
	c := &j.v.Category
	switch {
	case !c.Judged:
		return "none"
	case c.Name != c.Label:
		return c.Name + ", for " + c.Label + " has only " + scored(c.Confidence)
	}
	return c.Label + " " + scored(c.Confidence)
}
