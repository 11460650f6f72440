// Serving: a fleet with the names of the workers that each GPU serves.

package gpu

import (
	"slices"
	"strconv"
)

// Served says which workers each GPU serves: their names by UUID, or by index
// where the driver gives none.
type Served map[string][]string

// Serving turns what Owners.Find found of these GPUs and workers around.
func Serving(gpus []GPU, workers []Worker, owned []Owned) Served {
	s := Served{}
	for i := range workers {
		for _, at := range owned[i].GPUs {
			key := gpus[at].key()
			if !slices.Contains(s[key], workers[i].Name) { // two GPUs may have one UUID while indices move
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
		all.GPUs = []GPU{} // in JSON a list, never null
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
