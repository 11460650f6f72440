// Figures: accuracy per source, language and length; recall against mistakes.

package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"kvasir/classify/model"
	"kvasir/scripts/train/floors"
)

// threshold is the shipped one of classify.jailbreak.
const threshold = 0.7

// A figure is one line of the table.
type figure = floors.Figure

// groups sorts rows into groups by name, each row in one or more.
func groups(rows []*row, of func(*row) []string) ([]string, map[string][]*row) {
	found := make(map[string][]*row)
	for _, r := range rows {
		for _, g := range of(r) {
			found[g] = append(found[g], r)
		}
	}
	return slices.Sorted(maps.Keys(found)), found
}

func filter(rows []*row, keep func(*row) bool) []*row {
	var kept []*row
	for _, r := range rows {
		if keep(r) {
			kept = append(kept, r)
		}
	}
	return kept
}

func share(rows []*row, has func(*row) bool) float64 {
	return float64(len(filter(rows, has))) / float64(max(len(rows), 1))
}

func band(text string) string {
	switch n := utf8.RuneCountInString(text); {
	case n < 40:
		return "length under 40"
	case n < 200:
		return "length 40-199"
	case n < 1000:
		return "length 200-999"
	}
	return "length 1000 and more"
}

func language(r *row) string {
	switch r.Lang {
	case "en", "zh":
		return r.Lang
	}
	return "other"
}

func isWritten(r *row) bool { return strings.HasPrefix(r.Source, "written/") }

// exams are the public sets of exam text in English, together one figure.
var exams = []string{"mmlu-pro", "mmlu", "gsm8k", "theoremqa"}

func categoryFigures(rows []*row) []figure {
	rows = filter(rows, func(r *row) bool { return r.Task == "category" })
	right := func(r *row) bool { return r.category == r.Label }
	names, found := groups(rows, func(r *row) []string {
		of := []string{r.Source, r.Source + " " + language(r)}
		if r.Split != "test" { // easy ones: what is said of all rows is not said of them
			of = append(of, band(r.Text), "language "+language(r))
		}
		if slices.Contains(exams, r.Source) {
			of = append(of, "exams")
		}
		return of
	})
	var figures []figure
	for _, name := range names {
		own := found[name]
		if source, lang, ok := strings.Cut(name, " "); ok && len(found[source]) == len(own) && (lang == "en" || lang == "zh") {
			continue // a source of one language
		}
		figures = append(figures, floors.Of("category accuracy: "+name, share(own, right), len(own)))
	}
	for _, name := range []string{"written/everyday en", "written/everyday zh", "written/everyday-plain en", "written/everyday-plain zh"} {
		if own := found[name]; len(own) > 0 {
			figures = append(figures, floors.Of("category macro-F1: "+name, macroF1(own), len(own)))
		}
	}
	rows = filter(rows, func(r *row) bool { return r.Split != "test" })
	sure := filter(rows, func(r *row) bool { return r.confidence >= 0.6 })
	return append(figures,
		floors.Of("category: rows with confidence 0.6 and more", float64(len(sure))/float64(max(len(rows), 1)), len(rows)),
		floors.Of("category accuracy: confidence 0.6 and more", share(sure, right), len(sure)),
		floors.Of("category: error of calibration", calibrationError(rows), len(rows)))
}

// macroF1 is the mean over the labels that occur.
func macroF1(rows []*row) float64 {
	var sum float64
	labels := 0
	for _, label := range model.Categories {
		var hit, said, is float64
		for _, r := range rows {
			if r.category == label {
				said++
			}
			if r.Label == label {
				is++
				if r.category == label {
					hit++
				}
			}
		}
		if is > 0 {
			labels++
			sum += 2 * hit / (said + is)
		}
	}
	return sum / float64(max(labels, 1))
}

// calibrationError is the mean distance of confidence and accuracy over ten bands of confidence.
func calibrationError(rows []*row) float64 {
	var sum float64
	for b := range 10 {
		own := filter(rows, func(r *row) bool { return min(int(10*r.confidence), 9) == b })
		var confidence float64
		for _, r := range own {
			confidence += r.confidence
		}
		n := float64(max(len(own), 1))
		accuracy := share(own, func(r *row) bool { return r.category == r.Label })
		sum += math.Abs(confidence/n-accuracy) * float64(len(own)) / float64(max(len(rows), 1))
	}
	return sum
}

func guardFigures(rows []*row) []figure {
	rows = filter(rows, func(r *row) bool { return r.Task == "guard" && r.Label != "payload" })
	attack := func(r *row) float64 { return float64(r.scores.Attack) }
	indirect := func(r *row) float64 { return float64(r.scores.Indirect) }
	label := func(labels ...string) []*row {
		return filter(rows, func(r *row) bool { return slices.Contains(labels, r.Label) && r.Role != "system" })
	}
	attacks, innocent := label("attack"), label("benign", "harmful")

	figures := compare("attack", attacks, innocent, attack)
	for _, set := range []struct {
		name string
		keep func(*row) bool
	}{
		{"public", func(r *row) bool { return !isWritten(r) }},
		{"public sets trained on", func(r *row) bool { return !isWritten(r) && r.Open }},
		{"written", isWritten},
	} {
		figures = append(figures, compare("attack, "+set.name, filter(attacks, set.keep), filter(innocent, set.keep), attack)...)
	}
	figures = append(figures, compare("indirect", label("indirect"), label("document"), indirect)...)

	flagged := func(r *row) bool {
		if r.Role == "document" {
			return r.scores.Indirect >= threshold
		}
		return r.scores.Attack >= threshold
	}
	names, found := groups(rows, func(r *row) []string {
		kind := map[string]string{"attack": "found", "indirect": "found"}[r.Label]
		kind = "flagged as shipped, " + cmp.Or(kind, "mistaken") + ": "
		who := r.Label
		if r.Role == "system" {
			who = "system"
		}
		return []string{kind + r.Source + " (" + who + ")", kind + "all " + who, kind + who + ", language " + language(r), kind + who + ", " + band(r.Text)}
	})
	for _, name := range names {
		figures = append(figures, floors.Of(name, share(found[name], flagged), len(found[name])))
	}
	return figures
}

// compare gives the area under the curve and the recall where 1 in 100 innocent rows is flagged.
func compare(name string, yes, no []*row, score func(*row) float64) []figure {
	if len(yes) == 0 || len(no) == 0 {
		return nil
	}
	var scores []float64
	for _, r := range no {
		scores = append(scores, score(r))
	}
	slices.Sort(scores)
	var below float64
	for _, r := range yes {
		first, _ := slices.BinarySearch(scores, score(r))
		after, _ := slices.BinarySearch(scores, math.Nextafter(score(r), 2))
		below += float64(first+after) / 2
	}
	bound := scores[min(len(scores)-1, int(math.Ceil(0.99*float64(len(scores)))))]
	return []figure{
		floors.Of(name+": AUC", below/float64(len(yes))/float64(len(no)), len(yes)),
		floors.Of(fmt.Sprintf("%s: recall at 1 %% of %d mistaken", name, len(no)), share(yes, func(r *row) bool { return score(r) > bound }), len(yes)),
	}
}
