// The JSON schema of the configuration, config.schema.json, made from the known keys for editors.

package config

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestSchema keeps config.schema.json equal to the known keys; -update
// rewrites it.
func TestSchema(t *testing.T) {
	t.Parallel()
	s := schemaOf(knownKeys, comments(t))
	s["$schema"] = "http://json-schema.org/draft-07/schema#"
	s["title"] = "Kvasir configuration"
	got, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile("../config.schema.json", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("../config.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Error("config.schema.json is not what the known keys make; run: go test ./config -run TestSchema -update")
	}
	if first, _, _ := strings.Cut(string(builtIn(t)), "\n"); first != "# yaml-language-server: $schema=config.schema.json" {
		t.Errorf("the first line of config.yaml is %q", first)
	}
}

// schemaOf is the schema of one key. Every scalar may also be a string with a
// variable in it.
func schemaOf(k *Key, descriptions map[string]string) map[string]any {
	s := map[string]any{}
	variable := map[string]any{"type": "string", "pattern": `\$\{.+\}`}
	switch k.Kind {
	case KindGroup:
		props := map[string]any{}
		for _, c := range k.Children {
			for _, name := range append([]string{c.Name}, c.also...) {
				props[name] = schemaOf(c, descriptions)
			}
		}
		s["type"], s["properties"], s["additionalProperties"] = []string{"object", "null"}, props, false
	case KindList:
		s["type"], s["items"] = []string{"array", "null"}, schemaOf(k.Elem, descriptions)
	case KindWhen:
		s["type"], s["$comment"] = "object", "signals and their values; all, any and not nest"
	case KindMap:
		s["type"], s["additionalProperties"] = []string{"object", "null"}, map[string]any{"type": []string{"string", "number"}}
	case KindText, KindPath:
		s["type"] = []string{"string", "number", "null"}
		if len(k.OneOf) > 0 {
			values := []any{nil}
			for _, v := range k.OneOf {
				values = append(values, v)
			}
			s = map[string]any{"anyOf": []any{map[string]any{"enum": values}, variable}}
			if values[len(values)-1] == "off" { // which YAML reads as false without quotes
				s["anyOf"] = append(s["anyOf"].([]any), map[string]any{"const": false})
			}
		}
	case KindBool:
		s["anyOf"] = []any{map[string]any{"type": []string{"boolean", "null"}}, map[string]any{"enum": []string{"yes", "no", "on", "off"}}, variable}
	case KindInt, KindFloat:
		number := map[string]any{"type": []string{map[Kind]string{KindInt: "integer", KindFloat: "number"}[k.Kind], "null"}}
		if k.min != nil {
			number["minimum"] = k.min
		}
		if k.max != nil {
			number["maximum"] = k.max
		}
		s["anyOf"] = []any{number, variable}
	case KindDuration:
		s["anyOf"] = []any{map[string]any{"type": []string{"string", "null"}, "pattern": `^([0-9.]+(ns|us|µs|ms|s|m|h))+$`}, map[string]any{"const": 0}, variable}
	case KindSize:
		s["anyOf"] = []any{map[string]any{"type": []string{"string", "null"}, "pattern": `^[0-9.]+ ?([KMGTkmgt]?[iI]?[Bb])?$`}, map[string]any{"type": "integer"}, variable}
	}
	if k.value != nil {
		s["default"] = k.value
		if k.Kind == KindDuration || k.Kind == KindSize {
			s["default"] = Show(k.value)
		}
	}
	if d := descriptions[k.path]; d != "" {
		s["description"] = d
	}
	return s
}

// comments are what config.yaml says behind a key, by path.
func comments(t *testing.T) map[string]string {
	found := map[string]string{}
	var walk func(n *yaml.Node, path string)
	walk = func(n *yaml.Node, path string) {
		if n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			at := join(path, key.Value)
			found[at] = strings.TrimPrefix(strings.TrimSpace(key.LineComment+value.LineComment), "# ")
			walk(value, at)
		}
	}
	root, bad := parseDocument(builtIn(t))
	if bad != nil {
		t.Fatal(bad)
	}
	walk(root, "")
	// Keys of list elements stand in comments: "#     url: ...   # what it is".
	list := ""
	element := regexp.MustCompile(`^#  +(- )?([a-z_0-9]+):.*?\s# (.+)$`)
	under := ""
	// A key whose default depends on others stands in a comment, among its siblings.
	sibling, parents := regexp.MustCompile(`^( +)# ([a-z_]+): .*\s# (.+)$`), [2]string{}
	section := regexp.MustCompile(`^( {0,2})([a-z_]+):`)
	for line := range strings.Lines(string(builtIn(t))) {
		line = strings.TrimRight(line, "\n")
		if m := section.FindStringSubmatch(line); m != nil {
			parents[len(m[1])/2] = m[2]
		}
		switch m := sibling.FindStringSubmatch(line); {
		case len(m) > 0 && len(m[1]) == 2:
			found[join(parents[0], m[2])] = m[3]
		case len(m) > 0 && len(m[1]) == 4:
			found[join(join(parents[0], parents[1]), m[2])] = m[3]
		case strings.HasPrefix(line, "# [restart] Engines inside"):
			list = "simulate"
		case regexp.MustCompile(`^# [a-z]+:$`).MatchString(line):
			list = strings.Trim(line, "# :")
		case list != "" && element.MatchString(line):
			m := element.FindStringSubmatch(line)
			name := m[2]
			if deep := strings.HasPrefix(line, "#       "); !deep {
				under = ""
			}
			found[join(list+"[]"+under, name)] = m[3]
			if k := Find(list); k.Elem.child(name) != nil && k.Elem.child(name).Kind == KindGroup {
				under = "." + name
			}
		}
	}
	for path := range found {
		if !regexp.MustCompile(`^[a-z_0-9.]+(\[\][a-z_0-9.]*)?$`).MatchString(path) {
			t.Errorf("comment at %s", path)
		}
	}
	if found["workers[].tls.ca"] == "" || found["server.drain.delay"] == "" {
		t.Errorf("the comments of config.yaml were not understood: %v", fmt.Sprint(found))
	}
	return found
}
