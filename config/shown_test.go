// Tests of the configuration as it is shown.

package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestValues: each key says who set it and where; elements of lists have what somebody set; secrets
// are not shown, wherever they stand, and no value fails to be JSON.
func TestValues(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "kvasir.yaml")
	do(t, os.WriteFile(filepath.Join(dir, "admin.key"), []byte("sk-admin\n"), 0o600))
	do(t, os.WriteFile(filepath.Join(dir, "worker.key"), []byte("sk-worker\n"), 0o600))
	do(t, os.WriteFile(file, []byte(`server:
  admin_key_file: admin.key
  drain: {delay: 3s}
  max_body: 1MiB
workers:
  - {url: "http://10.0.0.5:8000", headers: {X-Secret: sk-header}, key_file: worker.key}
  - url: http://10.0.0.6:8000
keys:
  - {name: alice, sha256: 2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90}
signals:
  - {name: long, tokens: {min: 8000}}
decisions:
  - {name: maths, when: {category: [math], not: {context: long}}, model: m}
models: [{name: m}]
`), 0o600))
	l := &Layers{File: file, Environ: []string{"KVASIR_LOG_LEVEL=debug"}, Flags: []FlagValue{{Flag: "--listen", Path: "server.listen", Text: ":8081"}}}
	g, _, err := l.Load()
	do(t, err)
	shown := map[string]string{}
	for _, v := range g.Values() {
		text, err := json.Marshal(v.Value)
		do(t, err)
		if _, twice := shown[v.Key]; twice {
			t.Errorf("%s is there twice", v.Key)
		}
		shown[v.Key] = fmt.Sprint(v.From, " ", strings.TrimPrefix(v.At, file), " ", string(text), " ", v.Secret)
	}
	for key, want := range map[string]string{
		"server.listen":          `flag --listen ":8081" false`,
		"server.admin":           `default  "127.0.0.1:9090" false`,
		"server.admin_key_file":  `file :2:19 "hidden" true`,
		"server.drain.delay":     `file :3:18 "3s" false`,
		"server.drain.timeout":   `default  "1m" false`,
		"server.max_body":        `file :4:13 "1MiB" false`,
		"server.hosts":           `default  [] false`,
		"log.level":              `environment KVASIR_LOG_LEVEL "debug" false`,
		"workers[0].url":         `file :6:11 "http://10.0.0.5:8000" false`,
		"workers[0].headers":     `file :6:44 "hidden" true`,
		"workers[0].key_file":    `file :6:77 "hidden" true`,
		"workers[1].url":         `file :7:10 "http://10.0.0.6:8000" false`,
		"keys[0].name":           `file :9:12 "hidden" true`,
		"signals[0].name":        `file :11:12 "long" false`,
		"decisions[0].when":      `file :13:25 {"category":["math"],"not":{"context":["long"]}} false`,
		"cache.milvus.token":     `default  "" true`,
		"discovery":              `default  [] false`,
		"planner.target_ttft_ms": `default  500 false`,
	} {
		if shown[key] != want {
			t.Errorf("%s is %s, want %s", key, shown[key], want)
		}
	}
	all := fmt.Sprint(shown)
	for _, secret := range []string{"sk-", "2bd8", "admin.key", "worker.key", "alice"} {
		if strings.Contains(all, secret) {
			t.Errorf("%s is shown: %s", secret, all)
		}
	}
	if _, is := shown["workers[1].name"]; is {
		t.Error("of an element is shown what nobody set")
	}
}

// TestValuesAreJSON: all of the full file, as it would be written.
func TestValuesAreJSON(t *testing.T) {
	t.Parallel()
	g, _, err := (&Layers{File: "../testdata/config/good/full.yaml"}).Load()
	do(t, err)
	for _, v := range g.Values() {
		if text, err := json.Marshal(v); err != nil || strings.Contains(string(text), `"value":null`) {
			t.Errorf("%s is %s, %v", v.Key, text, err)
		}
	}
}

// TestValuesOfVariables: where ${VAR} stands, that is shown and not what it puts in, in lists, maps and conditions too;
// what a flag sets instead is shown as it is.
func TestValuesOfVariables(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "kvasir.yaml")
	do(t, os.WriteFile(file, []byte(`server:
  hosts: ["${HOST}.example", plain.example]
  max_body: ${BODY}
  admin_hosts: ["${HOST}"]
workers:
  - {url: "http://${HOST}:8000", models: ["${MODEL:-m}", n, "x://user:hunter2@${HOST}/m"]}
  - {url: "http://10.0.0.1:8001", headers: {X-A: "${HOST}"}}
decisions:
  - {name: maths, when: {any: [{category: ["math", "${CATEGORY}"]}, {not: {language: "${LANGUAGE}"}}]}, model: n}
models: [{name: n}]
`), 0o600))
	l := &Layers{File: file, Environ: []string{"HOST=hidden-host", "BODY=3MiB", "CATEGORY=physics", "LANGUAGE=de"},
		Flags: []FlagValue{{Flag: "--set server.admin_hosts", Path: "server.admin_hosts", Text: "[shown-host]"}}}
	g, _, err := l.Load()
	do(t, err)
	shown := map[string]string{}
	for _, v := range g.Values() {
		text, err := json.Marshal(v.Value)
		do(t, err)
		shown[v.Key] = string(text)
	}
	for key, want := range map[string]string{
		"server.hosts":       `["${HOST}.example","plain.example"]`,
		"server.max_body":    `"${BODY}"`,
		"server.admin_hosts": `["shown-host"]`,
		"workers[0].url":     `"http://${HOST}:8000"`,
		"workers[0].models":  `["${MODEL:-m}","n","x://user:xxxxx@${HOST}/m"]`,
		"workers[1].headers": `"hidden"`,
		"decisions[0].when":  `{"any":[{"category":["math","${CATEGORY}"]},{"not":{"language":["${LANGUAGE}"]}}]}`,
	} {
		if shown[key] != want {
			t.Errorf("%s is shown as %s, want %s", key, shown[key], want)
		}
	}
	if all := fmt.Sprint(shown); strings.Contains(all, "hidden-host") || strings.Contains(all, "hunter2") || strings.Contains(all, "physics") {
		t.Errorf("a value is shown: %s", all)
	}
	if len(g.Config.Workers) != 2 || g.Config.Workers[0].Models[0] != "m" || g.Config.Server.Hosts[0] != "hidden-host.example" || g.Config.Decisions[0].When.Any[0].Is[0].Values[1] != "physics" {
		t.Errorf("the configuration itself was changed: %+v", g.Config)
	}
}
