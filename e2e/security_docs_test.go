// docs/security.md is true as far as names go: every test that it names exists.

package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestSecurityPageNamesTests(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err = filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == ".cache" || entry.Name() == ".git" || entry.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(path)
		for _, m := range function.FindAllSubmatch(source, -1) {
			there[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test\\w+)`").FindAllSubmatch(page, -1)
	if len(named) == 0 {
		t.Error("docs/security.md names no test")
	}
	for _, m := range named {
		if !there[string(m[1])] {
			t.Errorf("docs/security.md names %s, which is no test", m[1])
		}
	}
}
