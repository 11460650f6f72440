// Text: an explanation for people.

package explain

import (
	"fmt"
	"strings"
)

// Text is the explanation for people.
func (e *Explanation) Text() string {
	var b strings.Builder
	asked := e.Asked
	if e.Auto {
		asked = strings.TrimSpace(asked + " (left to Kvasir)")
	}
	fmt.Fprintf(&b, "model asked  %s\noutcome      %s\n\nsignals\n", asked, e.Outcome)
	for _, s := range e.Signals {
		fmt.Fprintf(&b, "  %-12s %s (%.0f us)\n", s.Signal, s.Found, s.Micros)
	}
	b.WriteString("\ndecisions\n")
	for _, d := range e.Decisions {
		fmt.Fprintf(&b, "  %-12s %s", d.Name, d.Holds)
		if d.Taken {
			b.WriteString(", taken")
		}
		if d.Why != "" {
			b.WriteString(", " + d.Why)
		}
		b.WriteByte('\n')
		for _, a := range d.Asked {
			fmt.Fprintf(&b, "    %s%s", strings.Repeat("  ", a.Depth), a.What)
			if a.Found != "" {
				b.WriteString(": " + a.Found)
			}
			fmt.Fprintf(&b, " -> %s\n", a.Holds)
		}
	}
	b.WriteString("\neffects\n")
	for _, effect := range e.Effects {
		fmt.Fprintf(&b, "  %s\n", effect)
	}
	fmt.Fprintf(&b, "\ncache\n  %s\n", e.Cache.text())
	fmt.Fprintf(&b, "\nplacement\n  %s\n", e.Placement.text())
	return b.String()
}

func (a cacheAsked) text() string {
	how := map[string]string{
		"semantic": fmt.Sprintf("asked for this question, and for one that scores %g", a.Threshold), "exact": "asked for this very text",
		"none": "not asked: " + a.Why,
	}[a.Lookup]
	if a.Lookup == "exact" && a.Why != "" {
		how += " (" + a.Why + ")"
	}
	if a.Scope != "" {
		how += ", in scope " + a.Scope
	}
	if a.Kept {
		how += "; the answer may be kept"
	} else {
		how += "; the answer is not kept"
	}
	switch f := a.Found; {
	case a.None != "":
		how += "\n  not looked up here: " + a.None
	case f == nil:
	case f.Entry == "":
		how += "\n  a miss: nothing is near"
	case f.Hit:
		how += fmt.Sprintf("\n  a hit: entry %s, similarity %.4f, score %.4f: %s", f.Entry, f.Similarity, f.Score, f.Question)
	default:
		how += fmt.Sprintf("\n  a miss (%s): nearest is entry %s, similarity %.4f, score %.4f: %s", f.Why, f.Entry, f.Similarity, f.Score, f.Question)
	}
	return how
}
