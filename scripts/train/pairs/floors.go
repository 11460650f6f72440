// Floors: the figures that must hold.

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// hold compares figures with their bounds: {"at least": {NAME: PER CENT}, "at most": {...}}.
func hold(path string, figures []figure) error {
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
		known[f.name] = 100 * f.value
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
		return fmt.Errorf("cannot accept this verifier:\n  %s", strings.Join(broken, "\n  "))
	}
	return nil
}
