// Tests of parsing the helper's lines.

package gpu

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"kvasir/gpu/snapshot"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct{ line, want string }{ // want is JSON, or an error
		{`{"hello":{"protocol":1,"driver":"570.86.15","gpus":8}}`, ``},
		{`{"hello":{"protocol":1,"driver":"570","gpus":0,"mood":[{}]},"later":{}}`, `{"hello":{"protocol":1,"driver":"570","gpus":0}}`},
		{`{"later":{"gpu":0}}`, `{}`},
		{`null`, `{}`},
		{`{"gpu":{"index":0,"uuid":"GPU-1","memory_used_bytes":0,"throttle_reasons":[],"processes":[{"pid":7,"sm_utilization":0}]}}`, ``},
		{`{"gpu":{"index":1,"sm_utilization":101,"power_watts":-1,"temperature_celsius":1e9,"sm_clock_mhz":1980,"processes":[{"pid":7,"sm_utilization":-3}]}}`, `{"gpu":{"index":1,"sm_clock_mhz":1980,"processes":[{"pid":7}]}}`},
		{`{"gpu":{"index":1,"name":"a\u001b[2J\nb\u202e","recovery_action":"\u0000"}}`, `{"gpu":{"index":1,"name":"a?[2J?b?","recovery_action":"?"}}`},
		{`{"gpu":{"index":1,"name":"` + strings.Repeat("ä", 60) + `"}}`, `{"gpu":{"index":1,"name":"` + strings.Repeat("ä", 48) + `"}}`},
		{`{"gpu":{"index":1,"throttle_reasons":["b","a","\u0001","b","\u0002"]}}`, `{"gpu":{"index":1,"throttle_reasons":["b","a","?"]}}`},
		{`{"gpu":{"index":1,"processes":[` + strings.Repeat(`{"pid":1},`, 5000) + `{"pid":2}]}}`, `{"gpu":{"index":1,"processes":[` + strings.Repeat(`{"pid":1},`, 1023) + `{"pid":1}]}}`},
		{`{"trouble":{"gpu":-1,"code":"UNKNOWN","text":"Unknown Error"}}`, ``},
		{`{"hello":{"protocol":2,"gpus":-1}}`, `the helper is of another build of Kvasir: it speaks protocol 2, this one 1; build both together with make build`},
		{`{"hello":{}}`, `the helper is of another build of Kvasir: it speaks protocol 0, this one 1; build both together with make build`},
		{`{"hello":{"protocol":1,"gpus":-1}}`, `cannot believe the helper's -1 GPUs`},
		{`{"hello":{"protocol":1,"gpus":1000000000}}`, `cannot believe the helper's 1000000000 GPUs`},
		{`{"gpu":{"index":128}}`, `cannot believe the helper's GPU 128`},
		{`{"gpu":{"index":-1}}`, `cannot believe the helper's GPU -1`},
		{`{"trouble":{"gpu":-2}}`, `cannot believe the helper's GPU -2`},
		{`{"gpu":{"index":1e400}}`, `cannot read the helper's line "{\"gpu\":{\"index\":1e400}}": json: cannot unmarshal number 1e400 into Go struct field GPU.gpu.index of type int`},
		{``, `cannot read the helper's line "": unexpected end of JSON input`},
		{`{"gpu":`, `cannot read the helper's line "{\"gpu\":": unexpected end of JSON input`},
		{"\x00" + strings.Repeat("x", 100), `cannot read the helper's line "\x00` + strings.Repeat("x", 79) + `": invalid character '\x00' looking for beginning of value`},
	} {
		l, err := parse([]byte(tt.line))
		if err != nil {
			if err.Error() != tt.want {
				t.Errorf("%s: error is %v, want %s", tt.line, err, tt.want)
			}
			continue
		}
		if tt.want == "" {
			tt.want = tt.line
		}
		if got, _ := json.Marshal(l); string(got) != tt.want {
			t.Errorf("%s is read as %s, want %s", tt.line, got, tt.want)
		}
	}
	if _, err := parse([]byte(`{"hello":{"protocol":2}}`)); !errors.Is(err, errProtocol) {
		t.Errorf("error is %v", err)
	}
}

func TestLines(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string
		bad  bool
	}{
		{"", nil, false},
		{"a\n\nb\n", []string{"a", "", "b"}, false},
		{"a\nb", []string{"a"}, false},
		{strings.Repeat("x", maxLine-1) + "\nb\n", []string{strings.Repeat("x", maxLine-1), "b"}, false},
		{"a\n" + strings.Repeat("x", maxLine+1) + "\nb\n", []string{"a"}, true},
	} {
		var got []string
		s := lines(strings.NewReader(tt.text))
		for s.Scan() {
			got = append(got, s.Text())
		}
		if !reflect.DeepEqual(got, tt.want) || (s.Err() != nil) != tt.bad {
			t.Errorf("%.20q is %d lines %.40q, %v", tt.text, len(got), got, s.Err())
		}
	}
}

// FuzzLine: a line that is accepted can be printed, and parses to the same value again.
func FuzzLine(f *testing.F) {
	for _, seed := range []string{
		`{"hello":{"protocol":1,"driver":"570.86.15","gpus":2}}`,
		`{"gpu":{"index":0,"uuid":"GPU-1","name":"NVIDIA H100","pci":"00000000:07:00.0","memory_used_bytes":1,"sm_utilization":50.5,"throttle_reasons":["gpu_idle"],"xid":79,"xid_at_ms":1,"recovery_action":"none","mig":[{"gpu_instance":1,"compute_instance":0}],"processes":[{"pid":1,"memory_bytes":2,"sm_utilization":3}]}}`,
		`{"trouble":{"gpu":1,"code":"GPU_IS_LOST","text":"GPU is lost"}}`,
		`{"GPU":{"index":0,"name":"\u202e\ud800"}}`, `[]`, `{"gpu":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := parse(b)
		if err != nil {
			if l != (snapshot.Line{}) || !printable(err.Error()) {
				t.Errorf("error %q comes with %+v", err, l)
			}
			return
		}
		for _, text := range texts(l) {
			if !printable(text) || len(text) > 256 {
				t.Errorf("%q cannot be printed", text)
			}
		}
		again, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if second, err := parse(again); err != nil || !reflect.DeepEqual(l, second) {
			t.Errorf("%s is read as %+v, then %+v, %v", b, l, second, err)
		}
	})
}

func printable(s string) bool { return utf8.ValidString(s) && strings.IndexFunc(s, unfit) < 0 }

// texts returns all strings of a line.
func texts(l snapshot.Line) []string {
	var all []string
	if l.Hello != nil {
		all = append(all, l.Hello.Driver)
	}
	if l.Trouble != nil {
		all = append(all, l.Trouble.Code, l.Trouble.Text)
	}
	if g := l.GPU; g != nil {
		all = append(append(all, g.UUID, g.Name, g.PCI), g.ThrottleReasons...)
		if g.Recovery != nil {
			all = append(all, *g.Recovery)
		}
		for _, i := range g.MIG {
			all = append(all, i.UUID, i.Name)
		}
	}
	return all
}
