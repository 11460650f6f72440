// Tests of workers as strangers describe them, under keys of etcd.

package config

import (
	"reflect"
	"strings"
	"testing"
)

func TestWorkerValues(t *testing.T) {
	t.Parallel()
	entry := &Discovery{
		Kind: "etcd", Engine: "vllm", Role: "decode", Models: []string{"qwen"}, MaxRequests: 7,
		KeyFile: "one.key", TLS: PeerTLS{Insecure: true},
	}
	for value, want := range map[string]Worker{
		`{"url": "http://a:1"}`: {Name: "a:1", URL: "http://a:1", Engine: "vllm", Role: "decode", Models: []string{"qwen"}, MaxRequests: 7},
		"{\t\"url\":\n\t\"https://a:1/base/\",\"name\":\"gpu-1\",\"role\":null}": {
			Name: "gpu-1", URL: "https://a:1/base", Engine: "vllm", Role: "decode", Models: []string{"qwen"}, MaxRequests: 7},
		`{"url":"http:\/\/a:1","engine":"sglang","role":"prefill","models":[],"max_requests":0,"kv_events":"tcp://a:5557","kv_replay":"tcp://a:5558","instance":"7","gpus":["GPU-8c4a2a54-91b7-4b0e-9f3d-3c2b6f6d1a20"]}`: {
			Name: "a:1", URL: "http://a:1", Engine: "sglang", Role: "prefill", KVEvents: "tcp://a:5557", KVReplay: "tcp://a:5558", Instance: "7",
			GPUs: []string{"GPU-8c4a2a54-91b7-4b0e-9f3d-3c2b6f6d1a20"}},
		// Nothing of this machine's environment goes anywhere.
		`{"url":"http://a:1","models":["${HOME}"]}`: {Name: "a:1", URL: "http://a:1", Engine: "vllm", Role: "decode", Models: []string{"${HOME}"}, MaxRequests: 7},
	} {
		got, err := ReadWorker(entry, []byte(value))
		if got.Models = append([]string(nil), got.Models...); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is\n%+v, %v, want\n%+v", value, got, err, want)
		}
	}
}

func TestBadWorkerValues(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		``:                                       `the value must be a JSON object of a worker, such as {"url":"http://10.0.0.5:8000"}: EOF`,
		`http://a:1`:                             `the value must be a JSON object of a worker, such as {"url":"http://10.0.0.5:8000"}: invalid character 'h' looking for beginning of value`,
		`["http://a:1"]`:                         `the value must be a JSON object of a worker, such as {"url":"http://10.0.0.5:8000"}: json: cannot unmarshal array into Go value of type map[string]interface {}`,
		`null`:                                   `the value must be a JSON object of a worker, is null`,
		`{"url":"http://a:1"}{`:                  `the value must be one JSON object, and more follows it`,
		`{}`:                                     `url: is missing; give the worker's address, such as http://10.0.0.5:8000`,
		`{"url":"a:1"}`:                          `url: "a:1" has no scheme, did you mean "http://a:1"?`,
		`{"url":"http://a:1","rol":"decode"}`:    `rol: unknown key, did you mean "role"?`,
		`{"url":"http://a:1","role":"decoder"}`:  `role: must be both, prefill or decode, not "decoder", did you mean "decode"?`,
		`{"url":"http://a:1","models":"qwen"}`:   `models: must be a list, is the string "qwen"; did you mean [qwen]?`,
		`{"url":"http://a:1","max_requests":-1}`: `max_requests: must not be negative, is -1`,
		`{"url":"http://a:1","kv_events":"a:5557"}`:          `kv_events: "a:5557" is no address such as tcp://10.0.0.5:5557, did you mean "tcp://a:5557"?`,
		`{"url":"http://a:1","kv_events":"ipc:///run/sock"}`: `kv_events: must be at an address of the network, such as tcp://10.0.0.5:5557`,
		`{"url":"http://a:1","key_file":"/etc/passwd"}`:      `key_file: cannot be set by whoever registers a worker; set it in the source's entry`,
		`{"url":"http://a:1","headers":{"X-A":"b"}}`:         `headers: cannot be set by whoever registers a worker; set it in the source's entry`,
		`{"url":"http://a:1","tls":{"insecure":true}}`:       `tls: cannot be set by whoever registers a worker; set it in the source's entry`,
		`{"url":"http://a b","role":"x"}`:                    `role: must be both, prefill or decode, not "x"; url: "http://a b" has blanks or control characters`,
	} {
		_, err := ReadWorker(&Discovery{Kind: "etcd"}, []byte(value))
		if err == nil || err.Error() != want {
			t.Errorf("%s gives\n%v, want\n%s", value, err, want)
		}
	}
}

func FuzzWorkerValue(f *testing.F) {
	f.Add([]byte(`{"url":"http://a:1","name":"x","models":["m"],"max_requests":1e2}`))
	f.Add([]byte(`{"url":"http://a:1","kv_events":"tcp://a:5557","gpus":[0]}`))
	f.Add([]byte("{\"a\":" + strings.Repeat("[", 200)))
	f.Add([]byte(`{"\ud83d\ude00":"\u2028","url":"&a *a !!binary |"}`))
	entry := &Discovery{Kind: "etcd", Role: "both"}
	f.Fuzz(func(t *testing.T, value []byte) {
		w, err := ReadWorker(entry, value)
		if (err == nil) != (w.URL != "") {
			t.Fatalf("%+v, %v", w, err)
		}
		if err == nil && (w.KeyFile != "" || w.Headers != nil || w.TLS != (PeerTLS{})) {
			t.Fatalf("a stranger has set %+v", w)
		}
	})
}
