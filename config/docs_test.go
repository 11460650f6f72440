// Tests that the documents are true: docs/configuration.md is made from the known keys, examples are good files.

package config

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kvasir/classify"
)

// TestConfigurationPage keeps the tables of docs/configuration.md equal to the
// known keys and to what config.yaml says of them; -update rewrites them.
func TestConfigurationPage(t *testing.T) {
	t.Parallel()
	const file, begin, end = "../docs/configuration.md", "<!-- made by: go test ./config -run TestConfigurationPage -update -->\n", "<!-- end -->\n"
	page := readPage(t, file)
	head, rest, ok := strings.Cut(page, begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lacks its marks", file)
	}
	want := head + begin + configurationTables(comments(t)) + end + tail
	if *update {
		do(t, os.WriteFile(file, []byte(want), 0o644))
	} else if page != want {
		t.Errorf("%s is not what the known keys make; run: go test ./config -run TestConfigurationPage -update", file)
	}
	knownKeys.all(func(k *Key) {
		if k.Kind != KindGroup && (k.Elem == nil || k.Elem.Kind != KindGroup) && !strings.Contains(want, "| `"+k.path+"` |") && !strings.HasSuffix(k.path, "[]") {
			t.Errorf("%s is not in %s", k.path, file)
		}
	})
}

// configurationTables has one table for each section.
func configurationTables(descriptions map[string]string) string {
	var b strings.Builder
	for _, section := range knownKeys.Children {
		rows := ""
		section.all(func(k *Key) {
			if k.Name != "" && k.Kind != KindGroup && (k.Elem == nil || k.Elem.Kind != KindGroup) {
				rows += fmt.Sprintf("| `%s` | %s | %s | %s |\n", k.path, code(byDefault(k)), valuesOf(k), meaning(k, descriptions))
			}
		})
		if rows != "" {
			note := ""
			if section.restart {
				note = "A change of any of these waits for a restart.\n\n"
			}
			fmt.Fprintf(&b, "\n## %s\n\n%s| key | default | values | |\n|---|---|---|---|\n%s", section.Name, note, rows)
		}
	}
	b.WriteByte('\n')
	return b.String()
}

func byDefault(k *Key) string {
	switch {
	case k.value != nil && k.value != "":
		return Show(k.value)
	case k.Kind == KindList:
		return "[]"
	case k.Kind == KindMap:
		return "{}"
	case k.value == nil && k.Kind == KindBool:
		return "false"
	}
	return ""
}

// code is text as it would be written in a file, nothing for nothing.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

func valuesOf(k *Key) string {
	switch {
	case len(k.OneOf) > 0:
		return strings.Join(k.OneOf, ", ")
	case k.Kind == KindList:
		return "list of " + string(k.Elem.Kind) + "s"
	}
	text := string(k.Kind)
	switch {
	case k.min != nil && k.max != nil:
		text += ", " + Show(k.min) + " to " + Show(k.max)
	case k.min != nil:
		text += ", at least " + Show(k.min)
	}
	return text
}

var hotOrNot = regexp.MustCompile(`^\[(hot|restart)\] ?`)

// meaning is what config.yaml says behind the key, without the values and the
// mark that the other columns have.
func meaning(k *Key, descriptions map[string]string) string {
	text := hotOrNot.ReplaceAllString(descriptions[k.path], "")
	if text == "" && k.Kind == KindFloat { // bounds of measures, which config.yaml names together
		text = map[string]string{"min": "at least", "max": "at most; -1: no bound"}[k.Name]
	}
	if len(k.OneOf) > 0 {
		text = strings.TrimLeft(strings.TrimPrefix(text, strings.Join(k.OneOf, " | ")), ";: ")
	}
	if k.restart {
		text = "**restart**; " + text
	}
	return strings.TrimSuffix(strings.ReplaceAll(text, "|", "\\|"), "; ")
}

// TestExamples wants every YAML block of the pages to be a good file, but
// for the files that it names, and the key of docs/api.md to be what its command
// makes.
func TestExamples(t *testing.T) {
	t.Parallel()
	count := 0
	pages, err := filepath.Glob("../docs/*.md")
	do(t, err)
	for _, file := range append(pages, "../README.md") {
		// Values of the chart, which e2e renders; Prometheus' own configuration; and what TestSignalExamples loads.
		if base := filepath.Base(file); base == "kubernetes.md" || base == "tutorial-dashboard.md" || base == "signals.md" {
			continue
		}
		for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(readPage(t, file), -1) {
			if strings.HasPrefix(block[1], "services:") { // of Docker compose
				continue
			}
			count++
			l := &Layers{File: file, Environ: []string{"WORKER_KEY=x", "OTEL_TOKEN=x"}}
			text := block[1]
			if !regexp.MustCompile(`(?m)^(workers|simulate|discovery):`).MatchString(text) {
				text += "simulate: [{name: sim-0}]\n"
			}
			_, _, bad := l.merge([]byte(text))
			bad = slices.DeleteFunc(bad, func(p problem) bool { return strings.Contains(p.text, "config.json: no such file") })
			if len(bad) > 0 {
				t.Errorf("an example is refused: %v\n%s", bad, text)
			}
		}
	}
	if count < 25 {
		t.Errorf("only %d examples were found", count)
	}
	page := readPage(t, "../docs/api.md")
	secret := regexp.MustCompile(`printf %s "(.+)" \| sha256sum`).FindStringSubmatch(page)
	if secret == nil || !strings.Contains(page, fmt.Sprintf("sha256: %x\n", sha256.Sum256([]byte(secret[1])))) {
		t.Error("docs/api.md: the sha256 is not that of its key")
	}
}

// TestSignalExamples wants every YAML block of docs/signals.md to be a good file
// with a worker beside it, down to the names and what they refer to.
func TestSignalExamples(t *testing.T) {
	t.Parallel()
	page := readPage(t, "../docs/signals.md")
	for _, kind := range classify.Kinds() {
		if !strings.Contains(page, "\n| `"+string(kind)+"` |") || !strings.Contains(page, "\n### "+string(kind)+"\n") {
			t.Errorf("docs/signals.md has no row or no section of %s", kind)
		}
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(page, -1)
	for _, block := range blocks {
		file := filepath.Join(t.TempDir(), "kvasir.yaml")
		do(t, os.WriteFile(file, []byte(block[1]+"workers: [{url: http://127.0.0.1:1}]\n"), 0o644))
		if _, _, err := (&Layers{File: file}).Load(); err != nil {
			t.Errorf("an example is refused: %v\n%s", err, block[1])
		}
	}
	if len(blocks) < 11 {
		t.Errorf("only %d examples were found", len(blocks))
	}
}

func readPage(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	do(t, err)
	return string(text)
}
