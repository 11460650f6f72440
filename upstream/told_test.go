// What a worker may tell of addresses.

package upstream

import (
	"testing"

	"kvasir/kvroute/holdings"
	"kvasir/kvroute/kvevents"
)

// A worker sent Kvasir to any address by /kv_event_sources: of this host, of the cloud's, of others.
func TestWorkersSendNobodyElsewhere(t *testing.T) {
	for _, tc := range []struct {
		url, told string
		own       bool
	}{
		{"http://10.0.0.5:8000", "tcp://10.0.0.5:5557", true},
		{"http://Worker-1:8000", "tcp://worker-1:5557", true},
		{"http://127.0.0.1:8000", "tcp://localhost:5557", true},
		{"http://[2001:db8::1]:8000", "tcp://[2001:db8::1]:5557", true},
		{"http://10.0.0.5:8000", "tcp://127.0.0.1:5557", false},
		{"http://10.0.0.5:8000", "tcp://localhost:2379", false},
		{"http://10.0.0.5:8000", "tcp://169.254.169.254:80", false},
		{"http://worker-1:8000", "tcp://worker-1.evil.example:5557", false},
		{"http://worker-1:8000", "tcp://10.0.0.9:5557", false},
		{"http://127.0.0.1:8000", "tcp://10.0.0.9:5557", false},
	} {
		b, err := NewWorker(Settings{Name: "w", URL: tc.url}, Timeouts{})
		if err != nil {
			t.Fatal(err)
		}
		home := "tcp://" + b.host
		for _, s := range []kvevents.Source{{Events: tc.told}, {Events: home, Replay: tc.told}} {
			got := b.ownSources([]holdings.Source{{Source: s}})
			asked := len(got) == 1 && (s.Replay == "" || got[0].Replay != "")
			if asked != tc.own || b.heard.elsewhere.Load() == tc.own {
				t.Errorf("%s tells %+v: %+v are asked", tc.url, s, got)
			}
		}
	}
}
