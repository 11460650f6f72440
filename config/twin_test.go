// The slow, obvious twin of the decoder: koanf's own YAML parser, which has to find the same values.

package config

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	kyaml "github.com/knadh/koanf/parsers/yaml"
)

// TestTwin wants what koanf's parser finds in a file, anchors and merge keys
// resolved, to be what the decoder finds in it, and nothing more.
func TestTwin(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../testdata/config/good/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	compared := 0
	for _, name := range append(files, "../config.yaml") {
		l := &Layers{File: name, Environ: testVariables}
		data, err := os.ReadFile(name)
		do(t, err)
		compared += checkTwin(t, l, data)
	}
	if compared < 100 {
		t.Errorf("only %d values were compared", compared)
	}
}

// checkTwin compares what both find in a good file, and says how many values
// they were.
func checkTwin(t *testing.T, l *Layers, data []byte) (compared int) {
	t.Helper()
	theirs, err := kyaml.Parser().Unmarshal(bytes.TrimPrefix(data, byteOrderMark))
	if err != nil && strings.Contains(err.Error(), "excessive aliasing") {
		return 0 // its bound is another one
	}
	if err != nil {
		t.Errorf("%s: koanf's parser refuses it: %v", l.Name(), err)
		return 0
	}
	mine, bad := l.fileValues(data, places{}, expansions{})
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	for _, difference := range twins(knownKeys, "", mine, theirs, &compared) {
		t.Errorf("%s: %s", l.Name(), difference)
	}
	return compared
}

// TestParserLosesText is why koanf's parser is the twin and not the source of
// the values: it has made numbers of texts before the key could be asked.
func TestParserLosesText(t *testing.T) {
	t.Parallel()
	text := "workers:\n  - {url: http://a:1, models: [4.10, 1e3], headers: {X-Code: 010}}\n"
	raw, err := kyaml.Parser().Unmarshal([]byte(text))
	do(t, err)
	lost := raw["workers"].([]any)[0].(map[string]any)
	if got := fmt.Sprint(lost["models"], lost["headers"]); got != "[4.1 1000] map[X-Code:8]" {
		t.Errorf("the parser found %s: it may now be the source of the values", got)
	}
	c, _, bad := (&Layers{File: "x.yaml"}).merge([]byte(text))
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	if w := c.Workers[0]; !slices.Equal(w.Models, []string{"4.10", "1e3"}) || w.Headers["X-Code"] != "010" {
		t.Errorf("the decoder found %+v", w)
	}
}

// twins lists where the decoder's value and the parser's differ. What only the
// decoder has must be a default; texts that the parser made numbers of, and
// what ${VAR} stands for, cannot be compared.
func twins(k *Key, path string, mine, theirs any, compared *int) []string {
	if k.Kind == KindWhen { // no plain values: its own tests compare them
		return nil
	}
	switch theirs := theirs.(type) {
	case nil, map[any]any: // with keys that are no texts for the parser
		return nil
	case map[string]any:
		own, _ := mine.(map[string]any)
		return twinGroups(k, path, own, theirs, compared)
	case []any:
		own, ok := mine.([]any)
		if !ok || len(own) != len(theirs) {
			return []string{fmt.Sprintf("%s has %d elements, not %d", path, len(own), len(theirs))}
		}
		var found []string
		for i := range theirs {
			found = append(found, twins(k.Elem, fmt.Sprintf("%s[%d]", path, i), own[i], theirs[i], compared)...)
		}
		return found
	}
	text, isText := theirs.(string)
	switch {
	case !isText && (k.Kind == KindText || k.Kind == KindPath || k.Kind == KindMap), strings.Contains(text, "$"):
		return nil
	case k.Kind == KindPath:
		theirs, mine = filepath.Base(text), filepath.Base(fmt.Sprint(mine))
	case k.Kind != KindMap:
		parsed, err := k.Parse(fmt.Sprint(theirs))
		if err != nil {
			return []string{fmt.Sprintf("%s: the parser's %v: %v", path, theirs, err)}
		}
		theirs = parsed
	}
	*compared++
	if !reflect.DeepEqual(mine, theirs) {
		return []string{fmt.Sprintf("%s is %#v, and %#v for the parser", path, mine, theirs)}
	}
	return nil
}

func twinGroups(k *Key, path string, mine, theirs map[string]any, compared *int) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		child := k
		if k.Kind != KindMap {
			if child = k.child(name); child == nil {
				found = append(found, fmt.Sprintf("%s is no key, and was accepted", join(path, name)))
				continue
			}
		}
		found = append(found, twins(child, join(path, name), mine[name], theirs[name], compared)...)
	}
	for name, v := range mine {
		if _, ok := theirs[name]; ok {
			continue
		}
		if child := k.child(name); child == nil || child.Kind != KindGroup && !reflect.DeepEqual(v, child.value) {
			found = append(found, fmt.Sprintf("%s is %#v, and nothing for the parser", join(path, name), v))
		}
	}
	return found
}
