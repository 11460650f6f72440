// Tests of the workers listed for each GPU.

package gpu

import (
	"encoding/json"
	"testing"

	"kvasir/gpu/snapshot"
)

// Workers are listed at the GPU that they were found on, also after the order has changed; the
// original fleet does not change.
func TestServing(t *testing.T) {
	t.Parallel()
	gpus := []GPU{{GPU: snapshot.GPU{Index: 0, UUID: "GPU-a"}}, {GPU: snapshot.GPU{Index: 1, UUID: "GPU-b"}}, {GPU: snapshot.GPU{Index: 2}}}
	s := Serving(gpus, []Worker{{Name: "x"}, {Name: "y"}, {Name: "z"}}, []Owned{{GPUs: []int{0, 1}}, {Why: "none"}, {GPUs: []int{1, 2}}})
	for _, tt := range []struct {
		fleet Fleet
		want  string
	}{
		{Fleet{State: OK, GPUs: gpus}, `{"state":"ok","gpus":[{"index":0,"uuid":"GPU-a","state":"","workers":["x"],"age_ms":0},` +
			`{"index":1,"uuid":"GPU-b","state":"","workers":["x","z"],"age_ms":0},{"index":2,"state":"","workers":["z"],"age_ms":0}]}`},
		{Fleet{State: OK, GPUs: []GPU{gpus[1], {GPU: snapshot.GPU{Index: 0, UUID: "GPU-c"}}}}, `{"state":"ok","gpus":[{"index":1,"uuid":"GPU-b","state":"","workers":["x","z"],"age_ms":0},` +
			`{"index":0,"uuid":"GPU-c","state":"","workers":[],"age_ms":0}]}`},
		{Fleet{State: Off, Why: "no driver"}, `{"state":"off","why":"no driver","gpus":[]}`},
	} {
		got, err := json.Marshal(tt.fleet.With(s))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s, %v; want %s", got, err, tt.want)
		}
	}
	twins := []GPU{gpus[0], gpus[0]}
	if s := Serving(twins, []Worker{{Name: "x"}}, []Owned{{GPUs: []int{0, 1}}}); len(s["GPU-a"]) != 1 {
		t.Errorf("of two GPUs with one UUID the workers are %q", s["GPU-a"])
	}
	if gpus[0].Workers != nil {
		t.Error("the fleet was changed")
	}
}
