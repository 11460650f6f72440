// JSON as a tree, its members in order: schemas, read once, and the values made for them.

package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// node is a JSON value: a schema, or what is made for one.
type node struct {
	kind   byte // { [ " 0 (a number) t f n
	text   string
	number float64
	items  []*node
	names  []string // of an object, in order
	fields map[string]*node
}

var (
	nullNode  = &node{kind: 'n'}
	trueNode  = &node{kind: 't'}
	falseNode = &node{kind: 'f'}
)

// get returns a member of an object, or nil.
func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	return n.fields[name]
}

// parseNode reads a JSON value; of a name given twice the last value counts.
func parseNode(raw []byte) (*node, error) {
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("it has %d bytes, the limit is %d", len(raw), maxSchema)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	n, err := readNode(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more follows its end")
	}
	return n, nil
}

func readNode(d *json.Decoder, depth int) (*node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	if depth > maxSchemaDepth {
		return nil, fmt.Errorf("it is more than %d levels deep", maxSchemaDepth)
	}
	switch v := token.(type) {
	case string:
		return &node{kind: '"', text: v}, nil
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			return nil, fmt.Errorf("the number %.40s is out of range", v)
		}
		return &node{kind: '0', text: v.String(), number: f}, nil
	case bool:
		if v {
			return trueNode, nil
		}
		return falseNode, nil
	case json.Delim:
		if v == '[' {
			return readItems(d, depth)
		}
		return readMembers(d, depth)
	}
	return nullNode, nil
}

func readItems(d *json.Decoder, depth int) (*node, error) {
	n := &node{kind: '['}
	for d.More() {
		item, err := readNode(d, depth+1)
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, item)
	}
	_, err := d.Token()
	return n, err
}

func readMembers(d *json.Decoder, depth int) (*node, error) {
	n := &node{kind: '{', fields: map[string]*node{}}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		value, err := readNode(d, depth+1)
		if err != nil {
			return nil, err
		}
		n.set(name.(string), value)
	}
	_, err := d.Token()
	return n, err
}

func (n *node) set(name string, value *node) {
	if _, there := n.fields[name]; !there {
		n.names = append(n.names, name)
	}
	n.fields[name] = value
}

// appendNode writes a value, with a space after each colon and comma, as models do.
func appendNode(b []byte, n *node) []byte {
	switch n.kind {
	case '{':
		b = append(b, '{')
		for i, name := range n.names {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = appendNode(append(appendString(b, name), ": "...), n.fields[name])
		}
		return append(b, '}')
	case '[':
		b = append(b, '[')
		for i, item := range n.items {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = appendNode(b, item)
		}
		return append(b, ']')
	case '"':
		return appendString(b, n.text)
	case '0':
		return append(b, n.text...)
	case 't':
		return append(b, "true"...)
	case 'f':
		return append(b, "false"...)
	}
	return append(b, "null"...)
}
