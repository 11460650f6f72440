// llama.cpp's server: how many requests it answers at once.

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// It has no cache_salt and publishes no KV events, and its /tokenize is not vLLM's.
var llamaCPP = dialect{
	name:  "llamacpp",
	also:  []string{"llama.cpp", "llama_cpp", "llama_server"},
	owner: "llamacpp",
	facts: askProps,
}

// askProps reads /props (tools/server/README.md of llama.cpp). In its router mode, with
// several models behind one server, it says such things of a named model only.
func askProps(ctx context.Context, w *Worker) (facts, error) {
	status, body, err := w.get(ctx, "/props")
	if err != nil || keptBack(status) || status == http.StatusBadRequest {
		return facts{}, err
	}
	if status != http.StatusOK {
		return facts{}, fmt.Errorf("/props answers %d", status)
	}
	return readProps(body)
}

// readProps reads total_slots: a request has a slot for itself as long as it runs, and
// further ones wait.
func readProps(body []byte) (f facts, err error) {
	var said struct {
		Slots loose `json:"total_slots"`
	}
	if json.Unmarshal(body, &said) != nil {
		return f, errors.New("cannot read /props: it is no JSON object")
	}
	f.MaxSeqs = said.Slots.within(1 << 20)
	return f, nil
}
