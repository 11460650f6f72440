// Models: the name of the model that a body asks for.

package openai

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// maxModelName is the length of the longest model name, in bytes.
const maxModelName = 256

// readModel reads the model's name.
func (p *parser) readModel() {
	start := p.json.pos
	if p.json.peek() == 'n' {
		p.into.modelAt = p.json.skip()
		return
	}
	name, at := p.json.name()
	if p.json.failed() {
		return
	}
	if why := badModel(name); why != "" {
		p.json.stop(faultOther, start, why)
		return
	}
	p.into.Model, p.into.modelAt = name, at
}

// badModel says why name cannot be a model's; "" when it can.
func badModel(name []byte) string {
	switch {
	case len(name) == 0:
		return "Invalid 'model': empty string. Expected the name of a model"
	case len(name) > maxModelName:
		return "Invalid 'model': string too long. Expected at most 256 bytes"
	case plainName(name):
		return ""
	case !utf8.Valid(name):
		return "Invalid 'model': the name is not UTF-8"
	case bytes.ContainsFunc(name, unicode.IsControl):
		return "Invalid 'model': the name has a control character in it"
	}
	return ""
}

// plainName tells whether name is all printable ASCII, as nearly every one is.
func plainName(name []byte) bool {
	for _, c := range name {
		if c-' ' > '~'-' ' {
			return false
		}
	}
	return true
}
