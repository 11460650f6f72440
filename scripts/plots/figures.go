// Which figures of the pages are drawn.

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kvasir/chart"
)

// routing draws the mean time to the first token at each point of the table "Measured".
func routing(page string) ([]byte, error) {
	rows, err := table(page, "| point |")
	if err != nil {
		return nil, err
	}
	c := chart.Chart{
		Title: "Mean time to first token, by who places requests",
		Note:  "Nine replays of two open traces, simulated engines; the table below has the figures. Logarithmic.",
	}
	panel := chart.Panel{Title: "ms, shorter is sooner", Log: true}
	var columns []int
	for _, name := range []string{"Dynamo 1.6.1 itself", "kv 40, 7", "round robin", "predict, queue"} {
		column := slices.Index(rows[0], name)
		if column < 0 {
			return nil, fmt.Errorf("the table has no column %q", name)
		}
		columns = append(columns, column)
		c.Series = append(c.Series, map[string]string{
			"Dynamo 1.6.1 itself": "Dynamo 1.6.1, its default weights", "kv 40, 7": "the same formula, tuned", "round robin": "round robin", "predict, queue": "Kvasir",
		}[name])
	}
	for _, row := range rows[1:] {
		g := chart.Group{Label: row[0]}
		for i, column := range columns {
			mean, _, _ := strings.Cut(row[column], " / ")
			ms, err := strconv.ParseFloat(mean, 64)
			if err != nil {
				return nil, fmt.Errorf("point %s: %w", row[0], err)
			}
			g.Bars = append(g.Bars, chart.Bar{Series: i, Value: ms})
		}
		panel.Groups = append(panel.Groups, g)
	}
	c.Panels = []chart.Panel{panel}
	return c.SVG(), nil
}

// performance draws what stands side by side in the table "Figures".
func performance(page string) ([]byte, error) {
	rows, err := table(page, "| what | Kvasir | at least |")
	if err != nil {
		return nil, err
	}
	var missing error
	// figure finds numbers in the cell of a row that begins so.
	figure := func(row, pattern string) []float64 {
		for _, r := range rows {
			if !strings.HasPrefix(r[0], row) {
				continue
			}
			if found := regexp.MustCompile(pattern).FindStringSubmatch(r[1]); found != nil {
				var values []float64
				for _, text := range found[1:] {
					v, _ := strconv.ParseFloat(text, 64) // the patterns have numbers alone
					values = append(values, v)
				}
				return values
			}
		}
		missing = fmt.Errorf("the row %q has no %s", row, pattern)
		return make([]float64, 9)
	}
	const n = `([\d.]+)`
	nginx := figure("throughput, c=64, against nginx", n+` x`)
	router := figure("throughput, c=64, against vllm-router", n+` x; p99 `+n+` ms against `+n+` ms`)
	event := figure("added p50 per streamed event", n+` us; bare TCP relay `+n+` us, nginx `+n+` us, vllm-router `+n+` us`)
	idle := figure("9,850 idle streams", n+` KiB each \(nginx `+n+` KiB\)`)
	if missing != nil {
		return nil, missing
	}
	const kvasir, other = 0, 1
	bars := func(title, unit string, values ...any) chart.Panel {
		p := chart.Panel{Title: title, Unit: unit}
		for i := 0; i < len(values); i += 2 {
			series, name := other, values[i].(string)
			if name == "Kvasir" {
				series = kvasir
			}
			p.Groups = append(p.Groups, chart.Group{Label: name, Bars: []chart.Bar{{Series: series, Value: values[i+1].(float64)}}})
		}
		return p
	}
	c := chart.Chart{
		Title: "Kvasir beside other proxies, all its features off",
		Note:  "By make bench, on two cores. nginx looks at nothing. The table below has the figures, goals and dates.",
		Panels: []chart.Panel{
			bars("requests a second at 64 connections, nginx = 1", " x", "nginx", 1.0, "Kvasir", nginx[0], "vllm-router", nginx[0]/router[0]),
			bars("the slowest of a hundred requests (p99), ms", " ms", "Kvasir", router[1], "vllm-router", router[2]),
			bars("added to each streamed event (p50), us", " us", "nginx", event[2], "bare TCP relay", event[1], "vllm-router", event[3], "Kvasir", event[0]),
			bars("memory of an idle stream, KiB", " KiB", "nginx", idle[1], "Kvasir", idle[0]),
		},
	}
	return c.SVG(), nil
}

// table is the table of a page whose first line begins so: rows of cells, the first with the columns' names.
func table(page, begins string) ([][]string, error) {
	_, rest, found := strings.Cut(page, "\n"+begins)
	if !found {
		return nil, fmt.Errorf("there is no table that begins with %q", begins)
	}
	var rows [][]string
	for i, line := range strings.Split(begins+rest, "\n") {
		if !strings.HasPrefix(line, "|") {
			break
		}
		if i == 1 { // |---|
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for j := range cells {
			cells[j] = strings.TrimSpace(cells[j])
		}
		if len(rows) > 0 && len(cells) != len(rows[0]) {
			return nil, fmt.Errorf("the row %q has %d cells, not %d", cells[0], len(cells), len(rows[0]))
		}
		rows = append(rows, cells)
	}
	if len(rows) < 2 {
		return nil, fmt.Errorf("the table %q has no rows", begins)
	}
	return rows, nil
}
