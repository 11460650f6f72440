// Expansion: ${VAR} and ${VAR:-default} inside values of a configuration file.

package config

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kvasir/wording"
)

// expand replaces ${VAR} by the variable's value and ${VAR:-default} by the
// default where VAR is unset or empty; $${ stands for a plain ${. It runs on
// single values after the YAML was parsed, so that a value cannot add keys,
// and what it puts in is not expanded again.
func (d *decoder) expand(k *Key, text string) (expanded string, replaced bool, err error) {
	if d.env == nil || !strings.Contains(text, "${") {
		return text, false, nil
	}
	var b strings.Builder
	for {
		i := strings.Index(text, "${")
		if i < 0 {
			b.WriteString(text)
			return b.String(), replaced, nil
		}
		if i > 0 && text[i-1] == '$' {
			b.WriteString(text[:i-1] + "${")
			text = text[i+2:]
			continue
		}
		b.WriteString(text[:i])
		inside, rest, closed := strings.Cut(text[i+2:], "}")
		if !closed {
			return "", false, fmt.Errorf("%s is not closed with }; write $${ for a plain ${", k.quote(text[i:], "a ${"))
		}
		v, err := d.variable(k, inside)
		if err != nil {
			return "", false, err
		}
		if d.expanded += len(v); d.expanded > maxExpanded {
			return "", false, fmt.Errorf("the variables put more than %d MiB into the configuration", maxExpanded>>20)
		}
		if name, _, _ := strings.Cut(inside, ":-"); len(v) >= leastHidden && !strings.HasSuffix(inside, ":-"+v) {
			d.put[v] = name
		}
		b.WriteString(v)
		text, replaced = rest, true
	}
}

// expansions are the values that variables put in, with the variables' names.
type expansions map[string]string

// leastHidden is how many bytes a value of a variable has that messages do not show. Shorter ones
// are no secrets, and parts of other words.
const leastHidden = 4

// leastPart is how many bytes a part of one has that is not shown either. The names that one may
// choose from are shorter.
const leastPart = 12

var quotedText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// hide has the problems name variables instead of showing what these put in: a variable may hold a
// secret under any key, and who writes a file of workers may not know it. What is quoted may be
// a part of a value, or cut off in the middle of it.
func (ps Problems) hide(put expansions) Problems {
	values := slices.SortedFunc(maps.Keys(put), func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	for i := range ps {
		text := ps[i].text
		for _, v := range values {
			name := "${" + put[v] + "}"
			escaped := strconv.Quote(v)
			text = strings.ReplaceAll(text, v, name)
			text = strings.ReplaceAll(text, escaped[1:len(escaped)-1], name)
			text = quotedText.ReplaceAllStringFunc(text, func(quoted string) string {
				part, err := strconv.Unquote(quoted)
				if err != nil || len(part) < leastPart {
					return quoted
				}
				if at := overlap(part, v); at >= 0 {
					return strconv.Quote(part[:at] + name)
				}
				return quoted
			})
		}
		ps[i].text = text
	}
	return ps
}

// overlap is where in a part of a text the value begins, if the part ends with it or within it, or
// lies in it; -1: nowhere.
func overlap(part, value string) int {
	if strings.Contains(value, part) {
		return 0
	}
	for at := range part {
		if rest := part[at:]; len(rest) >= leastPart && strings.HasPrefix(value, rest) {
			return at
		}
	}
	return -1
}

// variable is the value of what stands between ${ and }.
func (d *decoder) variable(k *Key, inside string) (string, error) {
	name, fallback, hasFallback := strings.Cut(inside, ":-")
	if !isVariableName(name) {
		return "", fmt.Errorf("%s is no variable; write ${NAME} or ${NAME:-default}, and $${ for a plain ${", k.quote("${"+inside+"}", "a ${...}"))
	}
	v, set := d.env(name)
	switch {
	case hasFallback && v == "":
		return fallback, nil
	case !set:
		return "", fmt.Errorf("the environment variable %s is not set; set it or write ${%s:-default}", name, name)
	}
	return v, nil
}

// quote is the text in quotes; where it may be a secret it is instead.
func (k *Key) quote(text, instead string) string {
	if k.secret {
		return instead
	}
	return wording.Quote(text)
}

func isVariableName(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
		if !letter && (i == 0 || c < '0' || '9' < c) {
			return false
		}
	}
	return s != ""
}
