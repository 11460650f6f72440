// The lexer: text between tags, and the words within them. As jinja2's with trim_blocks and
// lstrip_blocks: the line break behind a block goes, and so does the white space before it on its line.

package template

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokenEnd      tokenKind = iota
	tokenText               // outside of tags
	tokenOpen               // {{
	tokenClose              // }}
	tokenBlock              // {%
	tokenBlockEnd           // %}
	tokenName
	tokenString // decoded
	tokenInteger
	tokenFloat
	tokenSign // operators and brackets
)

type token struct {
	kind tokenKind
	text string
	line int
}

type lexer struct {
	source  string
	pos     int
	line    int
	starts  bool   // what lies before pos ends a line
	closers []byte // of brackets that are open
	tokens  []token
}

// lex cuts a template into tokens; the last is tokenEnd.
func lex(source string) []token {
	if !utf8.ValidString(source) {
		fail(ErrSyntax, "not UTF-8")
	}
	source = strings.ReplaceAll(strings.ReplaceAll(source, "\r\n", "\n"), "\r", "\n")
	l := &lexer{source: strings.TrimSuffix(source, "\n"), line: 1, starts: true}
	for l.pos < len(l.source) {
		l.root()
	}
	l.add(tokenEnd, "")
	return l.tokens
}

func (l *lexer) fail(format string, args ...any) {
	panic(&Failure{Line: l.line, Reason: sprintf(format, args...), kind: ErrSyntax})
}

func (l *lexer) add(kind tokenKind, text string) {
	l.tokens = append(l.tokens, token{kind, text, l.line})
}

// advance moves behind n bytes.
func (l *lexer) advance(n int) {
	passed := l.source[l.pos : l.pos+n]
	l.line += strings.Count(passed, "\n")
	if n > 0 {
		l.starts = passed[n-1] == '\n'
	}
	l.pos += n
}

// root reads text up to the next tag, and the tag.
func (l *lexer) root() {
	rest := l.source[l.pos:]
	at := nextTag(rest)
	if at < 0 {
		l.add(tokenText, rest)
		l.advance(len(rest))
		return
	}
	text, opening := rest[:at], rest[at+1]
	sign := byte(0)
	if len(rest) > at+2 && (rest[at+2] == '-' || rest[at+2] == '+') {
		sign = rest[at+2]
	}
	if text = l.strip(text, sign, opening != '{'); text != "" {
		l.add(tokenText, text)
	}
	if opening == '%' {
		if n := rawTag(rest[at:]); n > 0 {
			l.advance(at + n)
			l.raw()
			return
		}
	}
	l.advance(at + 2)
	if sign != 0 {
		l.advance(1)
	}
	switch opening {
	case '#':
		end := strings.Index(l.source[l.pos:], "#}")
		if end < 0 {
			l.fail("a comment without end")
		}
		l.close(end, 2)
	case '{':
		l.add(tokenOpen, "")
		l.inside("}}", tokenClose)
	case '%':
		l.add(tokenBlock, "")
		l.inside("%}", tokenBlockEnd)
	}
}

func nextTag(s string) int {
	for i := 0; ; i++ {
		n := strings.IndexByte(s[i:], '{')
		if n < 0 || i+n+1 >= len(s) {
			return -1
		}
		i += n
		if c := s[i+1]; c == '{' || c == '%' || c == '#' {
			return i
		}
	}
}

// strip takes the white space at the end of the text before a tag.
func (l *lexer) strip(text string, sign byte, block bool) string {
	switch {
	case sign == '-':
		return strings.TrimRightFunc(text, isSpace)
	case sign == '+' || !block:
		return text
	}
	line := strings.LastIndexByte(text, '\n') + 1
	if (line > 0 || l.starts) && strings.TrimLeftFunc(text[line:], isSpace) == "" {
		return text[:line]
	}
	return text
}

// close moves behind a tag that ends n bytes on, in size bytes, with the white space that goes with it.
func (l *lexer) close(n, size int) {
	sign := byte(0)
	if n > 0 {
		sign = l.source[l.pos+n-1]
	}
	l.advance(n + size)
	l.trim(sign)
}

func (l *lexer) trim(sign byte) {
	rest := l.source[l.pos:]
	switch {
	case sign == '-':
		l.advance(len(rest) - len(strings.TrimLeftFunc(rest, isSpace)))
	case sign != '+' && strings.HasPrefix(rest, "\n"):
		l.advance(1)
	}
}

// rawTag is the length of a {% raw %} at the begin of s, or 0.
func rawTag(s string) int {
	rest := s[2:]
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		rest = rest[1:]
	}
	rest = strings.TrimLeftFunc(rest, isSpace)
	rest, ok := strings.CutPrefix(rest, "raw")
	if !ok {
		return 0
	}
	rest = strings.TrimLeftFunc(rest, isSpace)
	if after, ok := strings.CutPrefix(rest, "%}"); ok {
		return len(s) - len(after)
	}
	if after, ok := strings.CutPrefix(rest, "-%}"); ok {
		return len(s) - len(strings.TrimLeftFunc(after, isSpace))
	}
	return 0
}

// raw reads text up to {% endraw %}.
func (l *lexer) raw() {
	rest := l.source[l.pos:]
	for i := 0; ; i++ {
		n := strings.Index(rest[i:], "{%")
		if n < 0 {
			l.fail("raw without endraw")
		}
		i += n
		tag := rest[i+2:]
		sign := byte(0)
		if tag != "" && (tag[0] == '-' || tag[0] == '+') {
			sign, tag = tag[0], tag[1:]
		}
		tag, ok := strings.CutPrefix(strings.TrimLeftFunc(tag, isSpace), "endraw")
		if !ok {
			continue
		}
		tag = strings.TrimLeftFunc(tag, isSpace)
		end := byte(0)
		if tag != "" && (tag[0] == '-' || tag[0] == '+') {
			end, tag = tag[0], tag[1:]
		}
		if !strings.HasPrefix(tag, "%}") {
			continue
		}
		if text := l.strip(rest[:i], sign, true); text != "" {
			l.add(tokenText, text)
		}
		l.advance(len(rest) - len(tag) + 2)
		l.trim(end)
		return
	}
}

// inside reads the words of a tag up to its end.
func (l *lexer) inside(end string, kind tokenKind) {
	for l.pos < len(l.source) {
		rest := l.source[l.pos:]
		if len(l.closers) == 0 {
			sign := byte(0)
			if rest[0] == '-' || rest[0] == '+' && kind == tokenBlockEnd {
				sign = rest[0]
			}
			skip := 0
			if sign != 0 {
				skip = 1
			}
			if strings.HasPrefix(rest[skip:], end) {
				l.add(kind, "")
				l.advance(skip + len(end))
				if kind == tokenBlockEnd || sign == '-' {
					l.trim(sign)
				}
				return
			}
		}
		l.word(rest)
	}
	l.fail("a tag without end")
}

// word reads one word of a tag.
func (l *lexer) word(s string) {
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case isSpace(r):
		l.advance(n)
	case r >= '0' && r <= '9':
		l.number(s)
	case r == '_' || unicode.IsLetter(r):
		end := strings.IndexFunc(s, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if end < 0 {
			end = len(s)
		}
		l.add(tokenName, s[:end])
		l.advance(end)
	case r == '\'' || r == '"':
		l.quoted(s)
	default:
		l.sign(s)
	}
}

// number reads digits, with a fraction, an exponent, and underscores between digits.
func (l *lexer) number(s string) {
	if len(s) > 1 && s[0] == '0' && strings.ContainsRune("bBoOxX", rune(s[1])) {
		l.fail("a number that is not decimal")
	}
	digits := func(i int) int {
		for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '_' && i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '9') {
			i++
		}
		return i
	}
	i, kind := digits(1), tokenInteger
	if i+1 < len(s) && s[i] == '.' && s[i+1] >= '0' && s[i+1] <= '9' {
		i, kind = digits(i+1), tokenFloat
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		if j < len(s) && s[j] >= '0' && s[j] <= '9' {
			i, kind = digits(j), tokenFloat
		}
	}
	// A float does not follow a dot: in x.0.1 those are two subscripts. Nobody writes that.
	l.add(kind, strings.ReplaceAll(s[:i], "_", ""))
	l.advance(i)
}

func (l *lexer) quoted(s string) {
	i := 1
	for ; i < len(s) && s[i] != s[0]; i++ {
		if s[i] == '\\' {
			i++
		}
	}
	if i >= len(s) {
		l.fail("a string without end")
	}
	l.add(tokenString, l.unescape(s[1:i]))
	l.advance(i + 1)
}

// unescape decodes a string as Python's unicode-escape does; escapes that it does not know stay.
func (l *lexer) unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case '\n':
		case '\\', '\'', '"':
			b.WriteByte(c)
		case 'a', 'b', 'f', 'n', 'r', 't', 'v':
			b.WriteByte("\a\b\f\n\r\t\v"[strings.IndexByte("abfnrtv", c)])
		case 'x', 'u', 'U':
			n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			if i+n >= len(s) {
				l.fail("an escape that is cut off")
			}
			r, err := strconv.ParseUint(s[i+1:i+1+n], 16, 32)
			if err != nil || !utf8.ValidRune(rune(r)) {
				l.fail("an escape that is no character")
			}
			b.WriteRune(rune(r))
			i += n
		case '0', '1', '2', '3', '4', '5', '6', '7':
			r, n := rune(0), 0
			for ; n < 3 && i+n < len(s) && s[i+n] >= '0' && s[i+n] <= '7'; n++ {
				r = r<<3 | rune(s[i+n]-'0')
			}
			b.WriteRune(r)
			i += n - 1
		case 'N':
			l.fail("a character by its name")
		default:
			if c >= 0x80 { // jinja2 makes `\xe9` of a backslash before é: a fault that no template builds on
				l.fail("an escape of a character beyond ASCII")
			}
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String()
}

// signs, the longer ones first.
var signs = []string{"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}",
	">", "<", "=", ".", ":", "|", ",", ";"}

func (l *lexer) sign(s string) {
	for _, sign := range signs {
		if !strings.HasPrefix(s, sign) {
			continue
		}
		switch sign {
		case "(":
			l.closers = append(l.closers, ')')
		case "[":
			l.closers = append(l.closers, ']')
		case "{":
			l.closers = append(l.closers, '}')
		case ")", "]", "}":
			n := len(l.closers)
			if n == 0 || l.closers[n-1] != sign[0] {
				l.fail("unexpected %q", sign)
			}
			l.closers = l.closers[:n-1]
		}
		l.add(tokenSign, sign)
		l.advance(len(sign))
		return
	}
	l.fail("unexpected %.4q", s)
}
