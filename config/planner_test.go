// Tests of whether there is a planner.

package config

import (
	"reflect"
	"strings"
	"testing"
)

func TestPlannerMode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ yaml, mode string }{
		{"", "off"}, {"planner: {}", "off"}, {"planner: {mode: off, target_ttft_ms: 300}", "off"}, {"planner: {target_ttft_ms: 300}", "advise"},
		{"planner: {mode: advise}", "advise"}, {"planner: {model: qwen}", "advise"}, {"planner: {command: []}", "off"},
		{"planner: {mode: apply, command: [x]}", "apply"}, {"planner: {kubernetes: {lease: kvasir}}", "advise"}, {"planner: {keda: {listen: ':9091'}}", "advise"},
		{"planner: {mode: apply, kubernetes: {prefill: deployment/p, decode: dynamographdeployment/g/VllmDecodeWorker}}", "apply"},
	} {
		g, _, err := (&Layers{BuiltIn: []byte("simulate: [{}]\n" + c.yaml)}).Load()
		if err != nil {
			t.Errorf("%s: %v", c.yaml, err)
			continue
		}
		if got := g.Config.PlannerMode(); got != c.mode {
			t.Errorf("%s: %s, want %s", c.yaml, got, c.mode)
		}
		if c.yaml == "" && !reflect.DeepEqual(g.Config.Planner, idlePlanner) {
			t.Errorf("defaults are %+v, not %+v", g.Config.Planner, idlePlanner)
		}
	}
	for yaml, want := range map[string]string{
		"planner: {mode: apply}":                                                 "planner.mode: apply runs planner.command, or scales what planner.kubernetes names: name one of the two, or advise only",
		"planner: {command: [x]}":                                                `planner.command: is run by planner.mode: apply only, which is "advise"`,
		"planner: {mode: apply, command: ['']}":                                  "planner.command[0]: is empty: it is the program to run",
		"planner: {min_workers: 9, max_workers: 8}":                              "planner.min_workers: must not be above planner.max_workers",
		"planner: {mode: advice}":                                                `did you mean "advise"`,
		"planner: {kubernetes: {both: pod/x}}":                                   "planner.kubernetes.both: is no target: write deployment/NAME, statefulset/NAME or dynamographdeployment/NAME/SERVICE",
		"planner: {kubernetes: {both: deployment/x/y}}":                          "planner.kubernetes.both: is no target: write deployment/NAME",
		"planner: {kubernetes: {both: deployment/..}}":                           `".." is no name of a Deployment`,
		"planner: {kubernetes: {decode: dynamographdeployment/x}}":               "write dynamographdeployment/NAME/SERVICE",
		"planner: {kubernetes: {decode: dynamographdeployment/x/a b}}":           `"a b" is no name of a service`,
		"planner: {kubernetes: {both: deployment/a, decode: deployment/b}}":      "planner.kubernetes.both: stands beside targets for prefill or decode",
		"planner: {kubernetes: {prefill: deployment/a, decode: deployment/a}}":   "planner.kubernetes.decode: is planner.kubernetes.prefill as well",
		"planner: {kubernetes: {namespace: A, lease: x}}":                        "planner.kubernetes.namespace: is no name of Kubernetes",
		"planner: {kubernetes: {namespace: a}}":                                  "planner.kubernetes: names nothing to scale",
		"planner: {mode: apply, command: [x], kubernetes: {both: deployment/a}}": "planner.command: stands beside targets of planner.kubernetes",
		"planner: {keda: {listen: nowhere}}":                                     "planner.keda.listen: ",
		"planner: {keda: {listen: ':9090'}}\nserver: {admin: ':9090'}":           "planner.keda.listen: \":9090\" is the address of server.admin, too",
		"planner: {keda: {tls: {cert: a, key: b}}}":                              "planner.keda.tls: has no listener",
		"planner: {keda: {listen: ':9091', tls: {cert: a}}}":                     "planner.keda.tls",
		"planner: {keda: {listen: ':9091', tls: {client_ca: a}}}":                "planner.keda.tls.client_ca: needs",
		"planner: {mode: off, keda: {listen: ':9091'}}":                          "planner.keda.listen: answers by the plan, and planner.mode is off",
		"planner: {mode: apply, kubernetes: {lease: a}}":                         "planner.mode: apply runs planner.command, or scales",
		"planner: {target_ttft_ms: 0}":                                           "planner.target_ttft_ms",
		"planner: {share: 1}":                                                    "planner.share",
		"planner: {mode: apply, command: [x], memory: 1KiB}":                     "planner.memory",
	} {
		if _, _, err := (&Layers{BuiltIn: []byte("simulate: [{}]\n" + yaml)}).Load(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", yaml, err, want)
		}
	}
}
