// Working space: the memory that one request after another uses.

package prompt

import (
	"errors"
	"sync"

	"kvasir/kvroute/template"
)

// workspace is what it takes to make tokens of a request. All that is read from a body is good until it
// is given back.
type workspace struct {
	json template.Reader
	text []byte   // of the chat, rendered
	keys []uint64 // of the text
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// maxKept is the most bytes of working space that waits for the next request.
const maxKept = 2 << 20

func takeWorkspace() *workspace { return workspaces.Get().(*workspace) }

func (w *workspace) giveBack() {
	if w.json.Size()+cap(w.text) <= maxKept {
		workspaces.Put(w)
	}
}

// parseObject reads a request's body.
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
