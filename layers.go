// Layers: defaults < file < KVASIR_* environment < flags, merged by koanf into one Config.
package main

import (
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
	"go.yaml.in/yaml/v3"
)

// builtIn is the configuration that runs when no file is named. It is also
// the documented example.
//
//go:embed config.yaml
var builtIn []byte

const builtInName = "built-in config.yaml"

// variablePrefix begins every environment variable that sets a key.
const variablePrefix = "KVASIR_"

// otherVariables begin with the prefix and set no key: the file's name, and
// the switch of the tests for real engines.
var otherVariables = []string{"KVASIR_CONFIG", "KVASIR_REAL"}

// serviceVariables are what Kubernetes puts into every container beside a
// Service whose name begins with kvasir: KVASIR_SERVICE_HOST,
// KVASIR_PORT_8080_TCP_ADDR ... They are no settings.
var serviceVariables = regexp.MustCompile(
	`^KVASIR_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)?)$`)

// layers are the sources of one configuration, so that they can be read again.
type layers struct {
	file    string   // "": the built-in one
	environ []string // NAME=value
	flags   []flagValue
}

// A flagValue is one key set on the command line.
type flagValue struct {
	flag string // "--listen", "--set server.listen"
	path string
	text string
}

// name is how the file is called in messages.
func (l *layers) name() string {
	if l.file == "" {
		return builtInName
	}
	return l.file
}

// bytes reads the file, and says what was read.
func (l *layers) bytes() ([]byte, contents, error) {
	if l.file == "" {
		return builtIn, contents{}, nil
	}
	data, err := readConfig(l.file)
	read := contents{l.file: sha256.Sum256(data)}
	if err != nil {
		return nil, read, problems{{at: place{source: l.file}, text: "cannot read the configuration: " + bare(err).Error()}}
	}
	return data, read, nil
}

// merge puts the layers together, with the bytes of the file given, and
// checks everything that needs no other file. There is a Config also when
// there are problems: what is wrong is left out of it.
func (l *layers) merge(data []byte) (*Config, places, problems) {
	at := places{"": {source: l.name(), line: 1, col: 1}}
	var all problems

	k := koanf.New(".")
	load := func(p koanf.Provider) {
		if err := k.Load(p, nil); err != nil {
			panic("BUG: koanf refuses checked values: " + err.Error())
		}
	}
	load(values(knownKeys.defaults()))

	fromFile, found := l.fileValues(data, at)
	all = append(all, found...)
	load(values(fromFile))

	variables, found := l.variableValues(at)
	all = append(all, found...)
	load(variables)

	flags, found := l.flagValues(at)
	all = append(all, found...)
	load(values(flags))

	cfg := &Config{}
	if err := k.UnmarshalWithConf("", cfg, koanf.UnmarshalConf{
		DecoderConfig: &mapstructure.DecoderConfig{TagName: "koanf", Result: cfg, ErrorUnused: true},
	}); err != nil {
		panic("BUG: checked values do not fit Config: " + err.Error())
	}
	cfg.fill()
	cfg.Cache.leavePath(at["cache.path"])
	return cfg, at, all.with(cfg.validate(), at)
}

// values is a koanf provider of values that are there already.
type values map[string]any

func (v values) Read() (map[string]any, error) { return v, nil }
func (v values) ReadBytes() ([]byte, error)    { return nil, errors.New("values are no bytes") }

func (l *layers) fileValues(data []byte, at places) (map[string]any, problems) {
	root, bad := parseDocument(data)
	if bad != nil {
		bad.at.source = l.name()
		return nil, problems{*bad}
	}
	if root == nil {
		return nil, nil
	}
	d := &decoder{
		at: func(n *yaml.Node) place {
			return place{source: l.name(), line: max(n.Line, 1), col: max(n.Column, 1)}
		},
		env:    l.lookup,
		places: at,
	}
	if l.file != "" {
		d.dir = filepath.Dir(l.file)
	}
	m, _ := d.value(knownKeys, "", root)
	at[""] = place{source: l.name(), line: 1, col: 1}
	values, _ := m.(map[string]any)
	return values, d.problems
}

// lookup is os.LookupEnv on the layers' own environment.
func (l *layers) lookup(name string) (string, bool) {
	for _, e := range slices.Backward(l.environ) {
		if k, v, ok := strings.Cut(e, "="); ok && k == name {
			return v, true
		}
	}
	return "", false
}

// variableValues gives the koanf provider of the KVASIR_* variables.
func (l *layers) variableValues(at places) (koanf.Provider, problems) {
	byName := map[string]*knownKey{}
	groups := map[string]*knownKey{}
	knownKeys.leaves(func(k *knownKey) { byName[k.variable()] = k })
	knownKeys.all(func(k *knownKey) {
		if k.kind == kindGroup && !strings.Contains(k.path, "[]") {
			groups[k.variable()] = k
		}
	})
	var found problems
	transform := func(name, text string) (string, any) {
		k, ok := byName[name]
		here := place{layer: layerVariable, source: name}
		switch {
		case ok:
			v, usable, bad := textValue(k, text, here, at)
			found = append(found, bad...)
			if usable {
				return k.path, v
			}
		case slices.Contains(otherVariables, name) || serviceVariables.MatchString(name):
		case groups[name] != nil:
			example := groups[name].children[0]
			found = append(found, problem{at: here, kept: true, text: fmt.Sprintf("%s is a group of keys; set each on its own, as %s", groups[name].path, example.variable())})
		default:
			hint := didYouMean(name, slices.Concat(slices.Sorted(maps.Keys(byName)), otherVariables))
			found = append(found, problem{at: here, kept: true, text: "no key has this variable" + hint})
		}
		return "", nil
	}
	p := env.Provider(".", env.Opt{
		Prefix:        variablePrefix,
		TransformFunc: transform,
		EnvironFunc:   func() []string { return l.environ },
	})
	// Read once here, so that what is wrong is known before koanf merges.
	m, err := p.Read()
	if err != nil {
		panic("BUG: the environment cannot be read: " + err.Error())
	}
	return values(m), found
}

func (l *layers) flagValues(at places) (map[string]any, problems) {
	m := map[string]any{}
	var found problems
	for _, f := range l.flags {
		here := place{layer: layerFlag, source: f.flag}
		k := knownKeys.find(f.path)
		switch {
		case k == nil:
			found = append(found, problem{at: here, path: f.path, kept: true, text: "unknown key" + pathHint(f.path)})
			continue
		case k.kind == kindGroup:
			found = append(found, problem{at: here, path: f.path, kept: true, text: "is a group of keys; set each on its own, as " + k.children[0].path})
			continue
		}
		v, usable, bad := textValue(k, f.text, here, at)
		found = append(found, bad...)
		if usable {
			put(m, f.path, v)
		}
	}
	return m, found
}

// readConfig reads a configuration file with koanf's provider. That one reads
// whatever there is, so what cannot be a configuration, such as a model's
// weights named by mistake, and what may never end, such as a pipe, is read up
// to the bound only; parseDocument says that it is too large.
//
// koanf's YAML parser does not follow it: it decodes into values before anybody
// knows what a key wants, and what was written is lost by then. A model 4.10
// would be asked for as 4.1, a header 010 sent as 8; one duplicate key would
// hide every other error. So the decoder reads the values off the nodes, which
// it has to walk for their places anyway, and a test holds both against each
// other (twin_test.go).
func readConfig(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && (!info.Mode().IsRegular() || info.Size() > maxFile) {
		return readBounded(path)
	}
	return file.Provider(path).ReadBytes()
}

// maxRead bounds what is read of any file, in bytes: as much as the largest of
// them, a file of certificates, may have, and one more to tell that it is larger.
// It is the same for all, so that the watcher compares what was read.
const maxRead = maxPEMFile + 1

// bare is an error of package os without the operation and the path, where
// the message says both already.
func bare(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// readBounded reads at most maxRead bytes of a file, which may be a pipe.
func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxRead))
}
