// The pictures of the docs show the page as it is: each is taken again and compared, and so is a page that is broken.

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestPageLooksLikeItsPictures: every view looks as its picture in docs/pictures, taken of the same Kvasir by the same
// script; and a page without its stylesheet, in the other colours, with an empty chart or without a panel does not.
func TestPageLooksLikeItsPictures(t *testing.T) {
	t.Parallel()
	part(t, "chromium")
	dir := t.TempDir()
	inChromium(t, "../scripts/page/looks.mjs", []string{dir}, "KVASIR_BIN="+binary(t))
	compareLooks(t, dir)
}

// comparedDown is the line of a picture below which it is not compared: there bars are as long as prices are.
var comparedDown = map[string]int{"request": 880}

func compareLooks(t *testing.T, dir string) {
	t.Helper()
	pictures, err := filepath.Glob("../docs/pictures/page-*.png")
	must(t, err)
	if len(pictures) < 8 {
		t.Fatalf("there are only the pictures %v", pictures)
	}
	for _, picture := range pictures {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(picture), "page-"), ".png")
		down := comparedDown[name]
		want := see(t, picture, down)
		if why := unlike(want, see(t, filepath.Join(dir, name+".png"), down)); why != "" {
			t.Errorf("%s looks otherwise than docs/pictures/page-%s.png: %s. If it should, `make pictures`", name, name, why)
		}
		broken, err := filepath.Glob(filepath.Join(dir, name+", *.png"))
		must(t, err)
		if len(broken) == 0 {
			t.Errorf("no picture was taken of %s when it is broken", name)
		}
		for _, file := range broken {
			why := unlike(want, see(t, file, down))
			if why == "" {
				t.Errorf("%s looks like its picture", strings.TrimSuffix(filepath.Base(file), ".png"))
			}
		}
	}
}
