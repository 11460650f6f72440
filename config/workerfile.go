// Worker files: the lists of workers that kind file of discovery finds, in our form and in Prometheus'.

package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"go.yaml.in/yaml/v3"

	"kvasir/filewatch"
	"kvasir/wording"
)

// A WorkerFile is the workers of one file, with everything that was read for them.
type WorkerFile struct {
	Workers     []Worker
	Credentials []Credentials // for each of Workers, in their order
	Read        Contents      // of the files that this one names
}

// ReadWorkers reads a file of workers that a source of discovery found: a list as under
// workers, or Prometheus' file_sd, in YAML or JSON. What it does not say of a worker is
// as the source's entry says. The error is of type Problems; what was read is told
// then, too.
func (g *Generation) ReadWorkers(entry *Discovery, file string, data []byte) (WorkerFile, error) {
	r := &workerReader{file: file, entry: entry, at: places{"": {source: file, line: 1, col: 1}}, found: map[string]Worker{}}
	r.d = &decoder{
		at: func(n *yaml.Node) place {
			return place{source: file, line: max(n.Line, 1), col: max(n.Column, 1)}
		},
		env: g.env, put: expansions{}, dir: filepath.Dir(file), places: r.at,
	}
	c := &Config{Discovery: []Discovery{*entry}}
	var bad Problems
	root, syntax := parseDocument(data)
	switch {
	case syntax != nil:
		syntax.at.source = file
		bad = Problems{*syntax}
	case root == nil:
		bad = Problems{{at: r.at[""], text: "the file has no list; a file that has no workers says []"}}
	default:
		c.Workers = r.workers(root)
		bad = r.d.problems
	}
	c.fill()
	v := &validation{}
	v.workers(c)
	v.gpus(c)
	b := &loader{config: c, dir: filepath.Dir(file), files: Contents{}, readFile: func(path string) ([]byte, error) { return filewatch.Read(path, MaxRead) }}
	f := WorkerFile{Workers: c.Workers, Credentials: b.workers(), Read: b.files}
	if bad = bad.with(v.found, r.at).with(b.found, r.at); len(bad) > 0 {
		return WorkerFile{Read: b.files}, bad.hide(r.d.put)
	}
	return f, nil
}

// A workerReader turns one file into workers.
type workerReader struct {
	file  string
	entry *Discovery
	at    places
	d     *decoder
	found map[string]Worker // by URL and, of Dynamo, instance
}

// again says whether the file has described the worker before, as groups of targets do
// that differ in labels for Prometheus. Described in another way than before is an error.
func (r *workerReader) again(w Worker, path string) bool {
	at := w.URL
	if w.Engine == "dynamo" {
		at += "#" + w.Instance // all behind one frontend
	}
	before, again := r.found[at]
	if !again {
		r.found[at] = w
	} else if !reflect.DeepEqual(before, w) {
		r.wrong(path+".url", "this file has the worker at this URL before, and says other things of it there")
	}
	return again
}

const workersPath = "workers"

// workers are those of a list, each an entry of workers or a group of targets.
func (r *workerReader) workers(root *yaml.Node) (all []Worker) {
	key := knownKeys.child(workersPath)
	if root.Kind != yaml.SequenceNode {
		hint := ""
		if root.Kind == yaml.MappingNode {
			hint = "; begin each worker with -"
		}
		r.d.problem(root, "", "must be a list of workers, is %s%s", key.describe(root), hint)
		return nil
	}
	for _, n := range root.Content {
		if r.d.tooLarge {
			break
		}
		if isTargets(n) {
			all = append(all, r.targets(n, len(all))...)
			continue
		}
		path := fmt.Sprintf("%s[%d]", workersPath, len(all))
		v, _ := r.d.value(key.Elem, path, n)
		m, ok := v.(map[string]any)
		if !ok {
			if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
				r.d.problem(n, path, "is empty")
			}
			m = map[string]any{} // it keeps its index, so that later problems name the right one
		}
		if w := r.worker(m, path); !ok || w.URL == "" || !r.again(w, path) {
			all = append(all, w)
		}
	}
	return all
}

// worker is one worker of the values of its keys.
func (r *workerReader) worker(m map[string]any, path string) (w Worker) {
	set := func(name string) bool { _, ok := m[name]; return ok }
	e := r.entry
	unset := map[string]bool{}
	for _, name := range []string{"engine", "role", "models", "max_requests"} {
		unset[name] = !set(name)
	}
	dec, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{TagName: "koanf", Result: &w, ErrorUnused: true})
	if err == nil {
		err = dec.Decode(withDefaults(knownKeys.child(workersPath).Elem, m))
	}
	if err != nil {
		panic("BUG: checked values do not fit Worker: " + err.Error())
	}
	if unset["engine"] {
		w.Engine = e.Engine
	}
	if unset["role"] {
		w.Role = e.Role
	}
	if unset["models"] {
		w.Models = e.Models
	}
	if unset["max_requests"] {
		w.MaxRequests = e.MaxRequests
	}
	if !set("tls") && strings.HasPrefix(w.URL, "https://") {
		w.TLS = e.TLS
	}
	if !set("key_file") && !slices.ContainsFunc(slices.Collect(maps.Keys(w.Headers)), func(h string) bool { return strings.EqualFold(h, "Authorization") }) {
		w.KeyFile = e.KeyFile
	}
	return w
}

// A targetGroup is one element of Prometheus' file_sd.
type targetGroup struct {
	Targets []string          `koanf:"targets"`
	Labels  map[string]string `koanf:"labels"`
}

var targetGroupKey = keyOf(reflect.TypeFor[targetGroup](), "", "", "")

// isTargets says whether an element of the list is one of Prometheus' groups.
func isTargets(n *yaml.Node) bool {
	if n = aliased(n); n == nil || n.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i < len(n.Content); i += 2 {
		if name := n.Content[i].Value; name == "targets" || name == "labels" {
			return true
		}
	}
	return false
}

// Labels of a group that say something of its workers. Others are not looked at: they
// are for Prometheus.
const (
	ownLabel    = "kvasir_"
	schemeLabel = "__scheme__"
)

// labelKeys are the keys of workers that labels may set, kvasir_ before each.
var labelKeys = []string{"engine", "role", "models", "max_requests"}

// targets are the workers of a group. first is the index of the first.
func (r *workerReader) targets(n *yaml.Node, first int) (all []Worker) {
	path := fmt.Sprintf("%s[%d]", workersPath, first)
	v, _ := r.d.value(targetGroupKey, path, withOwnLabels(n))
	group, _ := v.(map[string]any)
	labels, _ := group["labels"].(map[string]any)
	scheme, common := "http", map[string]any{}
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		text, _ := labels[label].(string)
		at := path + ".labels." + shorten(label)
		name, own := strings.CutPrefix(label, ownLabel)
		switch {
		case label == schemeLabel:
			if scheme = strings.ToLower(text); scheme != "http" && scheme != "https" {
				r.wrong(at, fmt.Sprintf("must be http or https, not %s", wording.Quote(text)))
			}
		case !own:
		case !slices.Contains(labelKeys, name):
			r.wrong(at, "unknown label"+r.labelHint(label))
		default:
			if v, ok := r.label(name, text, at); ok {
				common[name] = v
			}
		}
	}
	targets, _ := group["targets"].([]any)
	if len(targets) == 0 && v != nil {
		return nil // Prometheus has groups without targets, too
	}
	for i, target := range targets {
		text, _ := target.(string)
		at := fmt.Sprintf("%s[%d]", workersPath, first+len(all))
		r.at[at] = r.at.of(fmt.Sprintf("%s.targets[%d]", path, i))
		m := maps.Clone(common)
		if m["url"] = scheme + "://" + text; strings.Contains(text, "://") {
			r.wrong(at+".url", "is a URL; a target is host:port, and the label __scheme__ says http or https")
		}
		if w := r.worker(m, at); !r.again(w, at) {
			all = append(all, w)
		}
	}
	return all
}

// withOwnLabels is a group without the labels that are not looked at, whatever they hold.
func withOwnLabels(n *yaml.Node) *yaml.Node {
	group := *aliased(n)
	group.Content = slices.Clone(group.Content)
	for i := 0; i+1 < len(group.Content); i += 2 {
		labels := aliased(group.Content[i+1])
		if group.Content[i].Value != "labels" || labels == nil || labels.Kind != yaml.MappingNode {
			continue
		}
		own := *labels
		own.Content = nil
		for j := 0; j+1 < len(labels.Content); j += 2 {
			if name := labels.Content[j].Value; name == schemeLabel || strings.HasPrefix(name, ownLabel) {
				own.Content = append(own.Content, labels.Content[j:j+2]...)
			}
		}
		group.Content[i+1] = &own
	}
	return &group
}

func aliased(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// label reads a label's text as the worker's key of that name.
func (r *workerReader) label(name, text, at string) (v any, ok bool) {
	k := knownKeys.child(workersPath).Elem.child(name)
	v, ok, bad := textValue(k, text, r.at.of(at), places{})
	for _, p := range bad {
		r.wrong(at, p.text)
	}
	return v, ok && len(bad) == 0
}

func (r *workerReader) labelHint(label string) string {
	var known []string
	for _, k := range labelKeys {
		known = append(known, ownLabel+k)
	}
	if hint := wording.DidYouMean(label, known); hint != "" {
		return hint
	}
	return "; known here: " + strings.Join(known, ", ")
}

func (r *workerReader) wrong(path, text string) {
	r.d.problems = append(r.d.problems, problem{at: r.at.of(path), path: path, text: text})
}
