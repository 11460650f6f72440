// Own labels: what the labels of a model of the user's own mean, by the configuration or by their names.

package classify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kvasir/classify/pii"
	"kvasir/wording"
)

// unsaid is the meaning of a label that says nothing of interest.
const unsaid = "none"

// tag is what a token's label says.
type tag struct {
	kind  pii.Type // 0: nothing
	first bool     // another name begins here, even behind one of the same type
}

// meanings finds what each label means: what mapped says of it, or else its name. meaning returns the names that would
// do where a name means nothing.
func meanings[T any](labels []string, mapped map[string]string, meaning func(name string) (T, []string)) ([]T, error) {
	all, unused := make([]T, len(labels)), maps.Clone(mapped)
	var open, known []string
	for i, label := range labels {
		name, key := renamed(label, mapped)
		delete(unused, key)
		var others []string
		all[i], others = meaning(name)
		switch {
		case others == nil:
		case name != label:
			return nil, fmt.Errorf("labels: %w", oneOf("meaning of a label", mapped[key], others))
		default:
			open, known = append(open, label), others
		}
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("labels: the meaning of %s is not known; give each one of: %s", wording.List(open, "and"), wording.List(known, "or"))
	}
	if len(unused) > 0 {
		return nil, fmt.Errorf("labels: the model has no label %q; it has %s", slices.Sorted(maps.Keys(unused))[0], wording.List(labels, "and"))
	}
	return all, nil
}

// renamed is the name that a label goes by, and the key that says so. A key may leave out the place of a token.
func renamed(label string, mapped map[string]string) (name, key string) {
	for _, key := range []string{label, withoutPlace(label)} {
		if to, ok := mapped[key]; ok {
			return strings.TrimSuffix(label, key) + to, key
		}
	}
	return label, ""
}

// withoutPlace takes off the place of a token in a name, as in B-PERSON.
func withoutPlace(label string) string {
	if len(label) > 2 && (label[1] == '-' || label[1] == '_') && strings.IndexByte("BIESLU", label[0]) >= 0 {
		return label[2:]
	}
	return label
}

// shouted is a label in one spelling.
func shouted(label string) string {
	return strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToUpper(label))
}

// attackOfLabel is the type of an attack, "" for what is none.
func attackOfLabel(name string) (kind string, others []string) {
	switch shouted(name) {
	case "BENIGN", "SAFE", "LEGIT", "LEGITIMATE", "NORMAL", "NONE", "NO_INJECTION":
		return "", nil
	case "JAILBREAK", "MALICIOUS", "UNSAFE", "ATTACK":
		return typeJailbreak, nil
	case "INJECTION", "PROMPT_INJECTION":
		return typeInjection, nil
	case "INDIRECT_INJECTION":
		return typeIndirect, nil
	}
	return "", append([]string{"benign"}, jailbreakTypes()...)
}

// categoryOfLabel is the index of a category.
func categoryOfLabel(name string) (at int, others []string) {
	spelled := strings.ReplaceAll(strings.ToLower(name), "_", " ")
	if at = slices.Index(Categories[:], spelled); at < 0 {
		return 0, Categories[:]
	}
	return at, nil
}

// tagOfLabel is the type of personal data, and whether a name begins with the token.
func tagOfLabel(name string) (t tag, others []string) {
	spelled := shouted(withoutPlace(name))
	if spelled == "O" || spelled == shouted(unsaid) {
		return tag{}, nil
	}
	if len(name) > 2 && name != withoutPlace(name) {
		t.first = strings.IndexByte("BSU", name[0]) >= 0
	}
	for kind := pii.Type(1); kind <= pii.Types(); kind++ {
		if kind.String() == spelled {
			t.kind = kind
			return t, nil
		}
	}
	return tag{}, append(piiTypes(), unsaid)
}
