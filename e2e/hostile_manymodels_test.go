// Attacks by a worker's list of models: more of them than anybody can ask for.

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestHostileModelListStallsProbes: 100,000 models in /v1/models were compared each with each, 30 s long, every 30 s.
// Now the first 1,000 are served, at once, and /readyz says so.
func TestHostileModelListStallsProbes(t *testing.T) {
	t.Parallel()
	var list bytes.Buffer
	for i := range 100_000 {
		fmt.Fprintf(&list, `,{"id":"m%d","owned_by":"o"}`, i)
	}
	reply := append(append([]byte(`{"object":"list","data":[`), list.Bytes()[1:]...), "]}"...)
	asked := make(chan time.Time, 100)
	w := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" { // without /health it is asked again and again
			http.NotFound(w, r)
			return
		}
		select {
		case asked <- time.Now():
		default:
		}
		w.Write(reply)
	}))
	t.Cleanup(w.Close)
	k := serve(t, fmt.Sprintf("server: {drain: {delay: 0s, timeout: 1s}}\nworkers: [{name: w, url: %q}]\ncache: {store: off}\n", w.URL), "m0", "m999")

	ready := get(t, k.admin+"/readyz")
	if ready.status != http.StatusOK || !strings.Contains(string(ready.body), "lists 100000 models; the first 1000 are served") {
		t.Errorf("/readyz says %d %.300s", ready.status, ready.body)
	}
	if got := get(t, k.url+"/v1/models/m1000"); got.status != http.StatusNotFound {
		t.Errorf("the 1001st model is there: %d", got.status)
	}
	if n := bytes.Count(get(t, k.url+"/v1/models").body, []byte(`"object":"model"`)); n != 1002 { // with MoM and auto
		t.Errorf("%d models are listed", n)
	}
	for range 3 {
		select {
		case <-asked:
		case <-time.After(patience):
			t.Fatal("the worker is not probed again")
		}
	}
}

// TestHostileModelListHidesAConfiguredModel: a model that the configuration names is served wherever it stands.
func TestHostileModelListHidesAConfiguredModel(t *testing.T) {
	t.Parallel()
	var list strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&list, `{"id":"m%d","owned_by":"o"},`, i)
	}
	w := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			fmt.Fprintf(w, `{"data":[%s{"id":"wanted","owned_by":"o","max_model_len":4096}]}`, list.String())
		}
	}))
	t.Cleanup(w.Close)
	k := serve(t, fmt.Sprintf("server: {drain: {delay: 0s, timeout: 1s}}\nworkers: [{name: w, url: %q, models: [wanted]}]\ncache: {store: off}\n", w.URL), "wanted")
	eventually(t, patience, "its length is known", func() bool {
		return strings.Contains(string(get(t, k.url+"/v1/models/wanted").body), `"max_model_len":4096`)
	})
	if got := get(t, k.admin+"/readyz"); strings.Contains(string(got.body), "models; the first") {
		t.Errorf("/readyz says %s", got.body)
	}
}
