// The soak of workers that come and go: no request is lost while a source finds others ten times a second.

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	flapping  = 100                    // workers
	flapEvery = 100 * time.Millisecond // another half of them
)

// A flapper is a source whose workers come and go.
type flapper struct {
	entry string                         // of discovery
	list  func(t *testing.T, now []bool) // has the workers be those that are true
}

// A flapperKind is a kind of source whose workers may come and go.
type flapperKind struct {
	name  string
	start func(t *testing.T, workers []string) flapper
}

// flappers are all kinds but that of Kubernetes, which takes an API server (TestRealKubeFlapping).
var flappers = []flapperKind{
	{"file", flappingFile},
	{"dns", flappingDNS}, // looked up once a second
	{"etcd", flappingEtcd},
	{"dynamo in etcd", flappingDynamo},
	{"dynamo in files", flappingDynamoFiles},
}

// flappingFile is one file that is written anew.
func flappingFile(t *testing.T, workers []string) flapper {
	dir := t.TempDir()
	file, before := filepath.Join(dir, "workers.json"), ""
	return flapper{"kind: file, path: '" + dir + "'", func(t *testing.T, now []bool) {
		var found []map[string]any
		for i, url := range workers {
			if now[i] {
				found = append(found, map[string]any{"url": url, "models": []string{"m"}})
			}
		}
		text, err := json.Marshal(found)
		if err != nil {
			t.Fatal(err)
		}
		if string(text) != before {
			writeWhole(t, file, text)
			before = string(text)
		}
	}}
}

func writeWhole(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file+".part", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".part", file); err != nil {
		t.Fatal(err)
	}
}

// flappingKeys puts and deletes the keys of those that come and go, at once. key is the n-th key of worker i with its
// value; there are each of them.
func flappingKeys(t *testing.T, c *clientv3.Client, each int, key func(i, n int) (string, string)) func(*testing.T, []bool) {
	t.Helper()
	before := make([]bool, flapping)
	return func(t *testing.T, now []bool) {
		var ops []clientv3.Op
		for i := range now {
			for n := range each {
				k, value := key(i, n)
				switch {
				case now[i] && !before[i]:
					ops = append(ops, clientv3.OpPut(k, value))
				case before[i] && !now[i]:
					ops = append(ops, clientv3.OpDelete(k))
				}
			}
		}
		copy(before, now)
		for len(ops) > 0 {
			n := min(len(ops), 100)
			if _, err := c.Txn(context.WithoutCancel(t.Context())).Then(ops[:n]...).Commit(); err != nil {
				t.Fatal(err)
			}
			ops = ops[n:]
		}
	}
}

func flappingEtcd(t *testing.T, workers []string) flapper {
	s := startEtcd(t)
	list := flappingKeys(t, s.client(), 1, func(i, _ int) (string, string) {
		return fmt.Sprintf("%sw%d", etcdPrefix, i), fmt.Sprintf(`{"url": %q, "models": ["m"]}`, workers[i])
	})
	return flapper{"kind: etcd, endpoints: ['" + s.url + "']", list}
}

// dynamoKeys are the two keys of an instance of Dynamo.
func dynamoKeys(i, n int) (string, string) {
	id := uint64(i) + 1<<60
	at := fmt.Sprintf("dynamo/backend/generate/%x", id)
	if n == 0 {
		return "v1/instances/" + at, fmt.Sprintf(`{"type":"Endpoint","instance_id":%d}`, id)
	}
	return "v1/mdc/" + at, fmt.Sprintf(`{"type":"Model","instance_id":%d,"card_json":{"display_name":"m","kv_cache_block_size":16,"model_type":"Chat","runtime_config":{"total_kv_blocks":1000}}}`, id)
}

func flappingDynamo(t *testing.T, workers []string) flapper {
	s := startEtcd(t)
	return flapper{"kind: dynamo, frontend: '" + workers[0] + "', endpoints: ['" + s.url + "']", flappingKeys(t, s.client(), 2, dynamoKeys)}
}

// flappingDynamoFiles are files that whoever stands behind them touches every three seconds.
func flappingDynamoFiles(t *testing.T, workers []string) flapper {
	dir := t.TempDir()
	for _, bucket := range []string{"v1/instances", "v1/mdc"} {
		if err := os.MkdirAll(filepath.Join(dir, bucket), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	before := make([]bool, flapping)
	touched := time.Now()
	return flapper{"kind: dynamo, frontend: '" + workers[0] + "', path: '" + dir + "'", func(t *testing.T, now []bool) {
		touch := time.Since(touched) > 3*time.Second
		if touch {
			touched = time.Now()
		}
		for i := range now {
			for n := range 2 {
				key, value := dynamoKeys(i, n)
				bucket := strings.Join(strings.SplitN(key, "/", 3)[:2], "/")
				file := filepath.Join(dir, bucket, url.PathEscape(strings.TrimPrefix(key, bucket+"/")))
				switch {
				case now[i] && !before[i]:
					writeWhole(t, file, []byte(value))
				case before[i] && !now[i]:
					_ = os.Remove(file)
				case now[i] && touch:
					_ = os.Chtimes(file, touched, touched)
				}
			}
		}
		copy(before, now)
	}}
}

// TestSoakFlapping has a hundred workers of which every tenth of a second another half is there. All kinds have some
// seconds at once in make test; with KVASIR_SOAK_SOURCES each has as long as it says, one after the other.
func TestSoakFlapping(t *testing.T) {
	t.Parallel()
	for _, f := range flappers {
		t.Run(f.name, func(t *testing.T) {
			if !soaksSources() {
				t.Parallel()
			}
			soakFlapping(t, f)
		})
	}
}

func soaksSources() bool { return os.Getenv("KVASIR_SOAK_SOURCES") != "" }

// mostForSources is how much of a core workers that come and go may cost, in percent. It is measured where nothing
// else is: in a soak.
const mostForSources = 5

// soakFlapping measures what Kvasir takes while nothing happens, while workers come and go, while requests come, and
// while both happen. No request may fail.
func soakFlapping(t *testing.T, f flapperKind) {
	long := 3 * time.Second
	if soaksSources() {
		long = soakTime(t, "KVASIR_SOAK_SOURCES")
	}
	var all []string
	for range flapping {
		worker := httptest.NewServer(http.HandlerFunc(soakAnswer))
		t.Cleanup(worker.Close)
		all = append(all, worker.URL)
	}
	source := f.start(t, all)
	now := make([]bool, flapping)
	for i := range now {
		now[i] = i%2 == 0
	}
	list := func() {
		mathrand.Shuffle(len(now), func(i, j int) { now[i], now[j] = now[j], now[i] })
		source.list(t, now)
	}
	list()
	s := &soaking{k: serve(t, "cache: {store: 'off'}\nmodels: [{name: m, default: true, tokenizer: none}]\ndiscovery: [{"+source.entry+"}]\n", "m")}
	value := func(name string) float64 { return metric(t, s.k.admin+"/metrics", name) }
	lists := 0
	// during returns the share of a core that Kvasir takes, in percent.
	during := func(long time.Duration, flaps, asks bool) float64 {
		ctx, cancel := context.WithTimeout(t.Context(), long)
		defer cancel()
		began, before := time.Now(), value("process_cpu_seconds_total")
		done := make(chan struct{})
		go func() {
			defer close(done)
			if asks {
				s.askAll(ctx, soakRate(t))
			}
		}()
		tick := time.NewTicker(flapEvery)
		defer tick.Stop()
		for ; ctx.Err() == nil; <-tick.C {
			if flaps {
				list()
				lists++
			} else {
				source.list(t, now) // what is there has to be kept
			}
		}
		<-done
		return 100 * (value("process_cpu_seconds_total") - before) / time.Since(began).Seconds()
	}
	quiet := during(long/4, false, false)
	alone := during(long/2, true, false)
	steady := during(long/4, false, true)
	asked := s.sent.Load()
	both := during(long, true, true)
	t.Logf("of a core %.1f %% in quiet, %.1f while workers come and go; with requests %.1f and %.1f, of them the last for %d requests, %.0f a second, over %d lists in all",
		quiet, alone, steady, both, s.sent.Load()-asked, float64(s.sent.Load()-asked)/long.Seconds(), lists)
	t.Logf("%d requests: %d whole, %d refused, %d interrupted, %d lost, %d mixed; %v changes seen, %v retries", s.sent.Load(),
		s.whole.Load(), s.refused.Load(), s.interrupted.Load(), s.lost.Load(), s.mixed.Load(), value("kvasir_discovery_changes_total"), value("kvasir_retries_total"))
	if s.whole.Load() < s.sent.Load() || s.sent.Load() == 0 {
		t.Errorf("of %d requests %d were answered whole; the first that was not: %s", s.sent.Load(), s.whole.Load(), s.first)
	}
	if changes := value("kvasir_discovery_changes_total"); changes < 3 {
		t.Errorf("%v changes were seen of %d lists", changes, lists)
	}
	if soaksSources() && alone-quiet >= mostForSources {
		t.Errorf("workers that come and go cost %.1f %% of a core", alone-quiet)
	}
}
