// Tests that the pages are true of the tree: paths that they name exist, and imports run down as the picture says.

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	inline  = regexp.MustCompile("`([^`\n]+)`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fence   = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```")
	goFile  = regexp.MustCompile(`[\w./-]+\.go\b`)
	goRun   = regexp.MustCompile(`go (?:test|run)\b[^\n]*`)
	ofGo    = regexp.MustCompile(`\s\./([\w/]+)`)
	path    = regexp.MustCompile(`^[\w./-]+$`)
	outside = regexp.MustCompile(`^(https?:|mailto:|#)`)
)

// TestPagesNamePaths wants every path of the repository that a page names, in
// backticks, in a link, in a picture or for go test, to exist. A path begins at
// the root, a link at its page.
func TestPagesNamePaths(t *testing.T) {
	t.Parallel()
	pages := pagesOfDocs(t)
	for _, page := range append(pages, "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md") {
		text := read(t, page)
		var named []string
		for _, block := range fence.FindAllStringSubmatch(text, -1) {
			if block[1] == "" {
				named = append(named, goFile.FindAllString(block[2], -1)...)
			}
		}
		for _, m := range inline.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			if ofTheTree(m[1]) {
				named = append(named, m[1])
			}
		}
		for _, line := range goRun.FindAllString(text, -1) {
			for _, m := range ofGo.FindAllStringSubmatch(line, -1) {
				named = append(named, m[1])
			}
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if to, _, _ := strings.Cut(m[1], "#"); !outside.MatchString(m[1]) {
				named = append(named, filepath.Join(filepath.Dir(page), to))
			}
		}
		for _, name := range named {
			if _, err := os.Stat(name); err != nil {
				t.Errorf("%s names %s, which is not there", page, name)
			}
		}
	}
}

// pagesOfDocs are the pages for users and, in docs/lab, the notes for developers.
func pagesOfDocs(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("docs/*.md")
	do(t, err)
	notes, err := filepath.Glob("docs/lab/*.md")
	do(t, err)
	if len(pages) < 10 || len(notes) < 3 {
		t.Fatalf("the pages are %v and %v", pages, notes)
	}
	return append(pages, notes...)
}

// TestPagesNameHeadings wants the heading that a link of a page leads to.
func TestPagesNameHeadings(t *testing.T) {
	t.Parallel()
	pages := pagesOfDocs(t)
	for _, page := range append(pages, "README.md", "CONTRIBUTING.md") {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(read(t, page), ""), -1) {
			to, heading, some := strings.Cut(m[1], "#")
			if !some || strings.Contains(to, ":") {
				continue
			}
			if to == "" {
				to = filepath.Base(page)
			}
			to = filepath.Join(filepath.Dir(page), to)
			if filepath.Ext(to) == ".md" && !headings(read(t, to))[heading] {
				t.Errorf("%s leads to #%s of %s, which has no such heading", page, heading, to)
			}
		}
	}
}

var notOfHeadings = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// headings are those of a page as links name them.
func headings(text string) map[string]bool {
	found := map[string]bool{}
	for line := range strings.Lines(fence.ReplaceAllString(text, "")) {
		if bare := strings.TrimLeft(line, "#"); bare != line && strings.HasPrefix(bare, " ") {
			name := notOfHeadings.ReplaceAllString(strings.ToLower(strings.TrimSpace(bare)), "")
			found[strings.ReplaceAll(name, " ", "-")] = true
		}
	}
	return found
}

// ofTheTree says whether what stands in backticks is a path of the repository:
// a file of Go, the shell or Python, or what begins with a folder of the root.
// What scripts install below .cache is there or not.
func ofTheTree(text string) bool {
	first, _, deeper := strings.Cut(text, "/")
	if !path.MatchString(text) || first == ".cache" {
		return false
	}
	switch filepath.Ext(text) {
	case ".go", ".sh":
		return true
	case ".py":
		return deeper
	}
	info, err := os.Stat(first)
	return deeper && first != "" && err == nil && info.IsDir()
}

// TestImportsRunDown wants each package to stand in one row of the picture in
// docs/architecture.md, and to import from rows below its own alone. Commands
// for developers, under scripts, stand above all.
func TestImportsRunDown(t *testing.T) {
	t.Parallel()
	_, picture, ok := strings.Cut(read(t, "docs/architecture.md"), "<!-- imports run down; checked by TestImportsRunDown -->\n```\n")
	picture, _, ok2 := strings.Cut(picture, "```")
	if !ok || !ok2 {
		t.Fatal("docs/architecture.md lacks its picture of the imports")
	}
	row := map[string]int{}
	for i, line := range strings.Split(picture, "\n") {
		line, _, _ = strings.Cut(line, "   # ")
		for _, name := range strings.Fields(line) {
			if name == "main" {
				name = "."
			}
			if row[name] != 0 {
				t.Errorf("%s stands in two rows", name)
			}
			row[name] = i + 1
		}
	}
	list, err := exec.Command("go", "list", "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(list)) {
		imports := strings.Fields(line)
		for i, name := range imports {
			imports[i] = strings.TrimPrefix(strings.TrimPrefix(name, "kvasir/"), "kvasir")
			if name == "kvasir" {
				imports[i] = "."
			}
		}
		name := imports[0]
		known[name] = true
		if strings.HasPrefix(name, "scripts/") {
			continue
		}
		if row[name] == 0 {
			t.Errorf("%s stands in no row", name)
		}
		for _, other := range imports[1:] {
			if row[other] != 0 && row[other] <= row[name] {
				t.Errorf("%s imports %s, which does not stand below it", name, other)
			}
		}
	}
	for name := range row {
		if !known[name] {
			t.Errorf("%s stands in the picture and is no package", name)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
