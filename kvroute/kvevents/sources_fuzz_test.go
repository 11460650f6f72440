// What a worker says of where its events are is a stranger's text.

package kvevents

import (
	"net"
	"slices"
	"strings"
	"testing"
)

func FuzzReadSources(f *testing.F) {
	for _, body := range []string{
		`{"0":{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557","replay_endpoint":null,"topic":""}}`,
		`{"0":{"endpoint":"tcp://[::]:5557","replay_endpoint":"tcp://0.0.0.0:5558"},"1":{"endpoint":"tcp://10.0.0.9:5558","topic":"kv"}}`,
		`{"00":{"endpoint":"tcp://*:1"}}`, `{"-1":{}}`, `{"0":{"publisher":"null"}}`, `{"0":{"endpoint":"ipc:///tmp/x"}}`, `[]`, `null`, `{"0":null}`,
	} {
		f.Add([]byte(body), "worker-1")
	}
	f.Fuzz(func(t *testing.T, body []byte, host string) {
		ranks, sources, err := ReadSources(body, host)
		if err != nil && (ranks != nil || sources != nil) || len(ranks) != len(sources) {
			t.Fatalf("%v, %v, %v", ranks, sources, err)
		}
		if !slices.IsSorted(ranks) || len(slices.Compact(slices.Clone(ranks))) != len(ranks) || len(ranks) > 0 && ranks[0] < 0 {
			t.Fatalf("ranks %v", ranks)
		}
		for _, s := range sources {
			for _, address := range []string{s.Events, s.Replay} {
				rest, ok := strings.CutPrefix(address, "tcp://")
				if _, _, err := net.SplitHostPort(rest); address != "" && (!ok || err != nil && !strings.ContainsAny(rest, "[]%")) {
					t.Fatalf("%q of %q: %v", address, body, err)
				}
			}
			if s.Events == "" {
				t.Fatalf("no address of %q", body)
			}
		}
	})
}
