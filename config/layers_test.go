// Tests of the layers: what wins, and how each value of the environment and the flags is read.

package config

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestPrecedence(t *testing.T) {
	t.Parallel()
	file := "server: {listen: ':1', max_body: 1KiB}\nworkers: [{url: http://a:1}, {url: http://b:1}]\n"
	l := &Layers{
		File: "x.yaml",
		Environ: []string{
			"KVASIR_SERVER_MAX_BODY=64MiB", "KVASIR_SERVER_TIMEOUTS_FIRST_BYTE=7s", "KVASIR_SERVER_LISTEN=:2",
			"KVASIR_CONFIG=ignored", "KVASIR_REAL=required", "KVASIR_SERVICE_HOST=10.0.0.1", "OTHER=1",
			"KVASIR_PORT_8080_TCP_ADDR=10.0.0.1", "KVASIR_EDGE_SERVICE_PORT_HTTP=80", "KVASIR_PORT=tcp://10.0.0.1:80",
		},
		Flags: []FlagValue{{"--listen", "server.listen", ":3"}, {"--set log.level", "log.level", "warn"}},
	}
	c, at, bad := l.merge([]byte(file))
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	if c.Server.Listen != ":3" || c.Server.MaxBody != 64<<20 || c.Server.Timeouts.FirstByte != 7*time.Second || c.Log.Level != "warn" {
		t.Errorf("server is %+v, log %+v", c.Server, c.Log)
	}
	if c.Server.Timeouts.Idle != time.Minute || c.Server.Admin != "127.0.0.1:9090" {
		t.Errorf("defaults are lost: %+v", c.Server)
	}
	if len(c.Workers) != 2 || len(c.Simulate) != 0 {
		t.Errorf("a file replaces the built-in one: %+v", c)
	}
	for path, want := range map[string]string{
		"server.listen": "--listen", "server.max_body": "KVASIR_SERVER_MAX_BODY", "workers[1].url": "x.yaml:2:36",
		"workers[1].name": "x.yaml:2:30", "log.level": "--set log.level", "routing.policy": "x.yaml:1:1",
	} {
		if got := at.of(path).String(); got != want {
			t.Errorf("%s comes from %s, want %s", path, got, want)
		}
	}
}

func TestTextValues(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		path, text string
		want       any // a string is the error
	}{
		{"server.max_body", "64MiB", Size(64 << 20)},
		{"server.max_body", " 10 ", Size(10)},
		{"server.max_body", "", errorText("F: server.max_body: is empty")},
		{"server.admin", "", ""},
		{"server.listen", "8080", "8080"}, // a string; validate says the rest
		{"server.listen", "null", "null"},
		{"server.listen", "${HOME}", "${HOME}"}, // the shell's work
		{"headers.kvasir", "no", false},
		{"routing.queue", "off", "off"},
		{"routing.queue", "false", "off"},
		{"cache.store", "off", "off"},
		{"gpu.mode", "off", "off"},
		{"gpu.mode", "false", "off"},
		{"gpu.mode", "on", errorText(`F: gpu.mode: must be auto or off, not "on", did you mean "auto"?`)},
		{"gpu.errors", "exclude", errorText(`F: gpu.errors: must be cost, aside or off, not "exclude", did you mean "aside"?`)},
		{"gpu.headroom", "1GiB", Size(1 << 30)},
		{"classify.models", "", ""},
		{"signals", "[]", []any{}},
		{"signals", "[a]", errorText(`F: signals[0]: must be a mapping of name, keywords, method, operator, case_sensitive, phrases, aggregate, threshold, tokens, conversation, structure and reask, is the string "a"`)},
		{"server.cors", "https://a, https://b", []any{"https://a", "https://b"}},
		{"server.cors", "[https://a, https://b]", []any{"https://a", "https://b"}},
		{"server.cors", "", []any{}},
		{"server.cors", "[a", errorText("F: server.cors: this is not YAML: did not find expected ',' or ']'")},
		{"workers", "", []any{}},
		{"workers", "a,b", errorText("F: workers: must be a list, is the string \"a,b\"; did you mean [{url: a},{url: b}]?")},
		{"workers", "- url: http://a:1", []any{map[string]any{"url": "http://a:1", "role": "both", "max_requests": 0, "tls": map[string]any{"insecure": false}}}},
		{"routing.policy", "power-of-two", "p2c"},
		{"routing.policy", "least-loaded", "least_loaded"},
		{"routing.policy", "leastloaded", errorText(`F: routing.policy: must be predict, kv, round_robin, random, least_loaded or p2c, not "leastloaded", did you mean "least_loaded"?`)},
		{"server.cors", strings.Repeat("a", maxFile+1), errorText("F: server.cors: is larger than 1 MiB")},
	} {
		v, usable, bad := textValue(Find(tt.path), tt.text, place{source: "F"}, places{})
		if want, isError := tt.want.(errorText); isError {
			if bad.Error() != string(want) {
				t.Errorf("%s=%.40s: error is %v, want %s", tt.path, tt.text, bad, want)
			}
			continue
		}
		if len(bad) > 0 || usable != (tt.want != nil) || !reflect.DeepEqual(v, tt.want) {
			t.Errorf("%s=%s gives %#v, %v; want %#v", tt.path, tt.text, v, bad, tt.want)
		}
	}
}

type errorText string

// Names that Dynamo has for a key are read as that key, from each source.
func TestNamesOfOthers(t *testing.T) {
	t.Parallel()
	const file = "workers: [{url: 'http://a:1'}]\nrouting: {policy: kv, kv_overlap_score_weight: 3, router_temperature: 0.5}\n"
	for name, tt := range map[string]struct {
		layers       Layers
		scale, noise float64
	}{
		"the file":     {Layers{BuiltIn: []byte(file)}, 3, 0.5},
		"a variable":   {Layers{BuiltIn: []byte(file), Environ: []string{"KVASIR_ROUTING_OVERLAP_SCORE_WEIGHT=4"}}, 4, 0.5},
		"flags":        {Layers{BuiltIn: []byte(file), Flags: []FlagValue{{Path: "routing.router_temperature", Text: "0"}, {Path: "routing.overlap_score_weight", Text: "5"}}}, 5, 0},
		"its own name": {Layers{BuiltIn: []byte(file), Flags: []FlagValue{{Path: "routing.prefill_load_scale", Text: "6"}}}, 6, 0.5},
	} {
		c, _, bad := tt.layers.merge(tt.layers.BuiltIn)
		if len(bad) > 0 || c.Routing.PrefillLoadScale != tt.scale || c.Routing.Temperature != tt.noise {
			t.Errorf("%s: %v and %v, %v", name, c.Routing.PrefillLoadScale, c.Routing.Temperature, bad)
		}
	}
	const twice = "workers: [{url: 'http://a:1'}]\nrouting: {policy: kv, overlap_score_weight: 3, prefill_load_scale: 3}\n"
	_, _, bad := (&Layers{}).merge([]byte(twice))
	if want := `built-in config.yaml:2:48: routing.prefill_load_scale: is the same key as overlap_score_weight at built-in config.yaml:2:23; keep one of them`; bad.Error() != want {
		t.Errorf("%v, want %s", bad, want)
	}
}

func TestUnknownVariablesAndFlags(t *testing.T) {
	t.Parallel()
	l := &Layers{
		Environ: []string{"KVASIR_SERVER_LISTN=x", "KVASIR_SERVER=x", "KVASIR_ZZZ=1", "KVASIR_LISTEN=:1", "KVASIR_CONFG=x", "KVASIR_SERVER_MAX_BODY=-1", "kvasir_server_listen=x"},
		Flags: []FlagValue{
			{"--set log.levl", "log.levl", "info"}, {"--set server", "server", "x"}, {"--set max_body", "max_body", "1"},
			{"--set ", "", "1"}, {"--listen", "server.listen", "80"},
		},
	}
	_, _, bad := l.merge([]byte("log: {level: loud}"))
	want := strings.Join([]string{
		`built-in config.yaml:1:14: log.level: must be trace, debug, info, warn or error, not "loud"`,
		`KVASIR_CONFG: no key has this variable, did you mean "KVASIR_CONFIG"?`,
		`KVASIR_LISTEN: no key has this variable, did you mean "KVASIR_SERVER_LISTEN"?`,
		`KVASIR_SERVER: server is a group of keys; set each on its own, as KVASIR_SERVER_LISTEN`,
		`KVASIR_SERVER_LISTN: no key has this variable, did you mean "KVASIR_SERVER_LISTEN"?`,
		`KVASIR_SERVER_MAX_BODY: server.max_body: must not be negative, is -1`,
		`KVASIR_ZZZ: no key has this variable`,
		`--listen: server.listen: "80" has no host, did you mean "127.0.0.1:80"?`,
		`--set : unknown key`,
		`--set log.levl: log.levl: unknown key, did you mean "log.level"?`,
		`--set max_body: max_body: unknown key, did you mean "server.max_body"?`,
		`--set server: server: is a group of keys; set each on its own, as server.listen`,
	}, "\n")
	if bad.Error() != want {
		t.Errorf("errors are:\n%s\nwant:\n%s", bad, want)
	}
}

// TestConflictNamesTheLayer: admin comes from the defaults, so the address
// that somebody set is the one to name.
func TestConflictNamesTheLayer(t *testing.T) {
	t.Parallel()
	l := &Layers{Environ: []string{"KVASIR_SERVER_LISTEN=127.0.0.1:9090"}}
	_, _, bad := l.merge([]byte("simulate: [{}]"))
	want := `KVASIR_SERVER_LISTEN: server.admin: "127.0.0.1:9090" is server.listen's address, too`
	if bad.Error() != want {
		t.Errorf("error is %v, want %s", bad, want)
	}
}

func TestMissingFile(t *testing.T) {
	t.Parallel()
	_, read, err := (&Layers{File: "nowhere.yaml"}).Load()
	if err == nil || err.Error() != "nowhere.yaml: cannot read the configuration: no such file or directory" {
		t.Errorf("error is %v", err)
	}
	if len(read) != 1 {
		t.Errorf("a missing file is watched, too: %v", read)
	}
	big := []byte(strings.Repeat("#", maxFile+1))
	if _, _, bad := (&Layers{File: "big.yaml"}).merge(big); bad.Error() != "big.yaml:1:1: the file is larger than 1 MiB" {
		t.Errorf("error is %v", bad)
	}
}

func FuzzConfig(f *testing.F) {
	for _, seed := range []string{
		string(builtIn(f)), "", "a: *a", "server: &s {<<: *s, listen: ${A:-b}}", "workers: [[], {}, ~, \"\"]", "? {a: b}\n: [c]",
		"server:\n\t- a", "cache: {store: off, ttl: ~}", "keys: [{sha256: 0x1, models: *m}]", "---\na\n---\nb", "\xef\xbb\xbf{}", "server: {cors: !!set {a}}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l := &Layers{File: "f.yaml", Environ: []string{"A=1"}}
		c, _, bad := l.merge(data)
		if len(bad) == 0 {
			// What is good once is good again, and has what every Config has.
			if len(c.Workers)+len(c.Simulate) == 0 || c.Server.Listen == "" || c.Server.MaxBody < 1 {
				t.Errorf("accepted %+v", c)
			}
			checkTwin(t, l, data)
			return
		}
		for line := range strings.Lines(bad.Error()) {
			if !strings.HasPrefix(line, "f.yaml:") && !strings.HasPrefix(line, "and ") {
				t.Errorf("an error without its place, or with a line break in it: %q", line)
			}
		}
	})
}

// A cache.path of the environment, as the image sets one, is no mistake beside
// a store that keeps no file; one of the file is.
func TestCachePathOfTheEnvironment(t *testing.T) {
	t.Parallel()
	l := &Layers{File: "f.yaml", Environ: []string{"KVASIR_CACHE_PATH=/var/lib/kvasir/cache"}}
	for _, tt := range []struct{ cache, path string }{
		{"{store: embedded}", "/var/lib/kvasir/cache"},
		{"{store: embedded, path: mine}", "/var/lib/kvasir/cache"},
		{"{store: milvus}", ""},
		{"{store: off}", ""},
	} {
		c, _, bad := l.merge([]byte("simulate: [{name: s}]\ncache: " + tt.cache))
		if len(bad) > 0 || string(c.Cache.Path) != tt.path {
			t.Errorf("%s: the path is %q, want %q; %v", tt.cache, c.Cache.Path, tt.path, bad)
		}
	}
	_, _, bad := (&Layers{File: "f.yaml"}).merge([]byte("simulate: [{name: s}]\ncache: {store: milvus, path: mine}"))
	if !strings.Contains(bad.Error(), "the file of the embedded store") {
		t.Errorf("a file with both: %v", bad)
	}
}
