// Tests of pictures: the whole as SVG, scales, values as text.

package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
)

// TestSVG draws lines with a gap and bars by their logarithm, and wants all of it to be there.
func TestSVG(t *testing.T) {
	t.Parallel()
	c := Chart{
		Title: "a < b & c", Note: "made up", Series: []string{"one", "two"},
		Panels: []Panel{
			{Title: "lines", X: "seconds", Lines: []Line{{0, []Point{{0, 1}, {1, math.NaN()}, {2, 3}, {3, 2}}}, {1, []Point{{0, 0}, {3, 4}}}}},
			{Title: "bars", Log: true, Unit: " ms", Groups: []Group{{"first", []Bar{{0, 10}, {1, 1000}}}, {"second", []Bar{{0, 0}, {1, 100}}}}},
		},
	}
	svg := string(c.SVG())
	if again := string(c.SVG()); again != svg {
		t.Error("drawn twice it is not the same")
	}
	counts := map[string]int{}
	var texts []string
	for d, in := xml.NewDecoder(strings.NewReader(svg)), ""; ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			in = token.Name.Local
			counts[in]++
		case xml.EndElement:
			in = ""
		case xml.CharData:
			if in == "text" {
				texts = append(texts, string(token))
			}
		}
	}
	// The ground, two of the legend, and three bars: 0 has no logarithm.
	if counts["rect"] != 6 || counts["path"] != 2 {
		t.Errorf("there are %v", counts)
	}
	for _, want := range []string{"a < b & c", "made up", "one", "two", "lines", "seconds", "bars", "first", "second", "10 ms", "1,000 ms", "100 ms"} {
		if !slices.Contains(texts, want) {
			t.Errorf("%q is not in %q", want, texts)
		}
	}
	// A gap begins anew; the first value lies at a quarter of 0 to 4, the last at a half.
	if want := `d="M70 `; strings.Count(svg, want) != 2 || !strings.Contains(svg, "M580.7 ") || strings.Contains(svg, "NaN") {
		t.Errorf("the lines are not as they should be:\n%s", svg)
	}
}

func TestScale(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		log    bool
		values []float64
		ticks  []float64
		half   float64 // the value in the middle
	}{
		{false, []float64{3, 4}, []float64{0, 1, 2, 3, 4}, 2},
		{false, []float64{0, 950}, []float64{0, 200, 400, 600, 800}, 475},
		{false, []float64{-1, 1}, []float64{-1, -0.5, 0, 0.5, 1}, 0},
		{false, []float64{0}, []float64{0, 0.2, 0.4, 0.6000000000000001, 0.8, 1}, 0.5},
		{true, []float64{20, 700}, []float64{10, 100, 1000}, 100},
		{true, []float64{100}, []float64{100, 1000}, math.Sqrt(1e5)},
		{true, []float64{0, -5, math.NaN(), math.Inf(1)}, []float64{1, 10}, math.Sqrt(10)},
	} {
		s := scaleOf(c.log, func(yield func(float64)) {
			for _, v := range c.values {
				yield(v)
			}
		})
		at, ok := s.at(c.half)
		if !slices.Equal(s.ticks(), c.ticks) || !ok || math.Abs(at-0.5) > 1e-9 {
			t.Errorf("%v: ticks %v, and %v lies at %v", c.values, s.ticks(), c.half, at)
		}
	}
}

func TestValue(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0", 0.65: "0.65", 22.4: "22.4", 99.96: "100", 417: "417", 1234567: "1,234,567", -1234: "-1,234", 0.30000000000000004: "0.3"} {
		if got := value(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}
