// Tests that no guard of Semantic Router's becomes weaker here without a word.

package convert

import (
	"strings"
	"testing"
)

func TestGuardsAreNotWeaker(t *testing.T) {
	t.Parallel()
	const attack = "version: v0.3\nrouting:\n  signals: {jailbreak: [{name: j, threshold: 0.6}]}\n  decisions:\n" +
		"    - {name: attack, priority: 5, rules: {type: jailbreak, name: j}, plugins: [{type: fast_response, configuration: {message: No.}}]}\n"
	for _, tt := range []struct {
		name, file string
		want, not  []string // of the result
		note       string
	}{
		{"an attack on a model that is named", attack, []string{"priority: 5\n    applies_to: all\n    refuse: No."}, nil, ""},
		{"an attack by another name of a model", attack + "providers: {models: [{name: m, provider_model_id: real, backend_refs: [{endpoint: 'a:1'}]}]}\n",
			[]string{"name: alias-m\n    when: {model: m}\n    priority: 4\n"}, nil, ""},
		{"a refusal of whatever no other decision takes", "version: v0.3\nrouting: {decisions: [{name: no, rules: {operator: AND}, plugins: [{type: fast_response, configuration: {message: No.}}]}]}\n",
			[]string{"refuse: No."}, []string{"name: no\n    priority: 0\n    applies_to"}, "it also answers those that name a model"},
		{"the guard of a decision, since v0.3", "version: v0.3\nrouting: {decisions: [{name: d, rules: {type: domain, name: math}, plugins: [{type: jailbreak, configuration: {enabled: true}}]}]}\n",
			[]string{"action: block # since a decision has it on"}, nil, ""},
		{"a guard that nothing follows from", "version: v0.3\nrouting: {decisions: []}\nglobal: {model_catalog: {modules: {prompt_guard: {enabled: true}}}}\n",
			[]string{"jailbreak:\n    action: off"}, nil, "is enabled, but no decision of the file uses it"},
		{"on, as YAML once said it", "decisions: [{name: d, rules: {type: domain, name: math}, plugins: [{type: pii, configuration: {enabled: on}}, {type: jailbreak, configuration: {enabled: Yes}}]}]\n",
			[]string{"jailbreak:\n    action: block", "pii:\n    action: block"}, nil, ""},
		{"neither on nor off", "prompt_guard: {enabled: maybe}\n", nil, nil, "is neither true nor false, so it counts as false"},
		{"a part of an OR below a NOT", "version: v0.3\nrouting: {decisions: [{name: free, rules: {operator: NOT, conditions: [{operator: OR, conditions: [{type: domain, name: math}, {type: fact_check, name: f}]}]}}]}\n",
			nil, []string{"free"}, `the decision "free" is left out`},
		{"personal data to a model that is named", "decisions: [{name: d, rules: {type: domain, name: math}, plugins: [{type: pii, configuration: {enabled: true}}]}]\n",
			[]string{"action: block", "name: otherwise\n    priority: -1\n    pii:"}, []string{"applies_to: all"}, "those that every policy of the file allows"},
		{"personal data by another name of a model", "version: v0.1\nproviders: {models: [{name: m, provider_model_id: real, endpoints: [{endpoint: 'a:1'}]}]}\n" +
			"decisions: [{name: d, rules: {type: domain, name: math}, plugins: [{type: pii, configuration: {enabled: true}}]}]\n",
			[]string{"name: alias-m\n    when: {model: m}\n    priority: 1\n    applies_to: all\n    model: real\n  #"}, nil, ""},
		{"personal data and the cache", "version: v0.3\nrouting: {decisions: [{name: d, rules: {type: domain, name: math}, plugins: [{type: semantic-cache, configuration: {enabled: true}}, {type: pii, configuration: {enabled: true}}]}]}\n",
			[]string{"name: uncached\n    priority: -2\n    applies_to: all\n    cache:\n      enabled: false\n"}, []string{"any_type\n  - name: uncached"}, ""},
		{"the policy of the model that answers otherwise", "default_model: a\nmodel_config: {a: {pii_policy: {allow_by_default: false, pii_types_allowed: [PERSON]}}, b: {}}\ncategories: [{name: math, model_scores: [{model: b, score: 1}]}]\n",
			[]string{"action: block", "name: otherwise\n    pii:\n      allow: [PERSON]"}, []string{"applies_to: all"}, ""},
		{"the policy of a model that no category has", "default_model: b\nmodel_config: {a: {pii_policy: {allow_by_default: false}}, b: {}}\ncategories: [{name: math, model_scores: [{model: b, score: 1}]}]\n",
			[]string{"action: block", "\n    allow: []"}, []string{"applies_to: all"}, ""},
		{"a threshold above ours", "prompt_guard: {enabled: true, threshold: 0.95}\n", []string{"threshold: 0.95"}, nil, "above Kvasir's own, 0.7"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := Convert("vllm-sr", "x.yaml", []byte(tt.file))
			if err != nil || r.Problem != nil {
				t.Fatal(err, r)
			}
			text := string(r.Text)
			for _, w := range tt.want {
				if !strings.Contains(text, w) {
					t.Errorf("there is no %q", w)
				}
			}
			for _, w := range tt.not {
				if strings.Contains(text, w) {
					t.Errorf("there is %q", w)
				}
			}
			told := tt.note == ""
			for _, n := range r.Notes {
				told = told || strings.Contains(n.Text, tt.note)
			}
			if !told {
				t.Errorf("no note has %q", tt.note)
			}
			if t.Failed() {
				t.Logf("%v\n%s", r.Notes, text)
			}
		})
	}
}
