// The fields of an event: their names, their places in the array form, and what is in them.

package kvevents

import (
	"errors"
	"fmt"

	"github.com/tinylib/msgp/msgp"
)

// field is one field of BlockStored or BlockRemoved.
type field uint8

const (
	unknownField field = iota
	handlesField
	parentField
	tokensField
	sizeField
	loraIDField
	mediumField
	loraField
	extraField
	groupField
	layersField
	windowField
	saltField
	metadataField
)

// fieldSet is which fields an event had.
type fieldSet uint16

func (s *fieldSet) add(f field) { *s |= 1 << f }

func (s fieldSet) all(fields ...field) bool {
	for _, f := range fields {
		if s&(1<<f) == 0 {
			return false
		}
	}
	return true
}

// The array form gives fields by place, after the kind; engines leave out what stands at the end.
var (
	storedPlaces = [...]field{handlesField, parentField, tokensField, sizeField, loraIDField, mediumField, loraField,
		extraField, groupField, layersField, windowField}
	removedPlaces = [...]field{handlesField, mediumField, groupField, layersField, windowField}
)

// fieldOf finds a field by its name in the map form.
func fieldOf(name []byte) field {
	switch string(name) {
	case "block_hashes":
		return handlesField
	case "parent_block_hash":
		return parentField
	case "token_ids":
		return tokensField
	case "block_size":
		return sizeField
	case "lora_id":
		return loraIDField
	case "medium":
		return mediumField
	case "lora_name":
		return loraField
	case "extra_keys":
		return extraField
	case "group_idx":
		return groupField
	case "kv_cache_spec_kind":
		return layersField
	case "kv_cache_spec_sliding_window":
		return windowField
	case "cache_salt":
		return saltField
	case "metadata":
		return metadataField
	}
	return unknownField
}

// decodeArray reads an event of the form [kind, field, field, ...], as engines sent it until mid-2026.
func (d *Decoder) decodeArray(p *packed) {
	e := &d.event
	n := p.array() - 1
	if n < 0 {
		return
	}
	e.kind = p.optionalText()
	var places []field
	switch string(e.kind) {
	case "BlockStored":
		places = storedPlaces[:]
	case "BlockRemoved":
		places = removedPlaces[:]
	}
	for i := range n {
		if p.err != nil {
			return
		}
		if i < len(places) {
			e.read(p, places[i])
			continue
		}
		if places != nil {
			d.Counts.ExtraFields++
		}
		p.skip()
	}
}

// decodeMap reads an event of the form {"type": kind, name: field, ...}.
func (d *Decoder) decodeMap(p *packed) {
	e := &d.event
	for range p.pairs() {
		name := p.optionalText()
		if p.err != nil {
			return
		}
		if string(name) == "type" {
			e.kind = p.optionalText()
			continue
		}
		f := fieldOf(name)
		if f == unknownField {
			d.Counts.ExtraFields++
			p.skip()
			continue
		}
		e.read(p, f)
	}
}

// read reads one field. What an event can do without is passed over where it has a type that we do not know.
func (e *event) read(p *packed, f field) {
	s := &e.stored
	e.has.add(f)
	switch f {
	case handlesField:
		s.Handles = s.Handles[:0] // a map may say it twice
		for n := p.array(); n > 0 && p.err == nil; n-- {
			s.Handles = append(s.Handles, p.handle())
		}
	case parentField:
		if s.HasParent = p.kind() != msgp.NilType; s.HasParent {
			s.Parent = p.handle()
		} else {
			p.skip()
		}
	case tokensField:
		s.Tokens = p.tokens(s.Tokens[:0], p.array())
	case sizeField:
		s.BlockSize = p.optionalInt()
	case loraIDField:
		s.LoRAID = p.optionalInt()
	case mediumField:
		e.medium = p.optionalText()
	case loraField:
		if p.kind() == msgp.MapType { // SGLang had a map in this place
			e.read(p, metadataField)
			return
		}
		s.LoRA = p.optionalText()
	case extraField:
		e.extra = p.skip()
	case groupField:
		s.Group = p.optionalInt()
	case layersField:
		e.layers = p.optionalText()
	case saltField:
		if salt := p.optionalText(); salt != nil {
			s.Salt = salt
		}
	case metadataField:
		e.readMetadata(p)
	default:
		p.skip()
	}
}

// readMetadata reads the map in which some SGLang releases say the salt.
func (e *event) readMetadata(p *packed) {
	if p.kind() != msgp.MapType {
		p.skip()
		return
	}
	for range p.pairs() {
		if name := p.optionalText(); string(name) == "cache_salt" {
			e.stored.Salt = p.optionalText()
			continue
		}
		p.skip()
	}
}

var errMissing = errors.New("a field is missing")

// check completes a BlockStored whose fields are read, or says why it cannot be.
func (e *event) check() error {
	s := &e.stored
	if !e.has.all(handlesField, parentField, tokensField, sizeField) {
		return errMissing
	}
	if len(s.Tokens) > 0 && (s.BlockSize < 1 || len(s.Tokens) != s.BlockSize*len(s.Handles)) {
		return fmt.Errorf("%d tokens for %d blocks of %d", len(s.Tokens), len(s.Handles), s.BlockSize)
	}
	s.BlockSize = max(s.BlockSize, 0)
	return e.readExtra()
}
