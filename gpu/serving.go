// Serving: adds the names of the workers that each GPU serves to a fleet.

package gpu

import (
	"slices"
	"strconv"
)

// Served maps each GPU, by UUID or by index if it has no UUID, to the names of the workers that
// it serves.
type Served map[string][]string

// Serving inverts the result of Owners.Find: from workers to GPUs.
func Serving(gpus []GPU, workers []Worker, owned []Owned) Served {
	s := Served{}
	for i := range workers {
		for _, at := range owned[i].GPUs {
			key := gpus[at].key()
			if !slices.Contains(s[key], workers[i].Name) { // two GPUs may have the same UUID while indices change
				s[key] = append(s[key], workers[i].Name)
			}
		}
	}
	return s
}

// With returns a copy of the fleet with the workers that each GPU serves.
func (f *Fleet) With(s Served) *Fleet {
	all := *f
	all.GPUs = slices.Clone(f.GPUs)
	if all.GPUs == nil {
		all.GPUs = []GPU{} // so that JSON has a list, never null
	}
	for i := range all.GPUs {
		g := &all.GPUs[i]
		if g.Workers = s[g.key()]; g.Workers == nil {
			g.Workers = []string{}
		}
	}
	return &all
}

func (g *GPU) key() string {
	if g.UUID != "" {
		return g.UUID
	}
	return strconv.Itoa(g.Index)
}
