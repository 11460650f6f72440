// Groups: the questions that were written for the cache, in data/pairs-*.txt.

package main

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
)

// A group is a question, others that are the same, and others that only look so.
type group struct {
	same []text // the question first
	near []text
	held bool // measured, not trained
	lang string
}

// A text is a line of a group, and its tag.
type text struct{ text, tag string }

// readGroups reads all files that a pattern names.
func readGroups(pattern string) ([]group, error) {
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("cannot find groups %q: %w", pattern, err)
	}
	var groups []group
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("cannot read groups: %w", err)
		}
		lang := "en"
		if strings.Contains(filepath.Base(path), "zh") {
			lang = "zh"
		}
		for block := range strings.SplitSeq(string(data), "\n\n") {
			g, err := readGroup(block)
			if err != nil {
				return nil, fmt.Errorf("cannot read group of %q: %w", path, err)
			}
			if len(g.same) > 0 {
				g.lang = lang
				groups = append(groups, g)
			}
		}
	}
	return groups, nil
}

func readGroup(block string) (g group, err error) {
	for line := range strings.SplitSeq(block, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		t := text{text: strings.TrimSpace(line[1:])}
		if head, rest, ok := strings.Cut(line[1:], ": "); ok && head != "" && !strings.ContainsAny(head, " ?？") {
			t = text{strings.TrimSpace(rest), head}
		}
		switch line[0] {
		case '=':
			h := fnv.New32a()
			h.Write([]byte(t.text))
			g.held = h.Sum32()%5 == 0
			g.same = append([]text{t}, g.same...)
		case '+':
			g.same = append(g.same, t)
		case '-':
			g.near = append(g.near, t)
		default:
			return g, fmt.Errorf("line %q begins with none of = + -", line)
		}
	}
	return g, nil
}

// A row is a pair of questions.
type row struct {
	a, b  string
	label float32 // 1: one answer serves both
	group int
	held  bool
	lang  string
	kind  string // of a near-miss, trivial, paraphrase, mined
}

// rowsOf makes the pairs of groups: all that are the same, and every near-miss
// with all that it is not.
func rowsOf(groups []group) []row {
	var rows []row
	for i, g := range groups {
		for k, a := range g.same {
			for _, b := range g.same[k+1:] {
				kind := "paraphrase"
				if k == 0 && b.tag == "trivial" {
					kind = "trivial"
				}
				rows = append(rows, row{a.text, b.text, 1, i, g.held, g.lang, kind})
			}
			for _, b := range g.near {
				kind := b.tag
				if kind == "" {
					kind = "other"
				}
				rows = append(rows, row{a.text, b.text, 0, i, g.held, g.lang, kind})
			}
		}
	}
	return rows
}
