// Schemas: by hand, and of Go's types.

package apidoc

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Object is a mapping with these properties, of which some must be there; others may.
func Object(properties Schema, required ...string) Schema {
	s := Schema{"type": "object", "properties": properties, "additionalProperties": true}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// Text is a string.
func Text(does string) Schema { return Schema{"type": "string", "description": does} }

// List is a list of elements.
func List(of Schema) Schema { return Schema{"type": "array", "items": of} }

// Of is the schema of what encoding/json makes of a T.
func Of[T any]() Schema { return of(reflect.TypeFor[T](), 0) }

var (
	marshals = reflect.TypeFor[json.Marshaler]()
	texts    = reflect.TypeFor[encoding.TextMarshaler]()
)

// deepest is how deep types are followed: one may hold itself.
const deepest = 12

func of(t reflect.Type, depth int) Schema {
	switch {
	case depth > deepest:
		return Schema{}
	case t == reflect.TypeFor[time.Time]():
		return Schema{"type": "string", "format": "date-time"}
	case t.Implements(marshals) || reflect.PointerTo(t).Implements(marshals):
		return Schema{} // whatever it makes of itself
	case t.Implements(texts) || reflect.PointerTo(t).Implements(texts):
		return Schema{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return Schema{"type": "boolean"}
	case reflect.String:
		return Schema{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return Schema{"type": "number"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return Schema{"type": "integer"}
	case reflect.Pointer:
		return orNull(of(t.Elem(), depth+1))
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return orNull(Schema{"type": "string"})
		}
		return orNull(List(of(t.Elem(), depth+1)))
	case reflect.Array:
		return List(of(t.Elem(), depth+1))
	case reflect.Map:
		return orNull(Schema{"type": "object", "additionalProperties": of(t.Elem(), depth+1)})
	case reflect.Struct:
		properties, required := Schema{}, []string{}
		fields(t, depth, properties, &required)
		return Object(properties, required...)
	}
	return Schema{}
}

// orNull lets a value be null, as one without memory is written.
func orNull(s Schema) Schema {
	if kind, ok := s["type"].(string); ok {
		s["type"] = []string{kind, "null"}
	}
	return s
}

// fields adds those of a struct, and of what is embedded in it.
func fields(t reflect.Type, depth int, properties Schema, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
			continue
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			fields(f.Type, depth+1, properties, required)
			continue
		case name == "":
			name = f.Name
		}
		properties[name] = of(f.Type, depth+1)
		if slices.Contains(*required, name) {
			continue // of what is embedded, too
		}
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			*required = append(*required, name)
		}
	}
}
