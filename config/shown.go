// Showing: the configuration in force, each key with who set it.

package config

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"kvasir/classify"
)

// A Value is one key of a configuration in force.
type Value struct {
	Key    string `json:"key"`          // with indices: workers[0].url
	Value  any    `json:"value"`        // as it would be written in the file; with ${VAR} where that stands there
	From   string `json:"from"`         // default, file, environment, flag
	At     string `json:"at,omitempty"` // file:line:column, or the name of the variable or flag
	Secret bool   `json:"secret"`       // what is set is not shown
}

// hidden stands for a secret that is set.
const hidden = "hidden"

// Values are all keys in the order of Config. An element of a list has those of its keys that
// somebody set. Secrets are not shown.
func (g *Generation) Values() []Value {
	w := valueWriter{at: g.at}
	w.group(reflect.ValueOf(*g.Config), "", false)
	return w.values
}

type valueWriter struct {
	at     places
	values []Value
}

// group adds the keys of a struct of Config, by the tags that keyOf reads.
func (w *valueWriter) group(v reflect.Value, path string, secret bool) {
	t := v.Type()
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		if name := tag.Get("koanf"); name != ",remain" {
			w.value(v.Field(i), join(path, name), secret || tag.Get("secret") == "yes")
			continue
		}
		bounds, _ := v.Field(i).Interface().(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(bounds)) {
			w.add(join(path, name), shownValue(bounds[name]), secret, false)
		}
	}
}

func (w *valueWriter) value(v reflect.Value, path string, secret bool) {
	_, isWhen := v.Interface().(classify.Condition)
	switch {
	case v.Kind() == reflect.Struct && !isWhen:
		w.group(v, path, secret)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct && v.Len() > 0:
		for i := range v.Len() {
			w.element(v.Index(i), fmt.Sprintf("%s[%d]", path, i), secret)
		}
	default:
		isList := v.Kind() == reflect.Slice || v.Kind() == reflect.Map
		w.add(path, shownValue(v.Interface()), secret, v.IsZero() || isList && v.Len() == 0)
	}
}

// element adds what somebody set of an element of a list: its defaults would only be many.
func (w *valueWriter) element(v reflect.Value, path string, secret bool) {
	all := valueWriter{at: w.at}
	all.group(v, path, secret)
	for _, one := range all.values {
		if one.At != "" {
			w.values = append(w.values, one)
		}
	}
}

func (w *valueWriter) add(path string, value any, secret, empty bool) {
	v := Value{Key: path, Value: value, From: "default", Secret: secret}
	if at, set := w.at[path]; set {
		v.At = at.String()
		if at.source != builtInName { // nobody asked for what stands there
			v.From = [...]string{layerFile: "file", layerVariable: "environment", layerFlag: "flag"}[at.layer]
		}
	}
	if secret && !empty {
		v.Value = hidden
	} else {
		v.Value = w.asWritten(path, path, value)
	}
	w.values = append(w.values, v)
}

// asWritten is what is shown at a path of the value of key, with the variables that stand there
// instead of what they put in: somebody may have thought it a secret, whatever the key is.
func (w *valueWriter) asWritten(key, path string, shown any) any {
	switch shown := shown.(type) {
	case []string:
		for i := range shown {
			shown[i], _ = w.asWritten(key, fmt.Sprintf("%s[%d]", path, i), shown[i]).(string)
		}
		return shown
	case []any:
		for i := range shown {
			shown[i] = w.asWritten(key, fmt.Sprintf("%s[%d]", path, i), shown[i])
		}
		return shown
	case map[string]any:
		for name := range shown {
			shown[name] = w.asWritten(key, join(path, shorten(name)), shown[name])
		}
		return shown
	}
	if text := w.written(key, path); text != "" {
		return urlPassword.ReplaceAllString(text, "://$1:xxxxx@")
	}
	return shown
}

// urlPassword is one as it stands in a text that is no URL yet.
var urlPassword = regexp.MustCompile(`://([^/?#@:]*):([^/?#]*)@`)

// written is what stands at a path, unless a later layer has set the key or the list that it is in.
func (w *valueWriter) written(key, path string) string {
	at := w.at[path]
	list, _, inList := strings.Cut(path, "[")
	if w.at[key].layer != at.layer || inList && w.at[list].layer != at.layer {
		return ""
	}
	return at.written
}

// shownValue is a value as JSON has it.
func shownValue(v any) any {
	switch v := v.(type) {
	case time.Duration, Size:
		return Show(v)
	case Path:
		return string(v)
	case string:
		return withoutPassword(v)
	case []string:
		list := make([]string, 0, len(v)) // never null
		for _, text := range v {
			list = append(list, withoutPassword(text))
		}
		return list
	case map[string]string:
		m := make(map[string]any, len(v))
		for name, text := range v {
			m[name] = withoutPassword(text)
		}
		return m
	case map[string]any:
		m := make(map[string]any, len(v))
		for name, inside := range v {
			m[name] = shownValue(inside)
		}
		return m
	case classify.Condition:
		return shownCondition(&v)
	}
	switch r := reflect.ValueOf(v); { // never null
	case r.Kind() == reflect.Slice && r.Len() == 0:
		return []string{}
	case r.Kind() == reflect.Map && r.Len() == 0:
		return map[string]string{}
	}
	return v
}

// withoutPassword hides what stands for a password in a URL.
func withoutPassword(text string) string {
	if u, err := url.Parse(text); err == nil && u.User != nil {
		return u.Redacted()
	}
	return text
}

// shownCondition is a condition as it would be written.
func shownCondition(c *classify.Condition) any {
	m := map[string]any{}
	for _, is := range c.Is {
		m[string(is.Kind)] = slices.Clone(is.Values)
	}
	list := func(of []classify.Condition) (all []any) {
		for i := range of {
			all = append(all, shownCondition(&of[i]))
		}
		return all
	}
	if len(c.All) > 0 {
		m["all"] = list(c.All)
	}
	if len(c.Any) > 0 {
		m["any"] = list(c.Any)
	}
	if c.Not != nil {
		m["not"] = shownCondition(c.Not)
	}
	return m
}
