// Hints: the known key that was probably meant by an unknown one.

package config

import (
	"fmt"
	"slices"
	"strings"

	"kvasir/wording"
)

// elsewhereNames are what other programs call a key that has another form here.
var elsewhereNames = map[string]string{
	"workers[].api_key": `; write the key into a file that key_file names, or set headers: {Authorization: "Bearer ${VARIABLE}"}`,
	"keys[].api_key":    "; give its SHA-256 in hex as sha256, or a file that holds it as key_file",
	"keys[].key":        "; give its SHA-256 in hex as sha256, or a file that holds it as key_file",
}

// unknownHint says what was probably meant by the unknown name of a key under k:
// a misspelled sibling, or the same key at another place.
func unknownHint(k *Key, name string) string {
	if hint, known := elsewhereNames[join(k.path, wording.Plain(name))]; known {
		return hint
	}
	if hint := wording.DidYouMean(name, childNames(k)); hint != "" {
		return hint
	}
	for _, sibling := range childNames(k) {
		if slices.Contains(strings.Split(sibling, "_"), wording.Plain(name)) {
			return fmt.Sprintf(", did you mean %q?", sibling)
		}
	}
	var elsewhere []string
	knownKeys.all(func(other *Key) {
		same := other.Name == wording.Plain(name) || other.Name == wording.Plain(name)+"s"
		if same && len(elsewhere) < 4 {
			elsewhere = append(elsewhere, other.path)
		}
	})
	if len(elsewhere) > 0 {
		return ", did you mean " + wording.List(elsewhere, "or") + "?"
	}
	names := slices.Sorted(slices.Values(childNames(k)))
	return "; known here: " + strings.Join(names, ", ")
}

func childNames(k *Key) []string {
	names := make([]string, len(k.Children))
	for i, c := range k.Children {
		names[i] = c.Name
	}
	return names
}

// pathHint says which path of --set was probably meant.
func pathHint(path string) string {
	paths := Paths()
	if hint := wording.DidYouMean(path, paths); hint != "" {
		return hint
	}
	name := path[strings.LastIndexByte(path, '.')+1:]
	for _, p := range paths {
		if strings.HasSuffix(p, "."+wording.Plain(name)) {
			return fmt.Sprintf(", did you mean %q?", p)
		}
	}
	return ""
}

// variableHint says which KVASIR_* variable was probably meant: a misspelled one, or one without the
// name of its section.
func variableHint(name string, known []string) string {
	if hint := wording.DidYouMean(name, known); hint != "" {
		return hint
	}
	meant := ""
	for _, other := range known {
		if strings.HasSuffix(other, strings.TrimPrefix(name, "KVASIR")) && (meant == "" || len(other) < len(meant)) {
			meant = other
		}
	}
	if meant == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", meant)
}

// hint is wording.DidYouMean for the middle of a sentence.
func hint(word string, candidates []string) string {
	return strings.TrimSuffix(wording.DidYouMean(word, candidates), "?")
}
