// Tests of what a source knows and of merging, which read no clock and no file.

package discovery

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kvasir/upstream"
)

func workersAt(urls ...string) (all []Worker) {
	for _, u := range urls {
		all = append(all, Worker{Settings: upstream.Settings{Name: hostPort(u), URL: u, Role: "both"}, From: "test"})
	}
	return all
}

func urls(all []Worker) string {
	var u []string
	for _, w := range all {
		u = append(u, strings.TrimPrefix(w.URL, "http://"))
	}
	return strings.Join(u, " ")
}

// TestKnowledge goes through what a source may say, a line after the other.
func TestKnowledge(t *testing.T) {
	t.Parallel()
	const grace = 10 * time.Second
	failed := errors.New("no answer")
	many := make([]string, maxWorkers+1)
	for i := range many {
		many[i] = fmt.Sprintf("http://h:%d", i)
	}
	var k knowledge
	now := time.Unix(1000, 0)
	for i, step := range []struct {
		after   time.Duration
		report  report
		changed bool
		holds   string
		problem string
	}{
		{0, report{err: failed}, false, "", "no answer"}, // before it ever knew anything
		{0, report{}, false, "", ""},
		{0, report{workers: workersAt("http://a:1", "http://b:1")}, true, "a:1 b:1", ""},
		{0, report{workers: workersAt("http://a:1", "http://b:1")}, false, "a:1 b:1", ""},
		{time.Hour, report{err: failed}, false, "a:1 b:1", "no answer"}, // holds for ever
		{time.Hour, report{}, false, "a:1 b:1", ""},                     // there are none: the grace begins
		{9 * time.Second, report{}, false, "a:1 b:1", ""},
		{0, report{workers: workersAt("http://a:1")}, true, "a:1", ""}, // back, but for one
		{0, report{}, false, "a:1", ""},
		{9 * time.Second, report{err: failed}, false, "a:1", "no answer"}, // in doubt again
		{9 * time.Second, report{}, false, "a:1", ""},                     // and so the grace begins anew
		{9 * time.Second, report{}, false, "a:1", ""},
		{2 * time.Second, report{err: failed}, false, "a:1", "no answer"}, // the time alone decides nothing
		{0, report{}, false, "a:1", ""},
		{10 * time.Second, report{}, true, "", ""},
		{0, report{workers: workersAt("http://c:1"), err: failed}, true, "c:1", "no answer"}, // a part of it is good
		{0, report{workers: workersAt(many...)}, false, "c:1", "it has 4097 workers, more than 4096"},
		{0, report{bad: failed}, false, "c:1", "no answer"}, // what is wrong with one item puts no list in doubt
		{10 * time.Second, report{bad: failed}, true, "", "no answer"},
		{0, report{workers: workersAt("http://c:1"), bad: failed}, true, "c:1", "no answer"},
		{0, report{err: errors.New("1\n2\n3\n4\n5\n6\n7")}, false, "c:1", "1\n2\n3\n4\n5\nand 2 more"},
	} {
		now = now.Add(step.after)
		changed := k.take(step.report, grace, now)
		if got := urls(k.workers); changed != step.changed || got != step.holds || k.problem != step.problem {
			t.Errorf("step %d: %q, changed %v, problem %q; want %q, %v, %q", i, got, changed, k.problem, step.holds, step.changed, step.problem)
		}
	}
}

// TestLeaving: workers that were told to end go at once, and no others with them.
func TestLeaving(t *testing.T) {
	t.Parallel()
	all := workersAt("http://a:1", "http://b:1")
	all[0].From, all[1].From = "pod a", "pod b"
	k := knowledge{workers: all}
	now := time.Unix(0, 0)
	for i, step := range []struct {
		report  report
		changed bool
		holds   string
	}{
		{report{leaving: map[string]bool{"pod c": true}}, false, "a:1 b:1"},
		{report{leaving: map[string]bool{"pod a": true}}, true, "b:1"},
		{report{leaving: map[string]bool{"pod a": true}}, false, "b:1"},
		{report{leaving: map[string]bool{"pod b": true}, err: errors.New("no answer")}, true, ""},
		{report{}, false, ""},
	} {
		if changed := k.take(step.report, time.Hour, now); changed != step.changed || urls(k.workers) != step.holds {
			t.Errorf("step %d: %q, changed %v; want %q", i, urls(k.workers), changed, step.holds)
		}
	}
	if len(all) != 2 || all[0].From != "pod a" || all[1].From != "pod b" {
		t.Errorf("what was handed out before became %v", all)
	}
}

// TestNoGrace: with grace 0 a true empty list is believed at once.
func TestNoGrace(t *testing.T) {
	t.Parallel()
	k := knowledge{workers: workersAt("http://a:1")}
	if !k.take(report{}, 0, time.Unix(0, 0)) || k.workers != nil {
		t.Errorf("%v are left", k.workers)
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	own := []upstream.Settings{
		{Name: "mine", URL: "http://a:1", Role: "decode", Instance: "7"},
		{Name: "sim-0", URL: "http://127.0.0.1:1"},
	}
	found := func(source string, workers ...Worker) Found {
		for i := range workers {
			workers[i].From = source
		}
		return Found{source, workers}
	}
	as := func(name, url, role string) Worker {
		return Worker{Settings: upstream.Settings{Name: name, URL: url, Role: role}}
	}
	instance := as("i", "http://i:1", "both")
	instance.Instance = "7"
	got := Merge(own, []Found{
		found("file one",
			as("a:1", "http://A:1", "both"), // the configuration's, which wins without a word
			as("b", "http://b:80", "both"),
			as("c:1", "http://c:1", "both")),
		found("dns two",
			as("b:80", "http://b", "prefill"), // the same address in other words, and another role
			as("c:1", "http://c:1", "both"),   // the same in both
			as("mine", "http://d:1", "both"),  // a name that is taken
			as("e:1", "http://e:1/x", "both"),
			as("e:1", "http://e:1/y", "both"), // the same host and port, another path
			instance),
	})
	var lines []string
	for _, w := range got.Workers {
		lines = append(lines, strings.Join([]string{w.Name, w.URL, w.Role, w.Instance, w.Source}, ","))
	}
	want := []string{
		"mine,http://a:1,decode,7,", "sim-0,http://127.0.0.1:1,,,",
		"b,http://b:80,both,,file one", "c:1,http://c:1,both,,file one",
		"d:1,http://d:1,both,,dns two", "e:1,http://e:1/x,both,,dns two", "http://e:1/y,http://e:1/y,both,,dns two", "i,http://i:1,both,,dns two",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("workers are\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	wantConflicts := []string{
		`file one and dns two do not agree about http://b (name and role); the first one holds`,
		`dns two: "mine" is the name of another worker; the one at http://d:1 is called "d:1"`,
		`dns two: "e:1" is the name of another worker; the one at http://e:1/y is called "http://e:1/y"`,
		`dns two: the instance "7" of the worker at http://i:1 is how another one is called; it has none`,
	}
	if !slices.Equal(got.Conflicts, wantConflicts) {
		t.Errorf("conflicts are\n%s\nwant\n%s", strings.Join(got.Conflicts, "\n"), strings.Join(wantConflicts, "\n"))
	}
}

// TestManyConflicts: what is told of them is bounded.
func TestManyConflicts(t *testing.T) {
	t.Parallel()
	var one, two []Worker
	for i := range 100 {
		w := workersAt(fmt.Sprintf("http://h:%d", i+1))[0]
		one = append(one, w)
		w.Role = "prefill"
		two = append(two, w)
	}
	m := Merge(nil, []Found{{"a", one}, {"b", two}})
	if n := len(m.Conflicts); n != maxConflicts+1 || m.Conflicts[n-1] != "and 80 more" || len(m.Workers) != 100 {
		t.Errorf("%d workers, %d conflicts, the last: %s", len(m.Workers), n, m.Conflicts[n-1])
	}
}

// TestKinds: every kind says what is wrong with its own keys, and has a name and keys.
func TestKinds(t *testing.T) {
	t.Parallel()
	for _, name := range KindNames() {
		e := Entry{Kind: name}
		if key, wrong := Check(&e); wrong == "" || !slices.Contains(Keys(name), key) || !OwnKey(key) {
			t.Errorf("kind %s of nothing: %q is wrong: %q", name, key, wrong)
		}
	}
	if OwnKey("grace") {
		t.Error("grace is a key of all kinds")
	}
}

// TestMergeInstances: behind one frontend of Dynamo each instance is a worker, and one whose number is taken is none.
func TestMergeInstances(t *testing.T) {
	t.Parallel()
	at := func(name, engine, instance string) upstream.Settings {
		return upstream.Settings{Name: name, URL: "http://f:8000", Engine: engine, Instance: instance}
	}
	found := func(all ...upstream.Settings) (w []Worker) {
		for _, s := range all {
			w = append(w, Worker{Settings: s, From: "test"})
		}
		return w
	}
	m := Merge([]upstream.Settings{at("own", "dynamo", "1"), {Name: "other", URL: "http://g:1", Instance: "4"}}, []Found{{"a", found(
		at("one", "dynamo", "1"), at("two", "dynamo", "2"), at("three", "dynamo", "3"), at("four", "dynamo", "4"))}})
	var names []string
	for _, w := range m.Workers {
		names = append(names, w.Name)
	}
	if got := strings.Join(names, " "); got != "own other two three" || m.Disagree != 1 || !strings.Contains(m.Conflicts[0], "it is left out") {
		t.Errorf("workers are %s, conflicts %q", got, m.Conflicts)
	}
	// Of other engines an instance is but another name.
	if m = Merge([]upstream.Settings{at("own", "vllm", "")}, []Found{{"a", found(at("one", "vllm", "1"))}}); len(m.Workers) != 1 {
		t.Errorf("workers are %+v", m.Workers)
	}
}

// TestMergeTakesNoNames: whoever describes one worker takes no name by which another would be called, and
// a Dynamo frontend without an instance is a worker like any other.
func TestMergeTakesNoNames(t *testing.T) {
	t.Parallel()
	own := []upstream.Settings{{Name: "own", URL: "http://own:1"}}
	found := []Worker{
		{Settings: upstream.Settings{Name: "http://10.0.0.5:8000", URL: "http://evil:1", Instance: "10.0.0.5:8000"}, From: "!"},
		{Settings: upstream.Settings{Name: "10.0.0.5:8000", URL: "http://evil:2"}, From: "!!"},
		{Settings: upstream.Settings{Name: "10.0.0.5:8000", URL: "http://10.0.0.5:8000"}, From: "victim"},
		{Settings: upstream.Settings{Name: "front-0", URL: "http://front:8000", Engine: "dynamo"}, From: "front"},
		{Settings: upstream.Settings{Name: "front-1", URL: "http://front:8001", Engine: "dynamo"}, From: "front"},
	}
	var got []string
	for _, w := range Merge(own, []Found{{Source: "s", Workers: found}}).Workers {
		got = append(got, w.Name+"="+w.URL+w.Instance)
	}
	want := []string{"own=http://own:1", "evil:1=http://evil:1", "evil:2=http://evil:2", "10.0.0.5:8000=http://10.0.0.5:8000", "front-0=http://front:8000", "front-1=http://front:8001"}
	if !slices.Equal(got, want) {
		t.Errorf("workers are\n%s", strings.Join(got, "\n"))
	}
}
