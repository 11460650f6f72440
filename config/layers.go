// Layers: defaults < file < KVASIR_* environment < flags, merged by koanf into one Config.

package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/v2"
	"go.yaml.in/yaml/v3"
)

const builtInName = "built-in config.yaml"

// variablePrefix begins every environment variable that sets a key.
const variablePrefix = "KVASIR_"

// otherVariables begin with the prefix but set no key: the name of the file, and
// the switch that makes tests require their real parts.
var otherVariables = []string{"KVASIR_CONFIG", "KVASIR_REAL"}

// serviceVariables are what Kubernetes puts into every container beside a
// Service whose name begins with kvasir: KVASIR_SERVICE_HOST,
// KVASIR_PORT_8080_TCP_ADDR ... They are no settings.
var serviceVariables = regexp.MustCompile(
	`^KVASIR_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)?)$`)

// Layers are the sources of one configuration, so that they can be read again.
type Layers struct {
	File    string      // its path; "": the built-in one
	BuiltIn []byte      // what stands in the built-in one
	Environ []string    // NAME=value, as os.Environ gives it
	Flags   []FlagValue // the later wins
}

// A FlagValue is one key set on the command line.
type FlagValue struct {
	Flag string // how messages call it: "--listen", "--set server.listen"
	Path string // of the key: "server.listen"
	Text string
}

// Name is how the file is called in messages.
func (l *Layers) Name() string {
	if l.File == "" {
		return builtInName
	}
	return l.File
}

// bytes reads the file, and says what was read.
func (l *Layers) bytes() ([]byte, Contents, error) {
	if l.File == "" {
		return l.BuiltIn, Contents{}, nil
	}
	data, err := readConfig(l.File)
	read := Contents{l.File: sha256.Sum256(data)}
	if err != nil {
		return nil, read, Problems{{at: place{source: l.File}, text: "cannot read the configuration: " + bare(err).Error()}}
	}
	return data, read, nil
}

// CheckText says what is wrong with the text of a configuration file called source, as Problems, or
// nil. It opens no file.
func CheckText(source string, text []byte, environ []string) error {
	l := &Layers{File: source, Environ: environ}
	if _, _, found := l.merge(text); len(found) > 0 {
		return found
	}
	return nil
}

// merge puts the layers together, data being the bytes of the file, and checks
// everything that needs no other file. There is a Config even if there are
// problems: what is wrong is left out of it.
func (l *Layers) merge(data []byte) (*Config, places, Problems) {
	put := expansions{}
	c, at, bad := l.mergeInto(put, data)
	return c, at, bad.hide(put)
}

// mergeInto is merge; it notes what variables put in, which is still to be hidden from the problems.
func (l *Layers) mergeInto(put expansions, data []byte) (*Config, places, Problems) {
	at := places{"": {source: l.Name(), line: 1, col: 1}}
	var all Problems

	k := koanf.New(".")
	load := func(p koanf.Provider) {
		if err := k.Load(p, nil); err != nil {
			panic("BUG: koanf refuses checked values: " + err.Error())
		}
	}
	load(values(knownKeys.Defaults()))

	fromFile, found := l.fileValues(data, at, put)
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

func (v values) ReadBytes() ([]byte, error) { return nil, errors.New("values are no bytes") }

func (l *Layers) fileValues(data []byte, at places, put expansions) (map[string]any, Problems) {
	root, bad := parseDocument(data)
	if bad != nil {
		bad.at.source = l.Name()
		return nil, Problems{*bad}
	}
	if root == nil {
		return nil, nil
	}
	d := &decoder{
		at: func(n *yaml.Node) place {
			return place{source: l.Name(), line: max(n.Line, 1), col: max(n.Column, 1)}
		},
		env:    l.lookup,
		put:    put,
		places: at,
	}
	if l.File != "" {
		d.dir = filepath.Dir(l.File)
	}
	m, _ := d.value(knownKeys, "", root)
	at[""] = place{source: l.Name(), line: 1, col: 1}
	values, _ := m.(map[string]any)
	return values, d.problems
}

// lookup is os.LookupEnv on the layers' own environment.
func (l *Layers) lookup(name string) (string, bool) {
	for _, e := range slices.Backward(l.Environ) {
		if k, v, ok := strings.Cut(e, "="); ok && k == name {
			return v, true
		}
	}
	return "", false
}

// variableValues gives the koanf provider of the KVASIR_* variables.
func (l *Layers) variableValues(at places) (koanf.Provider, Problems) {
	byName := map[string]*Key{}
	groups := map[string]*Key{}
	knownKeys.leaves(func(k *Key) {
		byName[k.variable()] = k
		for _, name := range k.also {
			byName[strings.TrimSuffix(k.variable(), strings.ToUpper(k.Name))+strings.ToUpper(name)] = k
		}
	})
	knownKeys.all(func(k *Key) {
		if k.Kind == KindGroup && !strings.Contains(k.path, "[]") {
			groups[k.variable()] = k
		}
	})
	var found Problems
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
			example := groups[name].Children[0]
			found = append(found, problem{at: here, kept: true, text: fmt.Sprintf("%s is a group of keys; set each on its own, as %s", groups[name].path, example.variable())})
		default:
			hint := variableHint(name, slices.Concat(slices.Sorted(maps.Keys(byName)), otherVariables))
			found = append(found, problem{at: here, kept: true, text: "no key has this variable" + hint})
		}
		return "", nil
	}
	p := env.Provider(".", env.Opt{
		Prefix:        variablePrefix,
		TransformFunc: transform,
		EnvironFunc:   func() []string { return l.Environ },
	})
	// Read once here, so that what is wrong is known before koanf merges.
	m, err := p.Read()
	if err != nil {
		panic("BUG: the environment cannot be read: " + err.Error())
	}
	return values(m), found
}

func (l *Layers) flagValues(at places) (map[string]any, Problems) {
	m := map[string]any{}
	var found Problems
	for _, f := range l.Flags {
		here := place{layer: layerFlag, source: f.Flag}
		k := Find(f.Path)
		switch {
		case k == nil:
			found = append(found, problem{at: here, path: f.Path, kept: true, text: "unknown key" + pathHint(f.Path)})
			continue
		case k.Kind == KindGroup:
			found = append(found, problem{at: here, path: f.Path, kept: true, text: "is a group of keys; set each on its own, as " + k.Children[0].path})
			continue
		}
		v, usable, bad := textValue(k, f.Text, here, at)
		found = append(found, bad...)
		if usable {
			put(m, k.path, v)
		}
	}
	return m, found
}
