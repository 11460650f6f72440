// Tests of conversion: files in the shapes of other programs, what becomes of them, and what is said.

package convert

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"go.yaml.in/yaml/v3"

	"kvasir/config"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestGolden(t *testing.T) {
	t.Parallel()
	for _, from := range Sources() {
		files, err := filepath.Glob(filepath.Join("testdata", from, "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatal("no files of", from, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, ".want.yaml") {
				continue
			}
			t.Run(file, func(t *testing.T) {
				t.Parallel()
				data, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				r, err := Convert(from, file, data)
				if err != nil {
					t.Fatal(err)
				}
				if r.Problem != nil {
					t.Errorf("kvasir check would say: %v", r.Problem)
				}
				if bytes.Contains(r.Text, []byte("hush")) || bytes.Contains(r.Text, []byte("do-not-copy")) {
					t.Errorf("a secret was copied:\n%s", r.Text)
				}
				var notes strings.Builder
				for _, n := range r.Notes {
					fmt.Fprintf(&notes, "%d: %s: %s\n", n.Line, n.What, n.Text)
				}
				base := strings.TrimSuffix(file, ".yaml")
				golden(t, base+".want.yaml", r.Text)
				golden(t, base+".notes.txt", []byte(notes.String()))
			})
		}
	}
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what is made now (go test ./config/convert -update, and read the difference):\n%s", file, got)
	}
}

// Nothing may be lost without a word: every key of a file that is made up has its note.
func TestUnknownKeysAreTold(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ from, file, what string }{
		{"vllm-sr", "version: v0.3\nrouting: {novelty: {deep: 1}, decisions: []}\n", "routing.novelty"},
		{"vllm-sr", "version: v0.3\nproviders: {models: [{name: m, backend_refs: [{endpoint: 'a:1', colour: red}]}]}\n", "providers.models[0].backend_refs[0].colour"},
		{"vllm-sr", "version: v0.1\nproviders: {models: [{name: m, endpoints: [{endpoint: 'a:1'}]}]}\nextra: 1\n", "extra"},
		{"vllm-sr", "vllm_endpoints: [{name: a, address: b, port: 1, shape: round}]\n", "vllm_endpoints[0].shape"},
		{"litellm", "model_list: [{model_name: m, litellm_params: {model: openai/m, api_base: 'http://a:1', flavour: 3}}]\n", "model_list[0].litellm_params.flavour"},
		{"litellm", "model_list: []\nnovelty: [1]\n", "novelty"},
	} {
		r, err := Convert(tt.from, "x.yaml", []byte(tt.file))
		if err != nil {
			t.Errorf("%q: %v", tt.file, err)
			continue
		}
		found := false
		for _, n := range r.Notes {
			found = found || n.What == tt.what
		}
		if !found || r.Problem != nil {
			t.Errorf("%q: no note of %s among %v; problem %v", tt.file, tt.what, r.Notes, r.Problem)
		}
	}
}

// Two keys of one name are two variables, and one key twice is one.
func TestSecretsAreApart(t *testing.T) {
	t.Parallel()
	file := `model_list:
  - {model_name: m, litellm_params: {model: openai/m, api_base: "http://a:1", api_key: hush-1}}
  - {model_name: m, litellm_params: {model: openai/m, api_base: "http://b:1", api_key: hush-2}}
  - {model_name: m, litellm_params: {model: openai/m, api_base: "http://c:1", api_key: hush-1}}
  - {model_name: m, litellm_params: {model: openai/m, api_base: "http://d:1", api_key: os.environ/M_KEY_3}}
  - {model_name: m, litellm_params: {model: openai/m, api_base: "http://e:1", api_key: hush-3}}
`
	r, err := Convert("litellm", "x.yaml", []byte(file))
	if err != nil || r.Problem != nil {
		t.Fatal(err, r.Problem)
	}
	if got, want := strings.Join(r.Variables, " "), "M_KEY M_KEY_2 M_KEY_3 M_KEY_4"; got != want {
		t.Errorf("the variables are %s, want %s", got, want)
	}
	if n := strings.Count(string(r.Text), "Bearer ${M_KEY}"); n != 2 || bytes.Contains(r.Text, []byte("hush")) {
		t.Errorf("%d workers have the first key:\n%s", n, r.Text)
	}
}

func TestBadFiles(t *testing.T) {
	t.Parallel()
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c <= 'j'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.Repeat(fmt.Sprintf("*%c, ", c-1), 9)+fmt.Sprintf("*%c", c-1))
	}
	for _, tt := range []struct{ name, from, file, want string }{
		{"another program", "vllm-sr", "services: {web: {image: nginx}}\n", "x.yaml is no configuration of Semantic Router, which has some of "},
		{"the other program", "vllm-sr", "model_list: [{model_name: a}]\n", "it looks like one of LiteLLM: use --from litellm"},
		{"the other program, back", "litellm", "vllm_endpoints: []\n", "it looks like one of Semantic Router: use --from vllm-sr"},
		{"our own", "vllm-sr", "workers: [{url: 'http://a:1'}]\ndecisions: []\n", "and classifier at its top; it looks like one of Kvasir itself: check it with kvasir check"},
		{"Envoy", "litellm", "static_resources: {clusters: []}\n", "it looks like one of Envoy: docs/migrate.md"},
		{"Grafana's", "vllm-sr", "apiVersion: 1\nproviders: []\n", "take the file out of the object first"},
		{"Kubernetes", "vllm-sr", "apiVersion: v1\nkind: ConfigMap\n", "take the file out of the object first"},
		{"a version to come", "vllm-sr", "\nversion: v0.9\nrouting: {}\n", `x.yaml:2: version "v0.9" of Semantic Router's configuration is not known`},
		{"a program that nobody knows", "vllm", "a: 1\n", `is no program whose configuration can be read; those are vllm-sr and litellm`},
		{"empty", "litellm", "# nothing\n", "x.yaml is empty"},
		{"a list", "litellm", "- a\n", "x.yaml:1: is no mapping of keys to values"},
		{"no YAML", "litellm", "model_list: [a\nb: c\n", "x.yaml:"},
		{"not UTF-8", "litellm", "model_list: \xff\xfe\n", "x.yaml:1:13: the file is not UTF-8 here"},
		{"10 MB", "litellm", "model_list:\n" + strings.Repeat("  - {model_name: a}\n", 500_000), "x.yaml:1:1: the file is larger than 1 MiB"},
		{"a bomb of aliases", "litellm", bomb + "model_list: *j\n", "has more than 20000 values"},
		{"an alias that holds itself", "litellm", "model_list: &a [*a]\n", "is nested more than 64 deep, or an alias holds itself"},
		{"a merge that holds itself", "litellm", "model_list: &a\n  <<: *a\n", "is nested more than 64 deep, or an alias holds itself"},
		{"deep", "vllm-sr", "decisions: " + strings.Repeat("[", 80) + strings.Repeat("]", 80), "is nested more than 64 deep"},
		{"two documents", "litellm", "model_list: []\n---\nmodel_list: []\n", "a second document (---) begins here"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Convert(tt.from, "x.yaml", []byte(tt.file))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v, want %q", err, tt.want)
			}
		})
	}
}

// What has the wrong form is left out with a word, and the rest is taken.
func TestWrongForms(t *testing.T) {
	t.Parallel()
	file := `
vllm_endpoints: [{name: a, address: [1], port: many}, {name: b, address: h, port: 99999}, 7]
model_config: [x]
decisions:
  - {name: a, rules: {operator: XOR, conditions: 3}}
  - {name: b, priority: soon, rules: {operator: NOT, conditions: []}, modelRefs: 5}
  - {rules: {operator: AND}, plugins: {type: pii}}
semantic_cache: {enabled: true, similarity_threshold: 7, ttl_seconds: .inf}
reasoning_families: 1
`
	r, err := Convert("vllm-sr", "x.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	if r.Problem != nil {
		t.Errorf("%v\n%s", r.Problem, r.Text)
	}
	if len(r.Notes) < 9 {
		t.Errorf("only %d notes: %v", len(r.Notes), r.Notes)
	}
}

// Regular expressions are dear to read, so there is an end of them.
func TestExpressionsAreBounded(t *testing.T) {
	t.Parallel()
	file := "version: v0.3\nrouting:\n  signals:\n    keywords:\n" +
		strings.Repeat("      - {name: a, method: regex, keywords: ['"+strings.Repeat("x", 1<<10)+"']}\n", 70)
	r, err := Convert("vllm-sr", "x.yaml", []byte(file))
	if err != nil || r.Problem != nil {
		t.Fatal(err, r.Problem)
	}
	if n := strings.Count(string(r.Text), "method: regex"); n != 64 || len(r.Notes) < 6 {
		t.Errorf("%d signals, notes %v", n, r.Notes)
	}
}

// A key that would move the cursor of a terminal, or end a comment, is quoted.
func TestOddKeysAreQuoted(t *testing.T) {
	t.Parallel()
	for _, odd := range []string{"\u009b31m", "\u0085admin: 1", "\u2028x", "\u202ex", "\x1b[2J"} {
		for _, file := range []string{
			fmt.Sprintf("vllm_endpoints: []\n%q: 1\n", odd),
			fmt.Sprintf("vllm_endpoints: [{name: %q, address: a, port: 1}]\nmodel_config: {%q: {reasoning_family: %q}}\ndecisions: [{name: %q, description: %q, rules: {type: domain, name: math}, modelRefs: [{model: %q}]}]\n", odd, odd, odd, odd, odd, odd),
		} {
			r, err := Convert("vllm-sr", "x"+odd+".yaml", []byte(file))
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range r.Notes {
				if strings.ContainsFunc(n.What+n.Text, func(r rune) bool { return !unicode.IsPrint(r) }) {
					t.Errorf("%q: the note is %+q", file, n.What+": "+n.Text)
				}
			}
			if strings.ContainsFunc(string(r.Text), func(r rune) bool { return r != '\n' && (unicode.IsControl(r) || r == 0x2028) }) {
				t.Errorf("%q: the result is %+q", file, r.Text)
			}
		}
	}
}

// A text comes back from the result as it was, whatever YAML takes for the end of a line.
func TestTextsComeBack(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a", "a\nb", "a\n\nb\n", " a", "a\u2028 b", "a\u2029b", "a\u0085b", "a\tb\n", "\na", "a: b # c", "- a", "${A}", "'\"", "yes", "~", "1e3", "a \n b", "a\r\nb"} {
		file := fmt.Sprintf("version: v0.3\nrouting: {decisions: [{name: d, rules: {operator: AND}, plugins: [{type: fast_response, configuration: {message: %q}}]}]}\n", text)
		r, err := Convert("vllm-sr", "x.yaml", []byte(file))
		if err != nil || r.Problem != nil {
			t.Errorf("%q: %v %v", text, err, r)
			continue
		}
		var got struct{ Decisions []struct{ Refuse string } }
		if err := yaml.Unmarshal(r.Text, &got); err != nil || got.Decisions[0].Refuse != strings.ReplaceAll(text, "${", "$${") {
			t.Errorf("%q came back as %+v: %v\n%s", text, got, err, r.Text)
		}
	}
}

func FuzzConvert(f *testing.F) {
	for _, from := range Sources() {
		files, _ := filepath.Glob(filepath.Join("testdata", from, "*.yaml"))
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, from := range Sources() {
			r, err := Convert(from, "x.yaml", data)
			if err != nil {
				continue
			}
			if len(r.Notes) > mostNotes+1 {
				t.Errorf("%d notes", len(r.Notes))
			}
			if _, err := config.Document("result", r.Text); err != nil && len(r.Text) < 1<<20 {
				t.Errorf("the result is no YAML: %v\n%s", err, r.Text)
			}
		}
	})
}
