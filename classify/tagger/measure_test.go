// Exact-span F1 of names, tagger and rules together: on rows made for this project, in many
// languages, and on the rows under $KVASIR_DATA/pii where that is set:
//
//	KVASIR_DATA=../shared/data go test ./classify/tagger -run Measure -v

package tagger

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"kvasir/classify/pii"
	"kvasir/jsonltest"
)

var misses = flag.String("misses", "", "print what was missed and wrong of this type")

// markedRow is a row of the data: offsets in code points.
type markedRow struct {
	Text, Source, Lang string
	Spans              []struct {
		Start, End int
		Norm       string
	}
}

// norms are the data's names of the types of names.
var norms = map[string]pii.Type{
	"PERSON": pii.Person, "LOCATION": pii.GPE, "ORG": pii.Organization, "BANK": pii.Organization, "NRP": pii.NRP,
	"TITLE": pii.Title, "PREFIX": pii.Title, "ADDRESS": pii.StreetAddress,
}

// unmarked are the types that a source does not mark, or not always.
func unmarked(source string, t pii.Type) bool {
	switch {
	case strings.HasPrefix(source, "presidio"), strings.HasPrefix(source, "templates"):
		return t == pii.NRP && source == "presidio-large"
	case source == "pii-syn-nano":
		return t != pii.Person && t != pii.Organization && t != pii.Title
	}
	return t != pii.Person && t != pii.GPE && t != pii.Organization
}

// score counts names found and marked.
type score struct{ hit, found, marked int }

func (s score) f1() float64 { return 200 * float64(s.hit) / float64(max(1, s.found+s.marked)) }

func (s *score) add(o score) {
	s.hit, s.found, s.marked = s.hit+o.hit, s.found+o.found, s.marked+o.marked
}

// scores counts by group and type.
type scores map[string]map[pii.Type]*score

func (c scores) at(group string, t pii.Type) *score {
	if c[group] == nil {
		c[group] = map[pii.Type]*score{}
	}
	if c[group][t] == nil {
		c[group][t] = new(score)
	}
	return c[group][t]
}

// total adds up a type over the groups that want takes.
func (c scores) total(t pii.Type, want func(group string) bool) (sum score) {
	for group, types := range c {
		if s := types[t]; s != nil && want(group) {
			sum.add(*s)
		}
	}
	return sum
}

func (c scores) log(t *testing.T) {
	groups := make([]string, 0, len(c))
	for group := range c {
		groups = append(groups, group)
	}
	sort.Strings(groups)
	for _, typ := range entities {
		for _, group := range groups {
			if s := c[group][typ]; s != nil {
				t.Logf("%-15s %-16s F1 %5.1f  hit %4d found %4d marked %4d", typ, group, s.f1(), s.hit, s.found, s.marked)
			}
		}
		sum := c.total(typ, func(string) bool { return true })
		t.Logf("%-15s %-16s F1 %5.1f  hit %4d found %4d marked %4d", typ, "all", sum.f1(), sum.hit, sum.found, sum.marked)
	}
}

// handle is a name of an account, which nobody is asked to find: sources differ in marking them.
var handle = regexp.MustCompile(`@ ?\w+`)

// judge counts the names found in a row against its marks.
func (c scores) judge(row markedRow, group string, found []pii.Span) {
	at := places(row.Text)
	handles := handle.FindAllStringIndex(row.Text, -1)
	aside := func(s pii.Span) bool {
		return slices.ContainsFunc(handles, func(h []int) bool { return int(s.Start) < h[1] && int(s.End) > h[0] })
	}
	want := map[pii.Span]bool{}
	for _, m := range row.Spans {
		s := pii.Span{Start: at[m.Start], End: at[m.End], Type: norms[m.Norm]}
		if s.Type != 0 && !aside(s) && row.Text[s.Start:s.End] != "@" && !unmarked(row.Source, s.Type) && !want[s] {
			want[s] = true
			c.at(group, s.Type).marked++
		}
	}
	for _, s := range found {
		s.Score = 0
		if !slices.Contains(entities[:], s.Type) || aside(s) || unmarked(row.Source, s.Type) {
			continue
		}
		c.at(group, s.Type).found++
		if want[s] {
			c.at(group, s.Type).hit++
			delete(want, s)
		} else {
			show("+", row, s)
		}
	}
	for s := range want {
		show("-", row, s)
	}
}

func show(sign string, row markedRow, s pii.Span) {
	if *misses == s.Type.String() || *misses == "all" {
		from, to := max(0, int(s.Start)-40), min(len(row.Text), int(s.End)+30)
		fmt.Printf("%s %s %s: %q [%s] %q\n", sign, row.Source, s.Type, row.Text[from:s.Start], row.Text[s.Start:s.End], row.Text[s.End:to])
	}
}

// places returns where each code point of text begins, and its end.
func places(text string) (at []int32) {
	for i := range text {
		at = append(at, int32(i))
	}
	return append(at, int32(len(text)))
}

// findAll finds names and structured values, as the guard does.
func findAll(g *Tagger, text string, m *memory) []pii.Span {
	b := []byte(text)
	names := m.tag(g, nil, b)
	return pii.Merge(nil, pii.Find(nil, b), names)
}

// TestMeasureWritten measures on rows of templates that training did not see.
func TestMeasureWritten(t *testing.T) {
	g := embeddedTagger(t)
	var m memory
	c := scores{}
	for _, row := range jsonltest.Read[markedRow](t, "testdata/names.jsonl") {
		c.judge(row, row.Lang, findAll(g, row.Text, &m))
	}
	c.log(t)
	for _, floor := range []struct {
		typ            pii.Type
		english, other float64 // F1
	}{{pii.Person, 92, 80}, {pii.GPE, 90, 77}, {pii.Organization, 78, 66}} {
		for _, english := range []bool{true, false} {
			sum, least := c.total(floor.typ, func(lang string) bool { return (lang == "en") == english }), floor.other
			if english {
				least = floor.english
			}
			t.Logf("%s, English %v: F1 %.1f", floor.typ, english, sum.f1())
			if sum.f1() < least {
				t.Errorf("cannot accept F1 %.1f of %s (English: %v), below %.0f", sum.f1(), floor.typ, english, least)
			}
		}
	}
}

// TestMeasure measures on the rows that training did not learn from: dev, and of sources that
// dev does not have the last fifth of train.
func TestMeasure(t *testing.T) {
	dir := os.Getenv("KVASIR_DATA")
	if dir == "" {
		t.Skip("KVASIR_DATA is not set")
	}
	g := embeddedTagger(t)
	var m memory
	c := scores{}
	for _, row := range keptRows(t, filepath.Join(dir, "pii")) {
		c.judge(row, row.Source, findAll(g, row.Text, &m))
	}
	c.log(t)
	consistent := c.total(pii.Person, func(source string) bool {
		return strings.HasPrefix(source, "presidio") || source == "pii-syn-nano"
	})
	all := c.total(pii.Person, func(string) bool { return true })
	t.Logf("PERSON where marks are consistent: F1 %.1f; over all sources: F1 %.1f", consistent.f1(), all.f1())
	if consistent.f1() < 85 || all.f1() < 70 {
		t.Errorf("cannot accept F1 %.1f and %.1f of PERSON, below 85 and 70", consistent.f1(), all.f1())
	}
}

func keptRows(t *testing.T, dir string) []markedRow {
	rows := jsonltest.Read[markedRow](t, filepath.Join(dir, "dev.jsonl"))
	train := jsonltest.Read[markedRow](t, filepath.Join(dir, "train.jsonl"))
	total, seen := map[string]int{}, map[string]int{}
	for _, row := range train {
		total[row.Source]++
	}
	for _, row := range train {
		seen[row.Source]++
		if (row.Source == "sec-fin5" || row.Source == "pii-syn-nano") && seen[row.Source]*5 > total[row.Source]*4 {
			rows = append(rows, row)
		}
	}
	return rows
}
