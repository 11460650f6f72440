// A panel: bars from the left, or lines over an axis, with the grid that values are read by.

package chart

import (
	"bytes"
	"fmt"
	"math"
)

// A scale says where on the axis a value lies, from 0 to 1.
type scale struct {
	low, high float64
	log       bool
}

// scaleOf takes in all values, and 0 where they are not told by their logarithm.
func scaleOf(log bool, values func(yield func(float64))) scale {
	s := scale{low: math.Inf(1), high: math.Inf(-1), log: log}
	values(func(v float64) {
		if math.IsNaN(v) || math.IsInf(v, 0) || log && v <= 0 {
			return
		}
		s.low, s.high = min(s.low, v), max(s.high, v)
	})
	switch {
	case s.low > s.high: // no value at all
		s.low, s.high = 1, 10
	case log:
		s.low, s.high = math.Pow(10, math.Floor(math.Log10(s.low))), math.Pow(10, math.Ceil(math.Log10(s.high)))
		if s.low == s.high {
			s.high *= 10
		}
	default:
		s.low, s.high = min(0, s.low), max(0, s.high)
		if s.low == s.high {
			s.high = 1
		}
	}
	return s
}

// at is the place of a value; ok: it can be shown.
func (s scale) at(v float64) (place float64, ok bool) {
	if math.IsNaN(v) || math.IsInf(v, 0) || s.log && v <= 0 {
		return 0, false
	}
	if s.log {
		return (math.Log10(v) - math.Log10(s.low)) / (math.Log10(s.high) - math.Log10(s.low)), true
	}
	return (v - s.low) / (s.high - s.low), true
}

// ticks are the values of the grid: powers of ten, or some five round ones.
func (s scale) ticks() []float64 {
	var found []float64
	if s.log {
		for e := math.Round(math.Log10(s.low)); e <= math.Round(math.Log10(s.high)); e++ {
			found = append(found, math.Pow(10, e))
		}
		return found
	}
	step := math.Pow(10, math.Floor(math.Log10((s.high-s.low)/4)))
	for _, times := range []float64{1, 2, 5, 10} {
		if (s.high-s.low)/(step*times) <= 6 {
			step *= times
			break
		}
	}
	for i := math.Ceil(s.low / step); i*step <= s.high*(1+1e-9); i++ {
		found = append(found, i*step)
	}
	return found
}

// bars draws the groups from y on and returns where they end.
func (p *Panel) bars(b *bytes.Buffer, y float64) float64 {
	const thick, gap, between = 11, 2, 9
	s := scaleOf(p.Log, func(yield func(float64)) {
		for _, g := range p.Groups {
			for _, bar := range g.Bars {
				yield(bar.Value)
			}
		}
	})
	bottom := y
	for _, g := range p.Groups {
		bottom += float64(len(g.Bars)*(thick+gap) + between)
	}
	plane := float64(width - left - right)
	for _, tick := range s.ticks() {
		at, _ := s.at(tick)
		x := left + at*plane
		fmt.Fprintf(b, "<line x1=\"%s\" x2=\"%s\" y1=\"%s\" y2=\"%s\" class=\"l\"/>", number(x), number(x), number(y), number(bottom))
		text(b, x, bottom+14, "s m", value(tick))
	}
	for _, g := range p.Groups {
		high := float64(len(g.Bars) * (thick + gap))
		text(b, left-10, y+high/2+4, "e", g.Label)
		for i, bar := range g.Bars {
			at, ok := s.at(bar.Value)
			if !ok {
				continue
			}
			top := y + float64(i*(thick+gap))
			fmt.Fprintf(b, "<rect x=\"%d\" y=\"%s\" width=\"%s\" height=\"%d\" class=\"f%d\"/>", left, number(top), number(max(at*plane, 1)), thick, bar.Series%len(colours))
			text(b, left+at*plane+6, top+thick-1.5, "s", value(bar.Value)+p.Unit)
		}
		y += high + between
	}
	return bottom + 18
}

// lines draws the lines from y on and returns where the panel ends.
func (p *Panel) lines(b *bytes.Buffer, y float64) float64 {
	const high = 150
	plane := float64(width - axis - margin)
	vertical := scaleOf(p.Log, func(yield func(float64)) { p.each(func(at Point) { yield(at.Y) }) })
	horizontal := scaleOf(false, func(yield func(float64)) { p.each(func(at Point) { yield(at.X) }) })
	for _, tick := range vertical.ticks() {
		at, _ := vertical.at(tick)
		ty := y + high*(1-at)
		fmt.Fprintf(b, "<line x1=\"%d\" x2=\"%s\" y1=\"%s\" y2=\"%s\" class=\"l\"/>", axis, number(axis+plane), number(ty), number(ty))
		text(b, axis-8, ty+4, "s e", value(tick))
	}
	for _, tick := range horizontal.ticks() {
		at, _ := horizontal.at(tick)
		text(b, axis+at*plane, y+high+15, "s m", value(tick))
	}
	text(b, axis+plane, y+high+30, "s e", p.X)
	for _, line := range p.Lines {
		fmt.Fprintf(b, "<path class=\"p%d\" d=\"", line.Series%len(colours))
		move := "M"
		for _, point := range line.Points {
			px, _ := horizontal.at(point.X)
			py, ok := vertical.at(point.Y)
			if !ok {
				move = "M"
				continue
			}
			fmt.Fprintf(b, "%s%s %s", move, number(axis+px*plane), number(y+high*(1-py)))
			move = "L"
		}
		b.WriteString("\"/>\n")
	}
	return y + high + 34
}

func (p *Panel) each(yield func(Point)) {
	for _, line := range p.Lines {
		for _, point := range line.Points {
			yield(point)
		}
	}
}
