// Problems: everything wrong with the configuration at once, each with its place.

package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A place is where a value comes from: file:line:column, or the name of an
// environment variable or a flag.
type place struct {
	layer     int    // files come before variables, those before flags
	source    string // "config.yaml", "KVASIR_LOG_LEVEL", "--set log.level"
	line, col int    // 0 outside files
	written   string // what stands there, if a variable is part of it; else ""
}

const (
	layerFile = iota
	layerVariable
	layerFlag
)

func (p place) String() string {
	if p.line == 0 {
		return p.source
	}
	return fmt.Sprintf("%s:%d:%d", p.source, p.line, p.col)
}

// A problem is one thing that is wrong, and what to do about it.
type problem struct {
	at   place
	path string // "server.listen"; "" for the file itself
	text string
	kept bool // the value at path was used all the same
}

func (p problem) String() string {
	s := p.text
	if p.path != "" {
		s = p.path + ": " + s
	}
	if at := p.at.String(); at != "" {
		s = at + ": " + s
	}
	return s
}

// Problems is the error of a configuration that cannot be used.
type Problems []problem

// maxProblems bounds what one bad file can print.
const maxProblems = 100

// Error has one line for each problem, in the order of the places.
func (ps Problems) Error() string {
	var b strings.Builder
	for i, p := range ps.sorted() {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == maxProblems {
			fmt.Fprintf(&b, "and %d more", len(ps)-maxProblems)
			break
		}
		b.WriteString(p.String())
	}
	return b.String()
}

func (ps Problems) sorted() Problems {
	s := slices.Clone(ps)
	slices.SortStableFunc(s, func(a, b problem) int {
		return cmp.Or(
			cmp.Compare(a.at.layer, b.at.layer),
			cmp.Compare(a.at.line, b.at.line),
			cmp.Compare(a.at.col, b.at.col),
			cmp.Compare(a.at.source, b.at.source),
		)
	})
	return s
}

// places remembers where each value came from, by path with indices:
// "workers[0].url".
type places map[string]place

// of is the place of the first path that somebody set; for one that nobody
// set, the nearest group or list element above the first path.
func (pl places) of(paths ...string) place {
	for _, path := range paths {
		if p, ok := pl[path]; ok {
			return p
		}
	}
	for path := paths[0]; path != ""; {
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
		if p, ok := pl[path]; ok {
			return p
		}
	}
	return pl[""]
}

// drop forgets a path and everything under it, when a later layer replaces it.
func (pl places) drop(path string) {
	for p := range pl {
		if p == path || strings.HasPrefix(p, path+".") || strings.HasPrefix(p, path+"[") {
			delete(pl, p)
		}
	}
}

// A conflict is a problem that shows only when several keys are seen
// together; validate finds it, and places say where it stands.
type conflict struct {
	paths []string // the keys it is about, the one to name first
	text  string
	first string // the path that was there before, named after the text; or ""
}

// with adds conflicts, except those that are mere consequences of a problem known
// before: one with the same key, or with a key above or below it.
func (ps Problems) with(conflicts []conflict, at places) Problems {
	known := len(ps)
	for _, c := range conflicts {
		if slices.ContainsFunc(ps[:known], func(p problem) bool {
			return !p.kept && slices.ContainsFunc(c.paths, func(path string) bool { return within(path, p.path) || within(p.path, path) })
		}) {
			continue
		}
		text := c.text
		if c.first != "" {
			text += ", first at " + at.of(c.first).String()
		}
		ps = append(ps, problem{at: at.of(c.paths...), path: c.paths[0], text: text})
	}
	return ps
}

// within says whether path is above or stands under it. A problem of the
// whole file is above everything.
func within(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && (above == "" || rest == "" || rest[0] == '.' || rest[0] == '[')
}
