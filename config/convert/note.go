// Notes: what has no counterpart, found by what nobody has read.

package convert

import (
	"cmp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

func (d *doc) note(v *value, text string) {
	if len(d.notes) > 2*mostNotes {
		return
	}
	d.notes = append(d.notes, Note{Line: v.line(), What: v.path(), Text: text})
}

// sorted are the notes in the order of the file, each once.
func (d *doc) sorted() []Note {
	slices.SortStableFunc(d.notes, func(a, b Note) int { return cmp.Compare(a.Line, b.Line) })
	notes := slices.Compact(d.notes)
	if len(notes) > mostNotes {
		more := notes[mostNotes]
		notes = append(slices.Clip(notes[:mostNotes]), Note{Line: more.Line, What: more.What, Text: "and what comes after it: too much to list"})
	}
	return notes
}

// noteUnread notes what nobody has read: of a part of which nothing was read the part as a whole.
func (d *doc) noteUnread(v *value) {
	if v.read || !v.there() || v.node.Kind != yaml.ScalarNode && len(v.kids) == 0 {
		return
	}
	text, known := d.lostText(v.keys())
	if known && text == "" {
		return
	}
	if !v.touched() && v.above != nil && (known || !d.lostBelow(v)) {
		if text == "" {
			text = "has no counterpart"
		}
		d.note(v, text)
		return
	}
	for _, k := range v.kids {
		d.noteUnread(k)
	}
}

// touched says whether anything under v was read.
func (v *value) touched() bool {
	return v.read || slices.ContainsFunc(v.kids, (*value).touched)
}

// lostText is the row for a path, or for one above it; the last row that fits is the closest.
func (d *doc) lostText(keys []string) (text string, known bool) {
	longest := 0
	for _, row := range d.lost {
		want := strings.Fields(row.path)
		if n := len(want); n <= len(keys) && n >= longest && fits(want, keys[:n]) {
			text, known, longest = row.text, true, n
		}
	}
	return text, known
}

// lostBelow says whether there is a row of its own for something under v.
func (d *doc) lostBelow(v *value) bool {
	keys := v.keys()
	return slices.ContainsFunc(d.lost, func(row lost) bool {
		want := strings.Fields(row.path)
		return len(want) > len(keys) && fits(want[:len(keys)], keys)
	})
}

func fits(want, keys []string) bool {
	for i, w := range want {
		if w != "*" && w != keys[i] {
			return false
		}
	}
	return true
}
