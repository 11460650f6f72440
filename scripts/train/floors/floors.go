// Package floors prints measured figures and compares them with those that must hold.
package floors

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// A Figure is a share that was measured.
type Figure struct {
	Name  string
	Value float64 // 0..1
	Rows  int     // it is of
}

// Of returns a figure.
func Of(name string, value float64, rows int) Figure { return Figure{name, value, rows} }

// Print writes a figure a line: what, the value in per cent, of how many rows.
func Print(out io.Writer, figures []Figure) {
	for _, f := range figures {
		fmt.Fprintf(out, "%-64s %6.1f  of %d\n", f.Name, 100*f.Value, f.Rows)
	}
}

// PrintHeldOut writes the figures of a file of second.py: both stages of the guard, on sources that they had not met.
func PrintHeldOut(out io.Writer, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read held-out figures: %w", err)
	}
	var figures map[string]struct {
		Value         float64
		Rows, Sources int
	}
	if err := json.Unmarshal(text, &figures); err != nil {
		return fmt.Errorf("cannot read held-out figures %q: %w", path, err)
	}
	fmt.Fprintf(out, "\nBoth stages of the guard on sources that they had not met, each source once, as scripts/train/second.py measured them:\n")
	for _, name := range slices.Sorted(maps.Keys(figures)) {
		f := figures[name]
		fmt.Fprintf(out, "%-64s %6.1f  of %d in %d sources\n", name, f.Value, f.Rows, f.Sources)
	}
	return nil
}

// Hold compares figures with the bounds in a file: {"at least": {NAME: PER
// CENT}, "at most": {...}}. A bound of what was not measured is broken, too; no
// file is no bound.
func Hold(path string, figures []Figure) error {
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read floors: %w", err)
	}
	var bounds struct {
		Least map[string]float64 `json:"at least"`
		Most  map[string]float64 `json:"at most"`
	}
	if err := json.Unmarshal(text, &bounds); err != nil {
		return fmt.Errorf("cannot read floors %q: %w", path, err)
	}
	known := make(map[string]float64)
	for _, f := range figures {
		known[f.Name] = 100 * f.Value
	}
	var broken []string
	check := func(bounds map[string]float64, word string, holds func(value, bound float64) bool) {
		for name, bound := range bounds {
			if value, ok := known[name]; !ok {
				broken = append(broken, fmt.Sprintf("%s is not measured", name))
			} else if !holds(value, bound) {
				broken = append(broken, fmt.Sprintf("%s is %.1f, must be at %s %.1f", name, value, word, bound))
			}
		}
	}
	check(bounds.Least, "least", func(value, bound float64) bool { return value >= bound })
	check(bounds.Most, "most", func(value, bound float64) bool { return value <= bound })
	if len(broken) > 0 {
		return fmt.Errorf("cannot accept these weights:\n  %s", strings.Join(broken, "\n  "))
	}
	return nil
}
