// Which programs' configurations become ours, and what the result of that is.

// Package convert makes Kvasir's configuration of another program's: Semantic Router's or LiteLLM's.
// Whatever has no counterpart is told, with its line: nothing is dropped in silence. Secrets are
// never copied, the result names variables of the environment for them.
//
//	r, err := convert.Convert("vllm-sr", "config.yaml", data)
//	r.Text, r.Notes, r.Variables
//
// Another program is a row of sources, and files that fill a draft.
package convert

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"kvasir/config"
	"kvasir/wording"
)

// A source is one program whose configuration can be read.
type source struct {
	name    string // of --from
	program string
	convert func(doc *doc, root *value, d *draft) error
}

// sources is a function, since a row leads to functions that name the sources.
func sources() []source {
	return []source{
		{"vllm-sr", "vLLM Semantic Router", fromSemanticRouter},
		{"litellm", "LiteLLM's proxy", fromLiteLLM},
	}
}

// Sources are the names that Convert knows.
func Sources() (names []string) {
	for _, s := range sources() {
		names = append(names, s.name)
	}
	return names
}

// A Note is something of the file that has no counterpart, or not quite one.
type Note struct {
	Line int    // of the file, from 1
	What string // the path of it, such as routing.decisions[2].plugins[0]
	Text string // what became of it, and what to do
}

// A Result is a configuration of ours, and what does not stand in it.
type Result struct {
	Text      []byte
	Notes     []Note   // in the order of the file
	Variables []string // of the environment, that Text takes secrets from
	Problem   error    // what `kvasir check` has against Text; nil: nothing
}

// mostNotes bounds what one file can print.
const mostNotes = 1000

// Convert makes ours of the configuration of a program; name is what its file is called. The error
// says why nothing can be made of it.
func Convert(from, name string, data []byte) (*Result, error) {
	i := slices.IndexFunc(sources(), func(s source) bool { return s.name == from })
	if i < 0 {
		return nil, fmt.Errorf("%s is no program whose configuration can be read%s; those are %s",
			wording.Quote(from), wording.DidYouMean(from, Sources()), wording.List(Sources(), "and"))
	}
	s := sources()[i]
	doc, root, err := read(name, data)
	if err != nil {
		return nil, err
	}
	d := &draft{doc: doc, program: s.program}
	if err := s.convert(doc, root, d); err != nil {
		return nil, err
	}
	doc.noteUnread(root)
	text := d.text()
	r := &Result{Text: text, Notes: doc.sorted(), Variables: d.variables}
	r.Problem = config.CheckText("result", text, standIns(d))
	return r, nil
}

// standIns give every variable a value that may stand wherever the result names one.
func standIns(d *draft) (environ []string) {
	for _, name := range d.variables {
		sum := sha256.Sum256([]byte(name))
		value := hex.EncodeToString(sum[:])
		if slices.Contains(d.addresses, name) {
			value = "http://" + value[:32] + ".invalid"
		}
		environ = append(environ, name+"="+value)
	}
	return environ
}

// unlike says that a file is not what it was taken for.
func unlike(doc *doc, program string, keys []string, root *value) error {
	hint := ""
	for _, other := range []struct{ key, name string }{
		{"apiVersion", "Kubernetes: take the file out of the object first"},
		{"model_list", "LiteLLM: use --from litellm"},
		{"vllm_endpoints", "Semantic Router: use --from vllm-sr"},
		{"workers", "Kvasir itself: check it with kvasir check"},
		{"static_resources", "Envoy: docs/migrate.md says what becomes of its parts"},
	} {
		if root.has(other.key) && !slices.Contains(keys, other.key) {
			hint = "; it looks like one of " + other.name
			break
		}
	}
	return fmt.Errorf("%s is no configuration of %s, which has some of %s at its top%s", doc.name, program, wording.List(keys, "and"), hint)
}
