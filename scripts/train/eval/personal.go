// Personal data: exact spans found by the guard as it is shipped, against marked rows.

package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"kvasir/classify"
	"kvasir/scripts/train/floors"
)

// A marked row has places of personal data in code points.
type marked struct {
	Text, Source string
	Spans        []struct {
		Start, End int
		Norm       string
	}
}

// norms are our names of the types of the marked rows; others are not looked for.
var norms = map[string]string{
	"EMAIL": "EMAIL_ADDRESS", "PHONE": "PHONE_NUMBER", "CREDIT_CARD": "CREDIT_CARD", "US_SSN": "US_SSN", "IBAN": "IBAN_CODE", "IP": "IP_ADDRESS",
	"DOMAIN_NAME": "DOMAIN_NAME", "ZIP_CODE": "ZIP_CODE", "AGE": "AGE", "DATE_TIME": "DATE_TIME", "PERSON": "PERSON", "LOCATION": "GPE",
	"ORG": "ORGANIZATION", "NRP": "NRP", "TITLE": "TITLE", "ADDRESS": "STREET_ADDRESS",
}

// structured are those that have a form or a check digit.
var structured = []string{"EMAIL_ADDRESS", "PHONE_NUMBER", "CREDIT_CARD", "US_SSN", "IBAN_CODE", "IP_ADDRESS"}

// A tally counts spans.
type tally struct{ hit, found, marked int }

func (t tally) add(o tally) tally {
	return tally{t.hit + o.hit, t.found + o.found, t.marked + o.marked}
}

func (t tally) f1() float64 { return 2 * float64(t.hit) / float64(max(t.found+t.marked, 1)) }

// personalFigures measures the rows of a file, with the weights of a directory or ("") the embedded ones: F1 of each type over all sources that mark it, and of
// the structured ones and of people where the marks are consistent.
func personalFigures(path, models string) ([]figure, error) {
	c, err := classify.New(classify.Options{Models: models, PII: classify.PIIOptions{GuardOptions: classify.GuardOptions{Action: classify.Annotate}, All: true}})
	if err != nil {
		return nil, err
	}
	rows, err := readMarked(path)
	if err != nil {
		return nil, err
	}
	counts := map[string]map[string]tally{} // by source and type
	for i := range rows {
		own := counts[rows[i].Source]
		if own == nil {
			own = map[string]tally{}
			counts[rows[i].Source] = own
		}
		if err := rows[i].count(c, own); err != nil {
			return nil, err
		}
	}
	return figuresOf(counts), nil
}

func figuresOf(counts map[string]map[string]tally) (figures []figure) {
	all := map[string]tally{}
	var forms, people tally
	for source, own := range counts {
		for name, t := range own {
			if t.marked == 0 {
				continue // not marked in this source: what is found says nothing
			}
			all[name] = all[name].add(t)
			if !strings.HasPrefix(source, "presidio") {
				continue
			}
			if slices.Contains(structured, name) {
				forms = forms.add(t)
			}
			if name == "PERSON" {
				people = people.add(t)
			}
		}
	}
	figures = append(figures, floors.Of("pii F1: structured types, presidio", forms.f1(), forms.marked), floors.Of("pii F1: PERSON, presidio", people.f1(), people.marked))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		figures = append(figures, floors.Of("pii F1: "+name+", all sources", all[name].f1(), all[name].marked))
	}
	return figures
}

// count adds what is marked in a row and what is found.
func (r *marked) count(c *classify.Classifier, own map[string]tally) error {
	type place struct {
		start, end int
		name       string
	}
	want := map[place]bool{}
	for _, s := range r.Spans {
		if name := norms[s.Norm]; name != "" {
			want[place{s.Start, s.End, name}] = true
			own[name] = own[name].add(tally{marked: 1})
		}
	}
	v := c.Judge(&classify.Request{Texts: []classify.Text{{Bytes: []byte(r.Text)}}, Messages: 1, Turns: 1})
	defer v.Release()
	if v.PII.Err != nil {
		return fmt.Errorf("cannot judge %.40q: %w", r.Text, v.PII.Err)
	}
	for _, s := range v.PII.Spans {
		t := tally{found: 1}
		if p := (place{utf8.RuneCountInString(r.Text[:s.Start]), utf8.RuneCountInString(r.Text[:s.End]), s.Type.String()}); want[p] {
			delete(want, p)
			t.hit = 1
		}
		own[s.Type.String()] = own[s.Type.String()].add(t)
	}
	return nil
}

func readMarked(path string) ([]marked, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read marked rows: %w", err)
	}
	defer f.Close()
	var rows []marked
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 1<<20), 64<<20)
	for lines.Scan() {
		var r marked
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("cannot read row %d of %q: %w", len(rows)+1, path, err)
		}
		rows = append(rows, r)
	}
	if err := cmp.Or(lines.Err(), none(rows, path)); err != nil {
		return nil, fmt.Errorf("cannot read marked rows: %w", err)
	}
	return rows, nil
}

func none(rows []marked, path string) error {
	if len(rows) == 0 {
		return fmt.Errorf("there are none in %q", path)
	}
	return nil
}
