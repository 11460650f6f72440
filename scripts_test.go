// What scripts say of the code.

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// scripts/test.sh runs some packages without the race detector. They start no goroutine.
func TestPackagesWithoutRaces(t *testing.T) {
	script, err := os.ReadFile("scripts/test.sh")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?m)^alone='kvasir/\((.*)\)'$`).FindSubmatch(script)
	if list == nil {
		t.Fatal("scripts/test.sh has no list of packages")
	}
	for _, dir := range strings.Split(string(list[1]), "|") {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no files: %v", dir, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if _, starts := n.(*ast.GoStmt); starts {
					t.Errorf("%s starts a goroutine: take %s out of the list in scripts/test.sh", file, dir)
				}
				return true
			})
		}
	}
}
