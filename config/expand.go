// Expansion: ${VAR} and ${VAR:-default} inside values of a configuration file.

package config

import (
	"fmt"
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
		b.WriteString(v)
		text, replaced = rest, true
	}
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
