// Writing: signals and decisions.

package convert

import (
	"strconv"

	"go.yaml.in/yaml/v3"

	"kvasir/classify"
)

func (d *draft) signalsText() *yaml.Node {
	return list(d, d.signals, func(s signal) (mapping, *value, string) {
		o := &s.options
		m := newMapping()
		m.set("name", scalar(o.Name))
		if len(o.Keywords) > 0 {
			m.set("keywords", texts(o.Keywords))
			m.set("method", scalar(o.Method))
			m.set("operator", scalar(o.Operator))
		}
		if o.CaseSensitive {
			m.set("case_sensitive", boolean(true))
		}
		if len(o.Phrases) > 0 {
			m.set("phrases", texts(o.Phrases))
			m.set("aggregate", scalar(o.Aggregate))
		}
		m.set("threshold", number(o.Threshold))
		setFeatures(m, o)
		return m, s.at, ""
	})
}

// setFeatures writes bounds under the key of their kind, which is a measure itself where it has
// only one.
func setFeatures(m mapping, o *classify.SignalOptions) {
	for _, making := range classify.Makings() {
		if making.Kind != o.Kind || len(o.Features) == 0 {
			continue
		}
		all := newMapping()
		for _, f := range o.Features {
			bounds := newMapping()
			bounds.Style = yaml.FlowStyle
			bounds.set("min", number(f.Min))
			if f.Max != nil {
				bounds.set("max", &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatFloat(*f.Max, 'f', -1, 64)})
			}
			if len(making.Measures) == 1 && making.Measures[0] == making.Key {
				m.set(making.Key, bounds.Node)
				return
			}
			all.set(f.Name, bounds.Node)
		}
		m.set(making.Key, all.Node)
	}
}

func (d *draft) decisionsText() *yaml.Node {
	var anyType *yaml.Node // every type of personal data, written once
	top := 0
	for i := range d.decisions {
		top = max(top, d.decisions[i].priority+1)
	}
	for i := range d.decisions { // another name is no way around what is refused
		if o := &d.decisions[i]; o.all && o.refuse != "" {
			top = min(top, o.priority-1)
		}
	}
	return list(d, d.decisions, func(o decision) (mapping, *value, string) {
		m := newMapping()
		m.set("name", scalar(o.name))
		if o.when != nil {
			m.set("when", conditionText(o.when))
		}
		if o.alias {
			o.priority = top
		}
		if d.order == "priority" {
			m.set("priority", number(float64(o.priority)))
		}
		if o.all {
			m.set("applies_to", scalar("all"))
		}
		m.set("model", scalar(o.model))
		if o.reasoning == "true" || o.reasoning == "false" {
			m.set("reasoning", boolean(o.reasoning == "true"))
		} else {
			m.set("reasoning", scalar(o.reasoning))
		}
		m.set("system_prompt", scalar(o.prompt))
		if o.insert {
			m.set("system_prompt_mode", scalar("insert"))
		}
		allow := texts(o.piiAllow)
		if o.piiAllowsAny {
			allow = &yaml.Node{Kind: yaml.AliasNode, Value: "any_type", Alias: anyType}
			if anyType == nil {
				anyType = texts(classify.Values(classify.KindPII))
				anyType.Anchor, anyType.Style = "any_type", yaml.FlowStyle
				allow = anyType
			}
		}
		if allow != nil {
			p := newMapping()
			p.set("allow", allow)
			m.set("pii", p.Node)
		}
		if o.cacheOff || o.cacheAbove > 0 {
			c := newMapping()
			if o.cacheOff {
				c.set("enabled", boolean(false))
			}
			c.set("threshold", number(o.cacheAbove))
			m.set("cache", c.Node)
		}
		m.set("refuse", scalar(o.refuse))
		m.set("max_tokens", number(float64(o.maxTokens)))
		m.set("max_choices", number(float64(o.maxChoices)))
		return m, o.at, oneLine(o.about)
	})
}

// conditionText is a condition as `when` has it.
func conditionText(c *classify.Condition) *yaml.Node {
	m := newMapping()
	m.Style = yaml.FlowStyle
	for _, is := range c.Is {
		values := texts(is.Values)
		if len(is.Values) == 1 {
			values = scalar(is.Values[0])
		}
		m.set(string(is.Kind), values)
	}
	for _, nested := range []struct {
		key  string
		list []classify.Condition
	}{{"all", c.All}, {"any", c.Any}} {
		if len(nested.list) == 0 {
			continue
		}
		n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for i := range nested.list {
			n.Content = append(n.Content, conditionText(&nested.list[i]))
		}
		m.set(nested.key, n)
	}
	if c.Not != nil {
		m.set("not", conditionText(c.Not))
	}
	return m.Node
}
