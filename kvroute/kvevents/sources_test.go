// Where engines publish.

package kvevents

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestReadSources(t *testing.T) {
	captured, err := os.ReadFile("testdata/kv_event_sources.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, body, problem string
		ranks               []int
		sources             []Source
	}{
		{"vLLM 0.32", string(captured), "", []int{0}, []Source{{"tcp://h:5557", "tcp://h:5558", "kv@w1@tiny-qwen"}}},
		{"ranks in order", `{"10":{"endpoint":"tcp://*:10"},"2":{"endpoint":"tcp://[::]:2"},"0":{"endpoint":"tcp://10.0.0.9:1"}}`, "",
			[]int{0, 2, 10}, []Source{{"tcp://10.0.0.9:1", "", ""}, {"tcp://h:2", "", ""}, {"tcp://h:10", "", ""}}},
		{"no replay", `{"0":{"endpoint":"tcp://*:1","replay_endpoint":null,"publisher":"zmq"}}`, "", []int{0}, []Source{{"tcp://h:1", "", ""}}},
		{"off", `{"0":{"enable_kv_cache_events":false,"endpoint":"tcp://*:1"},"1":{"publisher":"null","endpoint":"tcp://*:1"}}`, "", nil, nil},
		{"out of reach", `{"0":{"endpoint":"inproc://x"},"1":{"endpoint":"tcp://5"},"2":{}}`, "", nil, nil},
		{"empty", `{}`, "", nil, nil},
		{"no rank", `{"first":{}}`, `"first" is no rank`, nil, nil},
		{"a rank twice", `{"0":{"endpoint":"tcp://*:1"},"00":{"endpoint":"tcp://*:2"}}`, `"00" is no rank`, nil, nil},
		{"a signed rank", `{"+0":{"endpoint":"tcp://*:1"}}`, `"+0" is no rank`, nil, nil},
		{"a negative rank", `{"-1":{"endpoint":"tcp://*:1"}}`, `"-1" is no rank`, nil, nil},
		{"the same key twice", `{"0":{"endpoint":"tcp://*:1"},"0":{"endpoint":"tcp://*:2"}}`, "", []int{0}, []Source{{"tcp://h:2", "", ""}}},
		{"no JSON", `<html>`, "cannot read where KV events come from", nil, nil},
	} {
		ranks, sources, err := ReadSources([]byte(row.body), "h")
		if !slices.Equal(ranks, row.ranks) || !slices.Equal(sources, row.sources) || (err == nil) != (row.problem == "") ||
			err != nil && !strings.Contains(err.Error(), row.problem) {
			t.Errorf("%s: %v, %v, %v", row.name, ranks, sources, err)
		}
	}
}

func TestRank(t *testing.T) {
	s, err := Source{"tcp://[::1]:5557", "tcp://[::1]:5657", "t"}.Rank(3)
	if want := (Source{"tcp://[::1]:5560", "tcp://[::1]:5660", "t"}); err != nil || s != want {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range []Source{{Events: "ipc://x:1"}, {Events: "tcp://h:65534"}, {Events: "tcp://h"}, {Events: "tcp://h:1", Replay: "x"}} {
		if s, err := bad.Rank(2); err == nil {
			t.Errorf("%+v became %+v", bad, s)
		}
	}
	if s, err := (Source{Events: "tcp://h:1"}).Rank(0); err != nil || s.Replay != "" {
		t.Errorf("%+v, %v", s, err)
	}
}
