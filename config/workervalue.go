// Worker values: one worker as somebody else describes it, a JSON object under a key of etcd.

package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// valueKeys are the keys of workers that a value may have. Not among them is what names a
// file of this machine, sends a secret, or says whom to trust: who registers workers may
// have others asked, and no more.
var valueKeys = []string{"url", "name", "engine", "role", "models", "max_requests", "kv_events", "kv_replay", "instance", "gpus"}

var valueKey = func() *Key {
	all := *knownKeys.child(workersPath).Elem
	all.Children = slices.DeleteFunc(slices.Clone(all.Children), func(k *Key) bool { return !slices.Contains(valueKeys, k.Name) })
	return &all
}()

// ValueKeys are the keys that a value may have, in the order of workers.
func ValueKeys() []*Key { return valueKey.Children }

// ReadWorker reads a worker of a source of discovery that finds such values. What the value
// does not say is as the source's entry says. Nothing in it is replaced, and no file is
// read for it.
func ReadWorker(entry *Discovery, value []byte) (Worker, error) {
	object, root, err := objectOf(value)
	if err != nil {
		return Worker{}, err
	}
	for name := range object {
		if knownKeys.child(workersPath).Elem.child(name) != nil && valueKey.child(name) == nil {
			return Worker{}, fmt.Errorf("%s: cannot be set by whoever registers a worker; set it in the source's entry", name)
		}
	}
	here := func(*yaml.Node) place { return place{} }
	d := &decoder{at: here, places: places{"": {}}}
	e := *entry
	e.TLS, e.KeyFile = PeerTLS{}, "" // the first is etcd's, the second for wiring
	r := &workerReader{entry: &e, at: d.places, d: d}
	const path = workersPath + "[0]"
	got, _ := d.value(valueKey, path, root)
	m, _ := got.(map[string]any)
	w := r.worker(m, path)
	v := &validation{}
	c := &Config{Discovery: []Discovery{e}, Workers: []Worker{w}}
	c.fill()
	v.workers(c)
	v.gpus(c)
	for _, at := range []struct{ key, address string }{{"kv_events", w.KVEvents}, {"kv_replay", w.KVReplay}} {
		if strings.Contains(at.address, "://") && !strings.HasPrefix(at.address, "tcp://") {
			v.add("must be at an address of the network, such as tcp://10.0.0.5:5557", path+"."+at.key)
		}
	}
	bad := d.problems.with(v.found, d.places)
	if len(bad) == 0 {
		return c.Workers[0], nil
	}
	var lines []string
	for _, p := range bad.sorted() {
		lines = append(lines, strings.TrimPrefix(strings.TrimPrefix(p.String(), path), "."))
	}
	return Worker{}, errors.New(strings.Join(lines[:min(len(lines), maxProblems)], "; "))
}

// objectOf reads a JSON object. It is written anew for the reader of YAML, which does not
// know all that JSON has: tabs, and characters as two escapes.
func objectOf(value []byte) (object map[string]any, root *yaml.Node, err error) {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	if err := d.Decode(&object); err != nil {
		return nil, nil, fmt.Errorf("the value must be a JSON object of a worker, such as {\"url\":\"http://10.0.0.5:8000\"}: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, errors.New("the value must be one JSON object, and more follows it")
	}
	if object == nil {
		return nil, nil, errors.New("the value must be a JSON object of a worker, is null")
	}
	plain, err := json.Marshal(object)
	if err != nil {
		return nil, nil, err
	}
	root, bad := parseDocument(plain)
	if bad != nil {
		return nil, nil, errors.New(bad.text)
	}
	return object, root, nil
}
