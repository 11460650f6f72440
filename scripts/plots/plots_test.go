// Tests of the pictures of measured figures.

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPicturesAreCurrent: the pictures are those of the tables, and their pages show them.
func TestPicturesAreCurrent(t *testing.T) {
	t.Parallel()
	for _, p := range pictures {
		want, err := p.draw("../../docs")
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("../../docs/pictures", p.file))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what %s says: make plots", p.file, p.page)
		}
		page, err := os.ReadFile(filepath.Join("../../docs", p.page))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), "](pictures/"+p.file+")") {
			t.Errorf("%s does not show %s", p.page, p.file)
		}
	}
}

// TestFiguresThatChanged: a table that says something else makes another picture, and one that is not understood an error.
func TestFiguresThatChanged(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/routing.md")
	if err != nil {
		t.Fatal(err)
	}
	before, err := routing(string(page))
	if err != nil {
		t.Fatal(err)
	}
	after, err := routing(strings.Replace(string(page), "| 288 / 1878 |", "| 777 / 1878 |", 1))
	if err != nil || bytes.Equal(before, after) || !strings.Contains(string(after), ">777<") {
		t.Errorf("the picture does not follow the table: %v", err)
	}
	for _, bad := range []string{"", "\n| point |\n|---|\n", "\n| point | a |\n|---|---|\n| x | 1 |\n", strings.Replace(string(page), "| 288 / 1878 |", "| few |", 1)} {
		if _, err := routing(bad); err == nil {
			t.Errorf("no error for %.100q", bad)
		}
	}
	if _, err := performance("\n| what | Kvasir | at least |\n|---|---|---|\n| throughput | 1 x | 2 |\n"); err == nil || !strings.Contains(err.Error(), "the row") {
		t.Errorf("the error is %v", err)
	}
}
