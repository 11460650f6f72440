// Writing: the draft as the text of a configuration that people read, with where each part came from.

package convert

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"kvasir/classify"
)

// text is the configuration.
func (d *draft) text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Kvasir's configuration, made by kvasir import of %s, a file of %s.\n", oneLine(filepath.Base(d.doc.name)), d.program)
	b.WriteString("# Comments say where each part came from. What has no counterpart here, kvasir import lists.\n")
	if len(d.variables) > 0 {
		fmt.Fprintf(&b, "# It needs these variables of the environment: %s.\n", strings.Join(d.variables, ", "))
	}
	for _, section := range []struct {
		key  string
		make func(*draft) *yaml.Node
	}{
		{"server", (*draft).serverText},
		{"keys", (*draft).keysText},
		{"workers", (*draft).workersText},
		{"models", (*draft).modelsText},
		{"routing", (*draft).routingText},
		{"classify", (*draft).classifyText},
		{"signals", (*draft).signalsText},
		{"decision_order", func(d *draft) *yaml.Node { return scalar(d.order) }},
		{"decisions", (*draft).decisionsText},
		{"cache", (*draft).cacheText},
		{"metrics", func(d *draft) *yaml.Node {
			m := newMapping()
			m.set("currency", scalar(d.currency))
			return m.Node
		}},
	} {
		n := section.make(d)
		if n == nil || len(n.Content) == 0 && n.Value == "" {
			continue
		}
		b.WriteByte('\n')
		enc := yaml.NewEncoder(&b)
		enc.SetIndent(2)
		if err := enc.Encode(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: section.key}, n}}); err != nil {
			panic("BUG: a tree that was just made cannot be written: " + err.Error())
		}
		_ = enc.Close()
	}
	return b.Bytes()
}

// A mapping is one that is being written.
type mapping struct{ *yaml.Node }

func newMapping() mapping { return mapping{&yaml.Node{Kind: yaml.MappingNode}} }

// set adds a key; a value that is nil is left out. A comment stands behind the value.
func (m mapping) set(key string, value *yaml.Node, comment ...string) {
	if value == nil {
		return
	}
	value.LineComment = strings.Join(comment, "; ")
	m.Content = append(m.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key, Tag: "!!str"}, value)
}

// from is the comment that says where something came from.
func (d *draft) from(at *value) string {
	if at == nil || at.node == nil {
		return ""
	}
	return fmt.Sprintf("%s:%d %s", oneLine(filepath.Base(d.doc.name)), at.line(), at.path())
}

// scalar is a text; one that is empty is nil. Nothing in it is expanded when it is read.
func scalar(text string) *yaml.Node {
	if text == "" {
		return nil
	}
	return literal(strings.ReplaceAll(text, "${", "$${"))
}

// literal is a text as it is, variables and all.
func literal(text string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(text)
	if strings.Contains(text, "\n") && strings.ContainsAny(text, "\t\r") || strings.HasPrefix(text, "\n") || strings.HasPrefix(text, " ") ||
		strings.ContainsAny(text, "\u0085\u2028\u2029") { // YAML ends lines there, too
		n.Style = yaml.DoubleQuotedStyle // another style would not bring it back as it was
	}
	return n
}

func number(f float64) *yaml.Node {
	if f == 0 {
		return nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatFloat(f, 'f', -1, 64)}
}

func boolean(on bool) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatBool(on)}
}

// texts is a list of texts, in one line if it is short; nil if the list is.
func texts(list []string) *yaml.Node {
	if list == nil {
		return nil
	}
	n := &yaml.Node{Kind: yaml.SequenceNode}
	length := 0
	for _, s := range list {
		length += len(s)
		e := scalar(s)
		if e == nil {
			continue
		}
		n.Content = append(n.Content, e)
	}
	if length <= 300 && !strings.Contains(strings.Join(list, ""), "\n") {
		n.Style = yaml.FlowStyle
	}
	return n
}

// seconds is a duration.
func seconds(s float64) *yaml.Node {
	if s <= 0 {
		return nil
	}
	return literal(strconv.FormatFloat(s, 'f', -1, 64) + "s")
}

func (d *draft) serverText() *yaml.Node {
	m := newMapping()
	m.set("listen", scalar(d.listen), d.from(d.listenAt))
	if d.firstByte > 0 {
		t := newMapping()
		t.set("first_byte", seconds(d.firstByte), d.from(d.timeoutAt))
		m.set("timeouts", t.Node)
	}
	if d.retriesAt != nil {
		r := newMapping()
		r.set("attempts", &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.Itoa(int(d.retries))}, d.from(d.retriesAt))
		m.set("retry", r.Node)
	}
	return m.Node
}

// list makes a sequence of elements, each with a comment above it.
func list[T any](d *draft, elements []T, element func(T) (mapping, *value, string)) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for _, e := range elements {
		m, at, about := element(e)
		m.HeadComment = d.from(at)
		if about != "" && m.HeadComment != "" {
			m.HeadComment = about + " (" + m.HeadComment + ")"
		} else if about != "" {
			m.HeadComment = about
		}
		n.Content = append(n.Content, m.Node)
	}
	return n
}

func (d *draft) keysText() *yaml.Node {
	return list(d, d.keys, func(k clientKey) (mapping, *value, string) {
		m := newMapping()
		m.set("name", scalar(k.name))
		m.set("sha256", literal(k.sum))
		return m, k.at, ""
	})
}

func (d *draft) workersText() *yaml.Node {
	return list(d, d.workers, func(w *worker) (mapping, *value, string) {
		m := newMapping()
		m.set("name", scalar(w.name))
		m.set("url", literal(w.url))
		if !w.any {
			m.set("models", texts(w.models))
		}
		m.set("max_requests", number(float64(w.maxRequests)))
		if len(w.headers) > 0 {
			h := newMapping()
			for _, header := range w.headers {
				h.set(header.name, literal(header.value))
			}
			m.set("headers", h.Node)
		}
		about := ""
		if w.at == nil || w.at.node == nil {
			about = "the file names no worker: put the address of yours here"
		}
		return m, w.at, about
	})
}

func (d *draft) modelsText() *yaml.Node {
	return list(d, d.models, func(o *model) (mapping, *value, string) {
		m := newMapping()
		m.set("name", scalar(o.name))
		if o.standard {
			m.set("default", boolean(true))
		}
		m.set("fallback", texts(o.fallback))
		m.set("reasoning", scalar(o.reasoning))
		if o.price != (price{}) {
			c := newMapping()
			c.Style = yaml.FlowStyle
			c.set("prompt", number(o.price.prompt))
			c.set("completion", number(o.price.completion))
			c.set("cached", number(o.price.cached))
			m.set("price", c.Node)
		}
		return m, o.at, ""
	})
}

func (d *draft) routingText() *yaml.Node {
	m := newMapping()
	m.set("policy", scalar(d.policy), d.from(d.policyAt))
	return m.Node
}

func (d *draft) classifyText() *yaml.Node {
	g := &d.guards
	m := newMapping()
	if g.category > 0 {
		c := newMapping()
		c.set("threshold", number(g.category), d.from(g.categoryAt))
		m.set("category", c.Node)
	}
	if g.jailbreak != "" {
		j := newMapping()
		j.set("action", scalar(g.jailbreak), either(g.jailbreakComment, d.from(g.jailbreakAt)))
		j.set("threshold", number(g.jailbreakAbove))
		m.set("jailbreak", j.Node)
	}
	if g.pii != "" {
		p := newMapping()
		p.set("action", scalar(g.pii), either(g.piiComment, d.from(g.piiAt)))
		p.set("threshold", number(g.piiAbove))
		p.set("allow", texts(g.piiAllow))
		m.set("pii", p.Node)
	}
	return m.Node
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (d *draft) cacheText() *yaml.Node {
	c := &d.cache
	m := newMapping()
	m.set("store", scalar(c.store), either(c.comment, d.from(c.at)))
	m.set("threshold", number(c.threshold))
	m.set("ttl", seconds(c.ttl))
	m.set("max_entries", number(c.maxEntries))
	if c.milvus != nil {
		v := newMapping()
		v.set("address", scalar(c.milvus.address))
		v.set("collection", scalar(c.milvus.collection))
		if c.milvus.token != "" {
			v.set("token", literal(c.milvus.token))
		}
		m.set("milvus", v.Node)
	}
	return m.Node
}

var unprintable = regexp.MustCompile(`[^\pL\pN\pP\pS ]+`)

// oneLine makes a text fit for a comment.
func oneLine(s string) string {
	s = strings.TrimSpace(unprintable.ReplaceAllString(s, " "))
	if r := []rune(s); len(r) > 120 {
		return string(r[:120]) + "..."
	}
	return s
}

// known says whether a condition may ask this value of a kind.
func known(kind classify.Kind, value string) bool {
	return slices.Contains(classify.Values(kind), value)
}
