// Two pictures of the page, compared loosely: as people see at a glance that both show the same, whatever the numbers are.

package e2e

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"testing"
)

// A picture is looked at in cells. What stands in one may stand a little elsewhere in the other picture: numbers have
// other digits, bars other lengths, and lines of charts other heights.
const (
	cellSize = 20 // pixels

	contrast = 50 // of 255, from the paper: writing
	vivid    = 60 // of 255, between the strongest and the weakest of red, green and blue: colour
	fewest   = 3  // pixels of a cell that make it count

	mostPaper  = 12   // of 255, between the papers of two pictures
	mostInk    = 0.15 // of the cells with writing, those without counterpart
	mostColour = 0.35 // of the cells with colour, likewise

	// A part of the picture may not be another one: of its cells with something in them, partMost may have no
	// counterpart, if these are partLeast or more. Fewer are a word or a number.
	partWide, partHigh = 12, 6
	partLeast          = 15
	partMost           = 0.75
)

// A sheet is what is seen of a picture, by cells, row after row.
type sheet struct {
	size         image.Point // in pixels
	wide, high   int         // in cells
	paper        int         // the grey that most of it has, 0 to 255
	ink, colours []bool
}

// see reads a picture down to some line; 0: all of it.
func see(t *testing.T, path string, down int) *sheet {
	t.Helper()
	return sheetOf(decoded(t, path), down)
}

func decoded(t *testing.T, path string) *image.RGBA {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	img, err := png.Decode(f)
	must(t, err)
	pixels := image.NewRGBA(image.Rect(0, 0, img.Bounds().Dx(), img.Bounds().Dy()))
	draw.Draw(pixels, pixels.Bounds(), img, img.Bounds().Min, draw.Src)
	return pixels
}

func sheetOf(img *image.RGBA, down int) *sheet {
	size := img.Bounds().Size()
	if down > 0 {
		size.Y = down
	}
	s := &sheet{size: size, wide: (size.X + cellSize - 1) / cellSize, high: (size.Y + cellSize - 1) / cellSize}
	var shades [256]int
	for y := range size.Y {
		for x := range size.X {
			shades[grey(img.RGBAAt(x, y))]++
		}
	}
	for shade, n := range shades {
		if n > shades[s.paper] {
			s.paper = shade
		}
	}
	ink, colours := make([]int, s.wide*s.high), make([]int, s.wide*s.high)
	for y := range size.Y {
		for x := range size.X {
			c, at := img.RGBAAt(x, y), y/cellSize*s.wide+x/cellSize
			if max(c.R, c.G, c.B)-min(c.R, c.G, c.B) > vivid {
				colours[at]++
			} else if d := grey(c) - s.paper; d > contrast || d < -contrast {
				ink[at]++
			}
		}
	}
	for at := range ink {
		s.ink, s.colours = append(s.ink, ink[at] >= fewest), append(s.colours, colours[at] >= fewest)
	}
	return s
}

func grey(c color.RGBA) int { return (299*int(c.R) + 587*int(c.G) + 114*int(c.B)) / 1000 }

// unlike says what tells two pictures apart; "": they show the same.
func unlike(want, got *sheet) string {
	if want.size != got.size {
		return fmt.Sprintf("it is %v, the other one %v", got.size, want.size)
	}
	if d := want.paper - got.paper; d > mostPaper || d < -mostPaper {
		return fmt.Sprintf("its paper is of grey %d, that of the other one %d", got.paper, want.paper)
	}
	for _, look := range []struct {
		what      string
		want, got []bool
		dx, dy    int // cells to each side in which the counterpart may be; charts are four cells high
		most      float64
	}{
		{"writing", want.ink, got.ink, 1, 1, mostInk},
		{"colour", want.colours, got.colours, 2, 4, mostColour},
	} {
		missing, more := want.without(look.want, look.got, look.dx, look.dy), want.without(look.got, look.want, look.dx, look.dy)
		if at, n := want.differs(look.want, missing); n > 0 {
			return fmt.Sprintf("%s is missing at %v: %d cells of a part", look.what, at, n)
		}
		if at, n := want.differs(look.got, more); n > 0 {
			return fmt.Sprintf("%s is too much at %v: %d cells of a part", look.what, at, n)
		}
		if all, none := number(look.want)+number(look.got), number(missing)+number(more); float64(none) > look.most*float64(all) {
			return fmt.Sprintf("of %d cells with %s, %d have no counterpart", all, look.what, none)
		}
	}
	return ""
}

// without are the cells of a that have no counterpart in b.
func (s *sheet) without(a, b []bool, dx, dy int) []bool {
	out := make([]bool, len(a))
	for at, there := range a {
		if !there {
			continue
		}
		out[at] = true
		for y := max(at/s.wide-dy, 0); y <= min(at/s.wide+dy, s.high-1); y++ {
			for x := max(at%s.wide-dx, 0); x <= min(at%s.wide+dx, s.wide-1); x++ {
				if b[y*s.wide+x] {
					out[at] = false
				}
			}
		}
	}
	return out
}

// differs is the place in pixels of a part in which most of what is there has no counterpart, and how many cells that are;
// 0: there is no such part.
func (s *sheet) differs(there, without []bool) (at image.Point, cells int) {
	for y := 0; y < s.high; y += partHigh / 2 {
		for x := 0; x < s.wide; x += partWide / 2 {
			all, none := 0, 0
			for row := y; row < min(y+partHigh, s.high); row++ {
				line := row*s.wide + x
				end := row*s.wide + min(x+partWide, s.wide)
				all, none = all+number(there[line:end]), none+number(without[line:end])
			}
			if none >= partLeast && float64(none) >= partMost*float64(all) && none > cells {
				at, cells = image.Pt(x*cellSize, y*cellSize), none
			}
		}
	}
	return at, cells
}

func number(cells []bool) (n int) {
	for _, there := range cells {
		if there {
			n++
		}
	}
	return n
}

// TestUnlike: pictures of the docs, changed as a page may change and as it may not.
func TestUnlike(t *testing.T) {
	const overview = "../docs/pictures/page-overview.png"
	want := sheetOf(decoded(t, overview), 0)
	paint := func(r image.Rectangle, how func(color.RGBA) color.RGBA) func(*image.RGBA) {
		return func(img *image.RGBA) {
			for y := r.Min.Y; y < r.Max.Y; y++ {
				for x := r.Min.X; x < r.Max.X; x++ {
					img.SetRGBA(x, y, how(img.RGBAAt(x, y)))
				}
			}
		}
	}
	blank := func(color.RGBA) color.RGBA { return color.RGBA{0x16, 0x1b, 0x22, 255} }
	all := image.Rectangle{Max: want.size}
	tokens, tile := image.Rect(440, 570, 820, 650), image.Rect(330, 150, 460, 185)
	for name, tc := range map[string]struct {
		change func(*image.RGBA)
		alike  bool
	}{
		"nothing":                   {func(*image.RGBA) {}, true},
		"a number is gone":          {paint(tile, blank), true},
		"lines are a little higher": {func(img *image.RGBA) { draw.Draw(img, tokens.Sub(image.Pt(0, 16)), img, tokens.Min, draw.Src) }, true},
		"all is a little lower":     {func(img *image.RGBA) { draw.Draw(img, all.Add(image.Pt(0, 9)), img, image.Point{}, draw.Src) }, true},
		"all is much lower":         {func(img *image.RGBA) { draw.Draw(img, all.Add(image.Pt(0, 90)), img, image.Point{}, draw.Src) }, false},
		"a chart is empty":          {paint(tokens, blank), false},
		"a panel is gone":           {paint(image.Rect(0, 690, 1280, 940), blank), false},
		"colours are turned":        {paint(all, func(c color.RGBA) color.RGBA { return color.RGBA{255 - c.R, 255 - c.G, 255 - c.B, 255} }), false},
		"all is grey":               {paint(all, func(c color.RGBA) color.RGBA { g := uint8(grey(c)); return color.RGBA{g, g, g, 255} }), false},
	} {
		img := decoded(t, overview)
		tc.change(img)
		if why := unlike(want, sheetOf(img, 0)); (why == "") != tc.alike {
			t.Errorf("%s: it is %q", name, why)
		}
	}
	if unlike(want, sheetOf(decoded(t, "../docs/pictures/page-workers.png"), 0)) == "" {
		t.Error("the overview looks like the workers")
	}
}
