// The picture as a whole: its title, what its colours mean, and its panels, one above the other.

// Package chart draws lines and bars as an SVG that can be read on light and dark ground, without a library: gonum/plot
// would add 8 MB to a binary, most of it fonts and formats that nobody asked for.
//
//	c := chart.Chart{Title: "Load", Panels: []chart.Panel{{Title: "requests under way", X: "s", Lines: lines}}}
//	os.WriteFile("load.svg", c.SVG(), 0o644)
//
// Equal charts are equal bytes.
package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// A Chart is one picture.
type Chart struct {
	Title  string
	Note   string   // below it: where the figures are from
	Series []string // what the colours mean, in order; lines and bars name them by their place
	Panels []Panel
}

// A Panel has lines over X, or groups of bars.
type Panel struct {
	Title  string
	X      string // below the axis of lines
	Log    bool   // values by their logarithm; then all are above 0
	Unit   string // behind a bar's value
	Lines  []Line
	Groups []Group
}

// A Line goes through its points, in the order of X.
type Line struct {
	Series int
	Points []Point
}

// A Point is one place of a line. A Y that is no number leaves a gap.
type Point struct{ X, Y float64 }

// A Group is a label and its bars, one below the other.
type Group struct {
	Label string
	Bars  []Bar
}

// A Bar is one value; one that is no number is left out.
type Bar struct {
	Series int
	Value  float64
}

// In pixels.
const (
	width  = 860
	margin = 24
	left   = 190 // of the plane that bars are drawn in
	axis   = 70  // of that of lines
	right  = 90  // room for values behind bars
)

// colours are those of the series on light and dark ground; the eighth series has the first one again.
var colours = [...][2]string{
	{"#1f6fb5", "#6db3f2"}, {"#c05621", "#f0985d"}, {"#2f855a", "#6fcf97"}, {"#805ad5", "#b794f4"},
	{"#b83280", "#f687b3"}, {"#4a5568", "#a0aec0"}, {"#975a16", "#ecc94b"},
}

// SVG draws the chart.
func (c *Chart) SVG() []byte {
	var body bytes.Buffer
	y := 40.0
	y = c.legend(&body, y)
	for i := range c.Panels {
		p := &c.Panels[i]
		text(&body, margin, y+14, "h", p.Title)
		y += 26
		if len(p.Groups) > 0 {
			y = p.bars(&body, y)
		} else {
			y = p.lines(&body, y)
		}
		y += 18
	}
	if c.Note != "" {
		text(&body, margin, y, "s", c.Note)
		y += 14
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" width=\"%d\" height=\"%.0f\" role=\"img\">\n<title>%s</title>\n", width, y+6, width, y+6, escape(c.Title))
	b.WriteString(style())
	fmt.Fprintf(&b, "<rect x=\"0.5\" y=\"0.5\" width=\"%d\" height=\"%.0f\" rx=\"8\" class=\"g\"/>\n", width-1, y+5)
	text(&b, margin, 28, "t", c.Title)
	b.Write(body.Bytes())
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// style has the colours twice, for both grounds.
func style() string {
	var b bytes.Buffer
	light, dark := "--ground:#fff;--ink:#1d2733;--soft:#5a6878;--grid:#dde3ea", "--ground:#0f151c;--ink:#e4e9ef;--soft:#a3b0be;--grid:#2b3641"
	for i, c := range colours {
		light += fmt.Sprintf(";--c%d:%s", i, c[0])
		dark += fmt.Sprintf(";--c%d:%s", i, c[1])
	}
	fmt.Fprintf(&b, "<style>\nsvg{%s}\n@media (prefers-color-scheme:dark){svg{%s}}\n", light, dark)
	b.WriteString("text{font:12.5px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:var(--ink)}\n" +
		".t{font-size:16px;font-weight:600}.h{font-size:13.5px;font-weight:600}.s{fill:var(--soft);font-size:11.5px}.e{text-anchor:end}.m{text-anchor:middle}\n" +
		".g{fill:var(--ground);stroke:var(--grid)}.l{stroke:var(--grid)}path{fill:none;stroke-width:1.8;stroke-linejoin:round}\n")
	for i := range colours {
		fmt.Fprintf(&b, ".f%d{fill:var(--c%d)}.p%d{stroke:var(--c%d)}\n", i, i, i, i)
	}
	b.WriteString("</style>\n")
	return b.String()
}

// legend names the series, in as many rows as it takes.
func (c *Chart) legend(b *bytes.Buffer, y float64) float64 {
	if len(c.Series) == 0 {
		return y
	}
	x := float64(margin)
	for i, name := range c.Series {
		long := 32 + 7.2*float64(utf8.RuneCountInString(name))
		if x+long > width-margin && i > 0 {
			x, y = margin, y+20
		}
		fmt.Fprintf(b, "<rect x=\"%s\" y=\"%s\" width=\"12\" height=\"12\" rx=\"2\" class=\"f%d\"/>", number(x), number(y+4), i%len(colours))
		text(b, x+18, y+14, "", name)
		x += long
	}
	return y + 30
}

func text(b *bytes.Buffer, x, y float64, class, s string) {
	if class != "" {
		class = " class=\"" + class + "\""
	}
	fmt.Fprintf(b, "<text x=\"%s\" y=\"%s\"%s>%s</text>\n", number(x), number(y), class, escape(s))
}

func escape(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // to a buffer
	return b.String()
}

// number is a place in the picture, to a tenth of a pixel.
func number(x float64) string {
	return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64)
}

// value is a figure as people write it: three digits that count, 12,345 for many.
func value(v float64) string {
	if v != 0 && math.Abs(v) < 100 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	s := strconv.FormatFloat(math.Round(v), 'f', -1, 64)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
