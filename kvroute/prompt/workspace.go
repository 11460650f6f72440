// Workspace: memory for making tokens of a request, which the next request uses again.

package prompt

import (
	"errors"
	"sync"

	"kvasir/kvroute/template"
)

// workspace is the memory that it takes to make tokens of a request. What parseObject returns lies in it,
// and must not be used after giveBack.
type workspace struct {
	json template.Reader
	text []byte   // the chat as its template renders it
	keys []uint64 // by which the text is found in the cache (prefixCache)
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// maxKept is how many bytes a workspace may have to be kept for another request; larger ones are dropped.
const maxKept = 2 << 20

func takeWorkspace() *workspace { return workspaces.Get().(*workspace) }

// giveBack lets another request use the memory.
func (w *workspace) giveBack() {
	if w.json.Size()+cap(w.text) <= maxKept {
		workspaces.Put(w)
	}
}

// parseObject reads a request's body, which must be a JSON object.
func (w *workspace) parseObject(body []byte) (*template.Dict, error) {
	v, err := w.json.Parse(body)
	switch {
	case errors.Is(err, template.ErrUnsupported):
		return nil, unsupported("%v", err)
	case err != nil:
		return nil, refused("%v", err)
	}
	d, ok := v.(*template.Dict)
	if !ok {
		return nil, refused("the body is no object")
	}
	return d, nil
}
