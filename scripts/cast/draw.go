// The picture: each piece of text appears at its time and goes with its scene, by CSS alone.

package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// The screen, in characters and pixels.
const (
	columns    = 104
	lineHeight = 19
	width      = columns*84/10 + 2*margin // a character of 14 px is 8.4 wide in the usual fonts
	margin     = 18
	title      = 34
)

// A piece of text is on one line, from when it was printed until the screen is cleared.
type piece struct {
	line     int
	text     string
	from, to time.Duration
	remark   bool
	last     bool // of the last scene
}

// layout breaks what was printed into lines, as a terminal does.
func layout(scenes []scene) (pieces []piece, lines int, length time.Duration) {
	for i, s := range scenes {
		line, column := 0, 0
		for _, c := range s.chunks {
			for j, part := range strings.Split(c.text, "\n") {
				if j > 0 {
					line, column = line+1, 0
				}
				for part != "" {
					if column == columns {
						line, column = line+1, 0
					}
					head := part
					if room := columns - column; utf8.RuneCountInString(part) > room {
						head = string([]rune(part)[:room])
					}
					pieces = append(pieces, piece{
						line: line, text: head, from: length + c.at, to: length + s.length,
						remark: strings.HasPrefix(c.text, "# "), last: i == len(scenes)-1,
					})
					column += utf8.RuneCountInString(head)
					part = part[len(head):]
					lines = max(lines, line+1)
				}
			}
		}
		length += s.length
	}
	return pieces, lines, length
}

// draw writes the SVG. Who asks for less motion sees the last scene, standing.
func draw(scenes []scene) []byte {
	pieces, lines, length := layout(scenes)
	height := title + lines*lineHeight + margin
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="t">`+"\n",
		width, height, width, height)
	fmt.Fprint(&b, "<title id=\"t\">A terminal session with Kvasir, recorded by make cast</title>\n<style>\n"+
		"text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre;fill:#d7dde5}\n"+
		".r{fill:#7ee2b8}\ntspan{opacity:0}\n.e{opacity:1}\n")
	names := map[string]string{}
	for _, p := range pieces {
		if key := span(p, length); names[key] == "" {
			names[key] = fmt.Sprintf("k%d", len(names))
			fmt.Fprintf(&b, "@keyframes %s{%s}\n.%s{animation:%s %.1fs step-end infinite}\n", names[key], key, names[key], names[key], length.Seconds())
		}
	}
	fmt.Fprint(&b, "@media (prefers-reduced-motion:reduce){tspan{animation:none}}\n</style>\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" rx="9" fill="#151b23" stroke="#566170"/>`+"\n", width, height)
	for i, fill := range []string{"#f0716a", "#e5b94e", "#64c466"} {
		fmt.Fprintf(&b, `<circle cx="%d" cy="17" r="5.5" fill="%s"/>`, margin+4+i*19, fill)
	}
	b.WriteByte('\n')
	for i := 0; i < len(pieces); {
		// The pieces of one line of one scene stand one behind the other.
		p := pieces[i]
		class := ""
		if p.remark {
			class = ` class="r"`
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d"%s>`, margin, title+(p.line+1)*lineHeight-4, class)
		for ; i < len(pieces) && pieces[i].line == p.line && pieces[i].to == p.to; i++ {
			class := names[span(pieces[i], length)]
			if pieces[i].last {
				class += " e"
			}
			fmt.Fprintf(&b, `<tspan class="%s">`, class)
			_ = xml.EscapeText(&b, []byte(pieces[i].text)) // to a buffer
			b.WriteString("</tspan>")
		}
		b.WriteString("</text>\n")
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// span are the key frames of a piece, in percent of the whole.
func span(p piece, length time.Duration) string {
	percent := func(d time.Duration) float64 { return 100 * d.Seconds() / length.Seconds() }
	frames := fmt.Sprintf("0%%{opacity:0}%.2f%%{opacity:1}", percent(p.from))
	if p.from == 0 {
		frames = "0%{opacity:1}"
	}
	if p.to < length {
		frames += fmt.Sprintf("%.2f%%{opacity:0}", percent(p.to))
	}
	return frames
}
