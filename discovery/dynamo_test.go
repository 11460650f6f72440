// Tests of kind dynamo with what Dynamo 1.6.1 and its mocker have registered (testdata), as files and as keys.

package discovery

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"kvasir/kvroute"
	"kvasir/upstream"
)

// registered are the recorded keys with their values.
func registered(t testing.TB, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		all[key] = value
	}
	return all
}

// asDescribed stands for the configuration's reader: it takes a description as it is.
func asDescribed(value []byte) (s upstream.Settings, err error) {
	text := string(value)
	field := func(name string) string {
		_, rest, _ := strings.Cut(text, `"`+name+`":"`)
		rest, _, _ = strings.Cut(rest, `"`)
		return rest
	}
	_, models, _ := strings.Cut(text, `"models":["`)
	models, _, _ = strings.Cut(models, `"]`)
	if strings.Contains(models, " ") {
		return s, errors.New("models[0]: no name")
	}
	return upstream.Settings{
		URL: field("url"), Name: field("name"), Engine: field("engine"), Role: field("role"), Instance: field("instance"),
		Models: strings.Split(models, `","`),
	}, nil
}

func dynamoEntry(path string) Entry {
	return Entry{Kind: "dynamo", Path: path, Frontend: "http://f:8000", ReadWorker: asDescribed}
}

// tableOf are the keys, read.
func tableOf(all map[string]string) *keyTable[dynamoKey] {
	t := newKeyTable(readDynamo)
	for key, value := range all {
		t.put(key, []byte(value), 0)
	}
	return t
}

// TestDynamoKeys: instances that serve a model are workers, by the roles and figures of its card.
func TestDynamoKeys(t *testing.T) {
	t.Parallel()
	e := dynamoEntry("")
	facts := kvroute.EngineFacts{BlockSize: 64, Blocks: 16384, MaxBatchedTokens: 8192, MaxSeqs: 256, Ranks: 1}
	worker := func(name, role, instance string) upstream.Settings {
		return upstream.Settings{Name: name, URL: "http://f:8000", Engine: "dynamo", Role: role, Models: []string{"m"}, Instance: instance, Facts: facts}
	}
	for file, want := range map[string][]upstream.Settings{
		"dynamo-disaggregated.txt": {
			worker("backend-137ef8bfb33f4049", "decode", "1404833636015882313"),
			worker("backend-9d61250d3b92c774", "decode", "11340386075459897204"),
			worker("prefill-7719479b54ca7e2b", "prefill", "8581969297399250475"),
		},
		"dynamo-aggregated.txt": {
			worker("backend-349b023601f0287d", "both", "3790625942346410109"),
			worker("backend-7cfaaf14bf139df5", "both", "9005702908520668661"),
		},
	} {
		r := dynamoMade{}.workers(&e, "dynamo", tableOf(registered(t, file)))
		var got []upstream.Settings
		for _, w := range r.workers {
			got = append(got, w.Settings)
		}
		if r.bad != nil || !slices.EqualFunc(got, want, func(a, b upstream.Settings) bool { return equal(&a, &b) }) {
			t.Errorf("%s: workers are\n%+v, %v, want\n%+v", file, got, r.bad, want)
		}
		if m := Merge(nil, []Found{{"dynamo", r.workers}}); len(m.Workers) != len(want) || m.Disagree != 0 {
			t.Errorf("%s: all of them behind one frontend are %+v", file, m)
		}
	}
}

// TestDynamoRows goes through what else may be registered.
func TestDynamoRows(t *testing.T) {
	t.Parallel()
	const at = "ns/backend/generate/a"
	instance := `{"type":"Endpoint","instance_id":10}`
	card := func(more string) string {
		return `{"type":"Model","instance_id":10,"card_json":{"display_name":"m"` + more + `}}`
	}
	for name, c := range map[string]struct {
		keys map[string]string
		want string // name role models ranks of each worker
		err  string
	}{
		"no card yet":              {map[string]string{"v1/instances/" + at: instance}, "", ""},
		"no instance any more":     {map[string]string{"v1/mdc/" + at: card("")}, "", ""},
		"older, without its type":  {map[string]string{"v1/instances/" + at: instance, "v1/mdc/" + at: card("")}, "backend-a both [m] 0", ""},
		"an adapter":               {map[string]string{"v1/instances/" + at: instance, "v1/mdc/" + at: card(""), "v1/mdc/" + at + "/lora": strings.Replace(card(""), `"m"`, `"l"`, 1)}, "backend-a both [m l] 0", ""},
		"of older prefill workers": {map[string]string{"v1/instances/ns/prefill/generate/a": instance, "v1/mdc/ns/prefill/generate/a": card("")}, "prefill-a prefill [m] 0", ""},
		"ranks":                    {map[string]string{"v1/instances/" + at: instance, "v1/mdc/" + at: card(`,"runtime_config":{"data_parallel_size":4}`)}, "backend-a both [m] 4", ""},
		"some of the ranks":        {map[string]string{"v1/instances/" + at: instance, "v1/mdc/" + at: card(`,"runtime_config":{"data_parallel_size":4,"data_parallel_start_rank":4}`)}, "backend-a both [m] 0", ""},
		"mad figures":              {map[string]string{"v1/instances/" + at: instance, "v1/mdc/" + at: card(`,"kv_cache_block_size":-1,"runtime_config":{"data_parallel_size":99999999}`)}, "backend-a both [m] 0", ""},
		"no name of a model":       {map[string]string{"v1/instances/" + at: instance, "v1/mdc/" + at: strings.Replace(card(""), `"m"`, `"a b"`, 1)}, "", "backend/generate/a: models[0]: no name"},
		"another's":                {map[string]string{"v1/instances/" + at: `{"type":"Endpoint","instance_id":11}`}, "", "v1/instances/ns/backend/generate/a: the value is another instance's than the key"},
		"a card for an instance":   {map[string]string{"v1/instances/" + at: card("")}, "", `v1/instances/ns/backend/generate/a: the value must be of type Endpoint, is "Model"`},
		"no card in it":            {map[string]string{"v1/mdc/" + at: `{"type":"Model","instance_id":10}`}, "", "v1/mdc/ns/backend/generate/a: the value has no card of a model"},
		"no JSON":                  {map[string]string{"v1/mdc/" + at: `{`}, "", "v1/mdc/ns/backend/generate/a: the value is not as Dynamo 1.x has them: unexpected end of JSON input"},
		"another key":              {map[string]string{"v1/instances/ns/backend": `{}`}, "", "v1/instances/ns/backend: the key is not as Dynamo 1.x has them: NAMESPACE/COMPONENT/ENDPOINT/ID"},
	} {
		e := dynamoEntry("")
		r := dynamoMade{}.workers(&e, "dynamo", tableOf(c.keys))
		var got []string
		for _, w := range r.workers {
			got = append(got, fmt.Sprintf("%s %s %v %d", w.Name, w.Role, w.Models, w.Facts.Ranks))
		}
		err := ""
		if r.bad != nil {
			err = r.bad.Error()
		}
		if strings.Join(got, "; ") != c.want || err != c.err {
			t.Errorf("%s: %q, %q; want %q, %q", name, got, err, c.want, c.err)
		}
	}
}

// TestDynamoFiles: workers come and go with their files, and with whoever keeps these young.
func TestDynamoFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	all := registered(t, "dynamo-disaggregated.txt")
	place := func(key string) string {
		bucket := cardKeys
		if strings.HasPrefix(key, instanceKeys) {
			bucket = instanceKeys
		}
		return filepath.Join(dir, bucket, url.PathEscape(strings.TrimPrefix(key, bucket)))
	}
	for _, bucket := range []string{instanceKeys, cardKeys} {
		if err := os.MkdirAll(filepath.Join(dir, bucket), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for key, value := range all {
		if err := os.WriteFile(place(key), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set := Start(Options{Log: zerolog.Nop(), Changed: func() {}})
	defer set.Close()
	set.Follow([]Entry{dynamoEntry(dir)})
	names := func() string {
		var all []string
		for _, w := range set.Found()[0].Workers {
			all = append(all, w.Name[:len("backend-13")])
		}
		return strings.Join(all, " ")
	}
	until := func(want string, problem string) {
		t.Helper()
		deadline := time.Now().Add(20 * time.Second)
		for names() != want || set.Status()[0].Problem != problem {
			if time.Now().After(deadline) {
				t.Fatalf("workers are %q, problem %q; want %q, %q", names(), set.Status()[0].Problem, want, problem)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	until("backend-13 backend-9d prefill-77", "")

	// Stopped properly, it removes its files; killed, nobody touches them any more.
	if err := os.Remove(place("v1/instances/dynamo/backend/generate/137ef8bfb33f4049")); err != nil {
		t.Fatal(err)
	}
	until("backend-9d prefill-77", "")
	old := time.Now().Add(-2 * fileTTL)
	if err := os.Chtimes(place("v1/instances/dynamo/prefill/generate/7719479b54ca7e2b"), old, old); err != nil {
		t.Fatal(err)
	}
	until("backend-9d", "")

	// What is bad keeps what it said, and a directory that is gone says nothing.
	if err := os.WriteFile(place("v1/mdc/dynamo/backend/generate/9d61250d3b92c774"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	until("backend-9d", "v1/mdc/dynamo/backend/generate/9d61250d3b92c774: the value is not as Dynamo 1.x has them: unexpected end of JSON input")
	if err := os.Rename(dir, dir+".gone"); err != nil {
		t.Fatal(err)
	}
	until("backend-9d", "cannot look at "+dir+": no such file or directory")
}

// Workers are made of what has changed alone; a file that may have is read again.
func TestDynamoMakesWhatChanged(t *testing.T) {
	t.Parallel()
	made, reads := dynamoMade{}, 0
	e := dynamoEntry("")
	e.ReadWorker = func(value []byte) (upstream.Settings, error) {
		reads++
		return asDescribed(value)
	}
	all := registered(t, "dynamo-disaggregated.txt")
	keys := tableOf(all)
	look := func(want, wantReads int) {
		t.Helper()
		if r := made.workers(&e, "dynamo", keys); len(r.workers) != want || reads != wantReads {
			t.Errorf("%d workers after %d reads, want %d, %d", len(r.workers), reads, want, wantReads)
		}
	}
	look(3, 3)
	look(3, 3)
	const flaps = "dynamo/backend/generate/137ef8bfb33f4049"
	for _, bucket := range []string{instanceKeys, cardKeys} {
		keys.drop(bucket + flaps)
	}
	look(2, 3)
	for _, bucket := range []string{instanceKeys, cardKeys} {
		keys.put(bucket+flaps, []byte(all[bucket+flaps]), 9)
	}
	look(3, 3)
	keys.put(cardKeys+flaps, []byte(strings.Replace(all[cardKeys+flaps], `"display_name":"m"`, `"display_name":"n"`, 1)), 9)
	look(3, 4)
	keys.anew() // by another entry
	look(3, 7)

	old := time.Now().Add(-time.Hour)
	for name, same := range map[string]bool{"as it was": true, "later": false, "larger": false, "just written": false} {
		was := stamp{old, 3, time.Now()}
		now := was
		switch name {
		case "later":
			now.changed = old.Add(time.Nanosecond)
		case "larger":
			now.size++
		case "just written":
			was.changed = was.looked.Add(-time.Millisecond)
			now = was
		}
		if was.same(now) != same {
			t.Errorf("%s: the same is %t", name, !same)
		}
	}
}

func FuzzDynamoKey(f *testing.F) {
	for _, file := range []string{"dynamo-disaggregated.txt", "dynamo-aggregated.txt"} {
		for key, value := range registered(f, file) {
			f.Add(key, []byte(value))
		}
	}
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		k, err := readDynamo(key, value)
		if err != nil {
			return
		}
		if strings.Count(k.instance, "/") != 2 {
			t.Fatalf("%q is read as %+v", key, k)
		}
		if k.model == nil {
			return
		}
		if f := k.model.facts(); min(f.BlockSize, f.Blocks, f.MaxBatchedTokens, f.MaxSeqs, f.Ranks) < 0 || f.Ranks > 1024 {
			t.Fatalf("facts are %+v", f)
		}
		e := dynamoEntry("")
		_, _ = dynamoWorker(&e, &k, []*dynamoCard{k.model})
	})
}

// TestDynamoOfOtherServers: an entry that names other servers of etcd is the same source, which keeps what
// it knows and goes by its new name, while it looks.
func TestDynamoOfOtherServers(t *testing.T) {
	t.Parallel()
	set := Start(Options{Log: zerolog.Nop(), Changed: func() {}})
	defer set.Close()
	e := Entry{Kind: "dynamo", Frontend: "http://127.0.0.1:1", Grace: time.Hour}
	for _, server := range []string{"http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3"} {
		e.Etcd.Endpoints = []string{server}
		set.Follow([]Entry{e})
		set.mu.Lock()
		src := set.sources[0]
		src.known.workers = workersAt("http://a:1")
		set.mu.Unlock()
		_ = src.called()
	}
	if got := set.Found(); len(got) != 1 || len(got[0].Workers) != 1 || got[0].Source != e.String() {
		t.Errorf("it knows %+v, and should be %s", got, e.String())
	}
}
