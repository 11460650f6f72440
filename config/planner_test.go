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
		{"planner: {mode: apply, command: [x]}", "apply"},
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
		"planner: {mode: apply}":                             "planner.mode: apply runs planner.command: name a program there, or advise only",
		"planner: {command: [x]}":                            `planner.command: is run by planner.mode: apply only, which is "advise"`,
		"planner: {mode: apply, command: ['']}":              "planner.command[0]: is empty: it is the program to run",
		"planner: {min_workers: 9, max_workers: 8}":          "planner.min_workers: must not be above planner.max_workers",
		"planner: {mode: advice}":                            `did you mean "advise"`,
		"planner: {target_ttft_ms: 0}":                       "planner.target_ttft_ms",
		"planner: {share: 1}":                                "planner.share",
		"planner: {mode: apply, command: [x], memory: 1KiB}": "planner.memory",
	} {
		if _, _, err := (&Layers{BuiltIn: []byte("simulate: [{}]\n" + yaml)}).Load(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", yaml, err, want)
		}
	}
}
