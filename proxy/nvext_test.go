package proxy

import (
	"fmt"
	"testing"

	"kvasir/openai"
)

// chosen says what a body of these members chooses, or why it is refused.
func chosen(t *testing.T, members string) string {
	t.Helper()
	var r openai.Request
	if e := r.Parse(openai.Routes[0], []byte(`{"model":"m",`+members+`,"messages":[{"role":"user","content":"hi"}]}`), nil); e != nil {
		return e.Param
	}
	var s steering
	if e := s.readBody(&r); e != nil {
		return e.Param
	}
	out := fmt.Sprintf("%s/%s", s.pin.Worker, s.pin.Prefill)
	if o := s.override; o != nil {
		for _, weight := range []*float64{o.Credit, o.Scale, o.Temperature} {
			if weight == nil {
				out += " -"
			} else {
				out += fmt.Sprintf(" %g", *weight)
			}
		}
	}
	return out
}

func TestWhatABodyChooses(t *testing.T) {
	const pins = `"backend_instance_id":"a","prefill_worker_id":12,"decode_worker_id":null`
	for _, c := range []struct{ members, want string }{
		{`"nvext":{` + pins + `}`, "a/12"},
		{`"nvext":{` + pins + `,"annotations":["x",{}]}`, "a/12"},
		{`"nvext":{"decode_worker_id":"b","backend_instance_id":"a"}`, "b/"},
		{`"nvext":{"decode_worker_id":"","backend_instance_id":"\u0061\""}`, `a"/`},
		{`"nvext":{"BACKEND_INSTANCE_ID":"a"}`, "nvext.BACKEND_INSTANCE_ID"},
		{`"vllm_xargs":{"nvext":{` + pins + `}}`, "/"},
		{`"nvext":{"backend_instance_id":18446744073709551615}`, "18446744073709551615/"},
		{`"nvext":{"backend_instance_id":123456789012345678901}`, "nvext"},
		{`"nvext":{"prefill_worker_id":-1}`, "nvext"},
		{`"nvext":{"decode_worker_id":1e3}`, "nvext"},
		{`"nvext":{"decode_worker_id":{}}`, "nvext"},
		{`"nvext":[]`, "nvext"},
		{`"nvext":{"router_config_override":{"overlap_score_credit":2,"prefill_load_scale":null}}`, "/ 2 - -"},
		{`"router_config_override":{"router_temperature":0,"prefill_load_scale":1e3}`, "/ - 1000 0"},
		{`"router_config_override":{"overlap_score_weight":3}`, "/ - 3 -"},
		{`"router_config_override":{"kv_overlap_score_weight":3}`, "/ - 3 -"},
		{`"router_config_override":{"overlap_score_weight":0}`, "/ 0 0 -"},
		{`"router_config_override":{"overlap_score_weight":3,"prefill_load_scale":1,"overlap_score_credit":2}`, "/ 2 1 -"},
		{`"router_config_override":{"router_temperature":0,"assume_kv_reuse":true}`, "router_config_override"},
		{`"router_config_override":{"router_temperature":1},"nvext":{"router_config_override":{"router_temperature":2}}`, "/ - - 1"},
		{`"nvext":{"router_config_override":{"router_temperature":2}},"router_config_override":{"router_temperature":1}`, "/ - - 1"},
		{`"nvext":{"router_config_override":{"router_temperature":2}},"router_config_override":null`, "/ - - 2"},
		{`"nvext":{"router_config_override":[]}`, "nvext.router_config_override"},
		{`"nvext":{"router_config_override":{"overlap_score_credit":"1"}}`, "nvext.router_config_override.overlap_score_credit"},
		{`"router_config_override":{"router_temperature":1e400}`, "router_config_override.router_temperature"},
		{`"router_config_override":{"prefill_load_scale":[1]}`, "router_config_override.prefill_load_scale"},
	} {
		if got := chosen(t, c.members); got != c.want {
			t.Errorf("%s: %s, want %s", c.members, got, c.want)
		}
	}
}
