// What of a client goes on to workers.

package upstream

import (
	"testing"
)

// A query may name a model: to LiteLLM it comes before the body's.
func TestQueriesThatGoOn(t *testing.T) {
	for query, want := range map[string]string{
		"": "", "model=secret": "", "a=b": "", "beta=true": "?beta=true", "api-version=2024-10-21": "?api-version=2024-10-21",
		"beta=true&model=secret&api-version=1": "?beta=true&api-version=1", "beta=1;model=secret": "", "beta=1%26model=secret": "",
		"%62eta=1": "", "beta": "?beta", "&&beta=&": "?beta=", "Beta=1": "", "beta=a b": "",
	} {
		if got := string(appendQuery(nil, []byte(query))); got != want {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
}
