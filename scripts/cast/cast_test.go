// Tests of the recorded session.

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestCastIsOfTheSession: the picture in docs is whole, small enough for a page, some twenty seconds long, and shows what
// the session has; who changes the session runs make cast.
func TestCastIsOfTheSession(t *testing.T) {
	t.Parallel()
	picture, err := os.ReadFile("../../docs/pictures/cast.svg")
	if err != nil {
		t.Fatal(err)
	}
	session, err := os.ReadFile("session.txt")
	if err != nil {
		t.Fatal(err)
	}
	if len(picture) > 200_000 {
		t.Errorf("it has %d bytes", len(picture))
	}
	shown := textOf(t, string(picture))
	for line := range strings.Lines(string(session)) {
		if line = strings.TrimSpace(line); !strings.Contains(shown, line) {
			t.Errorf("the picture does not show %q: make cast", line)
		}
	}
	length := regexp.MustCompile(`\{animation:k\d+ ([\d.]+)s `).FindStringSubmatch(string(picture))
	if length == nil {
		t.Fatal("nothing moves")
	}
	if seconds, err := strconv.ParseFloat(length[1], 64); err != nil || seconds < 12 || seconds > 30 {
		t.Errorf("it takes %s s", length[1])
	}
}

// textOf is all text of a picture that is well-formed, without breaks between lines.
func textOf(t *testing.T, picture string) string {
	t.Helper()
	var text strings.Builder
	depth := 0
	for d := xml.NewDecoder(strings.NewReader(picture)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return text.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if token.Name.Local == "tspan" {
				depth++
			}
		case xml.EndElement:
			if token.Name.Local == "tspan" {
				depth--
			}
		case xml.CharData:
			if depth > 0 {
				text.Write(token)
			}
		}
	}
}

// TestLayout: lines end where the screen does, in the middle of what is printed at once, and letters are escaped.
func TestLayout(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", columns+3)
	scenes := []scene{
		{chunks: []chunk{{0, "# a remark\n"}, {time.Second, "$ "}, {2 * time.Second, long + "\n<&>"}}, length: 4 * time.Second},
		{chunks: []chunk{{0, "second"}}, length: time.Second},
	}
	pieces, lines, length := layout(scenes)
	if lines != 4 || length != 5*time.Second {
		t.Errorf("%d lines in %v", lines, length)
	}
	var got []string
	for _, p := range pieces {
		got = append(got, strconv.Itoa(p.line)+" "+strings.ReplaceAll(p.text, strings.Repeat("é", columns-2), "E")+" "+p.from.String()+" "+p.to.String())
	}
	const want = "0 # a remark 0s 4s\n1 $  1s 4s\n1 E 2s 4s\n2 ééééé 2s 4s\n3 <&> 2s 4s\n0 second 4s 5s"
	if strings.Join(got, "\n") != want {
		t.Errorf("laid out as\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	if text := textOf(t, string(draw(scenes))); text != "# a remark$ "+long+"<&>second" {
		t.Errorf("drawn is %q", text)
	}
}
