// Document: the bytes of a configuration file to one bounded YAML tree.

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxFile bounds a configuration file, in bytes.
const maxFile = 1 << 20

var byteOrderMark = []byte("\xef\xbb\xbf")

// parseDocument gives the root mapping of a file, or nil for an empty one.
// The problem has its line and column, but not yet its source.
func parseDocument(data []byte) (*yaml.Node, *problem) {
	if len(data) > maxFile {
		return nil, &problem{at: place{line: 1, col: 1}, text: fmt.Sprintf("the file is larger than %d MiB", maxFile>>20)}
	}
	data = bytes.TrimPrefix(data, byteOrderMark)
	if !utf8.Valid(data) {
		line, col := invalidAt(data)
		return nil, &problem{at: place{line: line, col: col}, text: "the file is not UTF-8 here"}
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, syntaxProblem(err, data)
	}
	var second yaml.Node
	if err := dec.Decode(&second); err == nil {
		return nil, &problem{at: place{line: second.Line, col: second.Column}, text: "a second document (---) begins here; a configuration is one"}
	} else if !errors.Is(err, io.EOF) {
		return nil, syntaxProblem(err, data)
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	return doc.Content[0], nil
}

// Document reads the YAML of another program's configuration within the bounds of our own: one
// document of at most 1 MiB, UTF-8. It returns nil for an empty one. The error is Problems, with
// the places of source.
func Document(source string, data []byte) (*yaml.Node, error) {
	root, bad := parseDocument(data)
	if bad != nil {
		bad.at.source = source
		return nil, Problems{*bad}
	}
	return root, nil
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?line ([0-9]+): `)

// syntaxProblem finds the place of yaml's error. An error of its scanner has the
// right line. One of its parser has the line where the mapping around it began,
// so the document is parsed again a byte at a time: the byte that was read last
// is near the error. Where something is never closed, all bytes were read, and
// the line where it began is the better one.
func syntaxProblem(err error, data []byte) *problem {
	text, line := err.Error(), 0
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	text = strings.TrimPrefix(text, "yaml: ")
	near := data[:readUntilError(data)]
	if name, ok := strings.CutPrefix(text, "unknown anchor '"); ok {
		name, _, _ = strings.Cut(name, "'")
		near = data[:max(0, bytes.Index(data, []byte("*"+name)))+1]
		line = 0
		text = "unknown anchor" // the name may be a secret that begins with a *
	}
	if strings.HasPrefix(text, "did not find expected") {
		line++ // yaml counts this one from 0
	}
	col := 0
	if fromParser := line == 0 || strings.HasPrefix(text, "did not find expected"); fromParser && len(near) < len(data) {
		line = 1 + bytes.Count(near, []byte("\n"))
		col = utf8.RuneCount(near[bytes.LastIndexByte(near, '\n')+1:])
	}
	line = max(1, min(line, 1+bytes.Count(bytes.TrimRight(data, "\r\n"), []byte("\n"))))
	at := lineOf(data, line)
	indent := len(at) - len(bytes.TrimLeft(at, " \t"))
	if tab := bytes.IndexByte(at[:indent], '\t'); tab >= 0 {
		return &problem{at: place{line: line, col: tab + 1}, text: "YAML is indented with spaces, here is a tab"}
	}
	if col == 0 {
		col = indent + 1
	}
	text = "this is not YAML: " + text
	if bytes.Contains(at, []byte("${")) {
		text += "; inside { } and [ ] put ${...} in quotes"
	}
	if strings.HasSuffix(text, "did not find expected key") {
		text += "; is this line indented like the one it belongs with?"
	}
	if strings.Contains(text, "alphabetic or numeric character") {
		text += `; a * at the beginning is put in quotes: "*"`
	}
	return &problem{at: place{line: line, col: col}, text: text}
}

// yamlLookahead is how many bytes ahead yaml's scanner reads.
const yamlLookahead = 3

// readUntilError is how many bytes of a bad document yaml takes until it
// notices; blanks at their end do not count.
func readUntilError(data []byte) int {
	// The comment behind it tells an error in the last line from something that is never closed.
	slow := &trickle{data: append(bytes.Clone(data), "\n# the end\n"...)}
	dec := yaml.NewDecoder(slow)
	for err := error(nil); err == nil; {
		err = dec.Decode(new(yaml.Node))
	}
	if slow.given == len(slow.data) {
		return len(data)
	}
	return len(bytes.TrimRight(data[:min(len(data), max(0, slow.given-yamlLookahead))], " \r\n"))
}

// A trickle is a reader that gives one byte at a time and counts them.
type trickle struct {
	data  []byte
	given int
}

func (t *trickle) Read(p []byte) (int, error) {
	if t.given == len(t.data) {
		return 0, io.EOF
	}
	n := copy(p[:min(1, len(p))], t.data[t.given:])
	t.given += n
	return n, nil
}

// lineOf is the line of that number, counted from 1, without its end.
func lineOf(data []byte, line int) []byte {
	for ; line > 1; line-- {
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	at, _, _ := bytes.Cut(data, []byte("\n"))
	return at
}

// invalidAt is the place of the first byte that is no UTF-8.
func invalidAt(data []byte) (line, col int) {
	line, col = 1, 1
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && n == 1:
			return line, col
		case r == '\n':
			line, col = line+1, 0
		}
		data, col = data[n:], col+1
	}
	return line, col
}
